/* SPDX-License-Identifier: MIT
 *
 * The C interface, as a C program uses it.
 */
#define LOADS_FIRST
#include "loads.inc.h"

#include <tickwheel/sched.h>

/* As large as the largest object of any engine, so that all engines touch the same number of cache lines. */
struct object {
    struct tw_timer timer;
    uint32_t id;
    uint64_t task;
    void *heap;
    char rest[8];
};
_Static_assert(sizeof(struct object) == 64, "a cache line");

static void object_prepare(void)
{
    for (uint32_t i = 0; i < timers; i++) {
        tw_timer_init(&objects[i].timer);
        objects[i].id = i;
    }
}

/* ---- the wheel ------------------------------------------------------------------------------------------- */

static struct tw_wheel *wheel;

static void wheel_begin(void)
{
    need(tw_wheel_new(&wheel, NULL, 0) == 0, "no memory for a wheel");
}

static void wheel_end(void)
{
    tw_wheel_free(wheel);
}

static inline void wheel_add(struct object *object, uint64_t ms)
{
    tw_wheel_add_in(wheel, &object->timer, ms);
}

static inline void wheel_move(struct object *object, uint64_t ms)
{
    tw_wheel_move_in(wheel, &object->timer, ms);
}

static inline void wheel_cancel(struct object *object)
{
    tw_wheel_cancel(wheel, &object->timer);
}

static inline void wheel_poll(uint64_t ms)
{
    struct tw_timer *timer;
    while ((timer = tw_wheel_poll(wheel, ms)) != NULL)
        fired_id(TW_CONTAINER(timer, struct object, timer)->id);
}

/* ---- the scheduler --------------------------------------------------------------------------------------- */

static const uint64_t ms_ns = 1000000;
static struct tw_sched *sched;

static void sched_begin(void)
{
    struct tw_sched_options options = {.clock = TW_SCHED_CLOCK_VIRTUAL};
    need(tw_sched_new(&sched, &options) == 0, "no memory for a scheduler");
}

static void sched_end(void)
{
    tw_sched_free(sched);
}

static void on_due(struct tw_sched *self, const struct tw_task *task)
{
    (void)self;
    fired_id(((const struct object *)task->arg)->id);
}

static inline void sched_add(struct object *object, uint64_t ms)
{
    need(tw_sched_add_in(sched, ms * ms_ns, on_due, object, &object->task) == 0, "after");
}

static inline void sched_cancel(struct object *object)
{
    need(tw_sched_cancel(sched, object->task) == TW_CANCEL_CANCELLED, "cancel");
}

static inline void sched_pass(uint64_t ms)
{
    need(tw_sched_advance(sched, tw_sched_now(sched) + ms * ms_ns) == 0, "advance");
}

/* The key of an object: eight bytes. */
static inline struct tw_bytes key_of(const struct object *object, char *key)
{
    uint64_t number = object->id;
    return (struct tw_bytes){memcpy(key, &number, KEY_SIZE), KEY_SIZE};
}

static inline void sched_set(struct object *object, uint64_t ms)
{
    char key[KEY_SIZE];
    need(tw_sched_key_put_in(sched, key_of(object, key), ms * ms_ns, on_due, object, NULL) == 0, "set");
}

static inline void sched_move(struct object *object, uint64_t ms)
{
    char key[KEY_SIZE];
    need(tw_sched_key_move_in(sched, key_of(object, key), ms * ms_ns) == 0, "move");
}

static inline void sched_remove(struct object *object)
{
    char key[KEY_SIZE];
    need(tw_sched_key_cancel(sched, key_of(object, key), NULL) == TW_CANCEL_CANCELLED, "cancel");
}

/* Two words on the heap. A C program frees them itself, in the callback or after it has cancelled the
 * task. */
struct words {
    struct object *object;
    uint64_t *sum;
};

static void on_due_heap(struct tw_sched *self, const struct tw_task *task)
{
    (void)self;
    struct words *words = task->arg;
    fired_count++;
    *words->sum += words->object->id;
    free(words);
}

static inline void heap_add(struct object *object, uint64_t ms)
{
    struct words *words = malloc(sizeof *words);
    need(words != NULL, "no memory for two words");
    *words = (struct words){object, &fired_sum};
    object->heap = words;
    need(tw_sched_add_in(sched, ms * ms_ns, on_due_heap, words, &object->task) == 0, "after");
}

static inline void heap_cancel(struct object *object)
{
    need(tw_sched_cancel(sched, object->task) == TW_CANCEL_CANCELLED, "cancel");
    free(object->heap);
}

#ifndef RUN
#define RUN run_c
#endif
#include "loads.inc.h"
