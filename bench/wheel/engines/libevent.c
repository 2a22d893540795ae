/* SPDX-License-Identifier: MIT
 *
 * libevent through its public calls: evtimer_add, evtimer_del and event_base_loop without waiting. It reads
 * our clock (bench/clock.c). A struct event takes 128 bytes, so an object is three cache lines. The queues
 * for common timeouts are not used, because only the workload add_constant could use them. libevent has no
 * call that returns the next event.
 */
#include "object.inc.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>

struct object {
    struct event timer;
    uint64_t payload;
    uint32_t id;
} __attribute__((aligned(64)));

static struct event_base *base;

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    handle(arg);
}

static struct event_base *new_base(void)
{
    struct event_config *config = event_config_new();
    if (config == NULL)
        return NULL;
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
    struct event_base *made = event_base_new_with_config(config);
    event_config_free(config);
    return made;
}

static inline void engine_open(const struct engine *engine, uint32_t timers)
{
    (void)timers;
    base = new_base();
    if (base == NULL) {
        fprintf(stderr, "wheel_bench: %s: no event base\n", engine->name);
        exit(1);
    }
}

static inline void engine_close(void)
{
    event_base_free(base);
}

static inline void engine_prepare(struct object *object)
{
    evtimer_assign(&object->timer, base, on_timer, object);
}

static inline void engine_add(struct object *object, uint64_t deadline)
{
    uint64_t delay = deadline - now_tick;
    struct timeval after = {.tv_sec = (time_t)(delay / 1000), .tv_usec = (suseconds_t)(delay % 1000 * 1000)};
    evtimer_add(&object->timer, &after);
}

static inline void engine_cancel(struct object *object)
{
    evtimer_del(&object->timer);
}

/* In libevent one moves a pending event by adding it again. */
static inline void engine_move(struct object *object, uint64_t deadline)
{
    engine_add(object, deadline);
}

static inline void engine_advance(uint64_t tick)
{
    bench_set_tick(tick);
    event_base_loop(base, EVLOOP_NONBLOCK);
}

static inline uint64_t engine_next(void)
{
    return 0;
}

#include "../workloads.inc.h"

extern const struct engine engine_libevent;
const struct engine engine_libevent = {.name = "libevent",
                                       .kind = KIND_PEER,
                                       .object_size = sizeof(struct object),
                                       .slow = true,
                                       .lacks = 1u << NEXT_FAR,
                                       .why_lacks = "libevent has no call for it",
                                       .run = run};
