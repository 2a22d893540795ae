/* SPDX-License-Identifier: MIT
 *
 * The loads, in code that is C and C++ at once. An engine's file includes this after it has defined RUN, the
 * name of the function, and:
 *
 *     struct object                          with the members id and task, and its timer
 *     wheel_begin() wheel_end()              an empty wheel of milliseconds, its clock at 0
 *     wheel_add(object, ms) wheel_move(object, ms) wheel_cancel(object)
 *     wheel_poll(ms)                         calls fired(object) for each due object
 *     sched_begin() sched_end()              a scheduler on a virtual clock
 *     sched_add(object, ms) sched_cancel(object) sched_pass(ms)
 *     sched_set(object, ms) sched_move(object, ms) sched_remove(object)
 *     heap_add(object, ms) heap_cancel(object)    the same as sched_, with an argument of two words
 *
 * Before these definitions it has included this file once with LOADS_FIRST defined, for fired() and the like.
 */
#ifdef LOADS_FIRST
#undef LOADS_FIRST

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEY_SIZE = 8, NEAR_MS = 1000, FAR_MS = 3600000 };

struct object;
static struct object *objects;
static uint32_t timers;
static uint64_t fired_count, fired_sum;

static inline void fired_id(uint32_t id)
{
    fired_count++;
    fired_sum += id;
}

/* xorshift64*: Marsaglia, 2003; Vigna, 2016 */
static uint64_t random_state;
static inline uint32_t draw(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)((random_state * UINT64_C(2685821657736338717)) >> 33);
}

static inline void need(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "cpp_bench: %s\n", what);
    exit(1);
}

#else

static const uint32_t *visit;

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Runs a statement for every object, in shuffled order, and stores the time that this took. */
#define TIMED(ns, what)                                                                                        \
    do {                                                                                                       \
        double timed_ns = now_ns();                                                                            \
        for (uint32_t k = 0; k < timers; k++) {                                                                \
            struct object *object = &objects[visit[k]];                                                        \
            what;                                                                                              \
        }                                                                                                      \
        (ns) += now_ns() - timed_ns;                                                                           \
    } while (0)

static void wheel_loads(double *ns)
{
    double untimed = 0;
    wheel_begin();
    TIMED(ns[ADD], wheel_add(object, FAR_MS + draw() % FAR_MS));
    TIMED(ns[MOVE_LATER], wheel_move(object, 2 * FAR_MS + draw() % FAR_MS));
    TIMED(ns[CANCEL], wheel_cancel(object));
    TIMED(untimed, wheel_add(object, 1 + draw() % NEAR_MS));
    double begun_ns = now_ns();
    for (uint64_t ms = 1; ms <= NEAR_MS; ms++)
        wheel_poll(ms);
    ns[EXPIRE] += now_ns() - begun_ns;
    TIMED(untimed, wheel_add(object, FAR_MS + draw() % FAR_MS));
    begun_ns = now_ns();
    for (uint32_t k = 0; k < timers; k++) {
        struct object *object = &objects[visit[k]];
        wheel_cancel(object);
        wheel_add(object, FAR_MS + draw() % FAR_MS);
        if (k % 64 == 0)
            wheel_poll(NEAR_MS + k / 64);
    }
    ns[MIX] += now_ns() - begun_ns;
    TIMED(untimed, wheel_cancel(object));
    wheel_end();
}

static void sched_fire(double *ns)
{
    double begun_ns = now_ns();
    for (int step = 0; step < NEAR_MS; step++)
        sched_pass(1);
    *ns += now_ns() - begun_ns;
}

static void sched_loads(double *ns)
{
    double untimed = 0;
    sched_begin();
    TIMED(untimed, sched_add(object, FAR_MS + draw() % FAR_MS)); /* now the scheduler has its memory */
    TIMED(untimed, sched_cancel(object));
    TIMED(ns[TASK_ADD], sched_add(object, FAR_MS + draw() % FAR_MS));
    TIMED(ns[TASK_CANCEL], sched_cancel(object));
    TIMED(untimed, sched_add(object, 1 + draw() % (NEAR_MS - 1)));
    sched_fire(&ns[TASK_FIRE]);
    TIMED(ns[KEY_SET], sched_set(object, FAR_MS + draw() % FAR_MS));
    TIMED(ns[KEY_MOVE], sched_move(object, FAR_MS + draw() % FAR_MS));
    TIMED(ns[KEY_REMOVE], sched_remove(object));
    TIMED(ns[HEAP_ADD], heap_add(object, FAR_MS + draw() % FAR_MS));
    TIMED(ns[HEAP_CANCEL], heap_cancel(object));
    TIMED(untimed, heap_add(object, 1 + draw() % (NEAR_MS - 1)));
    sched_fire(&ns[HEAP_FIRE]);
    sched_end();
}

void RUN(uint32_t n, uint32_t operations, uint64_t seed, struct outcome *outcome)
{
    uint32_t repeats = operations / n == 0 ? 1 : operations / n;
    objects = (struct object *)arena(n * sizeof(struct object));
    visit = order_of(timers = n);
    random_state = seed * UINT64_C(0x9E3779B97F4A7C15);
    fired_count = fired_sum = 0;
    memset(outcome, 0, sizeof *outcome);
    object_prepare();
    for (uint32_t r = 0; r < repeats; r++) {
        wheel_loads(outcome->ns);
        sched_loads(outcome->ns);
    }
    for (int load = 0; load < LOADS; load++)
        outcome->ns[load] /= (double)repeats * n;
    outcome->fired = fired_count;
    outcome->sum = fired_sum;
}

#endif
