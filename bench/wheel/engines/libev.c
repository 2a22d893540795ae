/* SPDX-License-Identifier: MIT
 *
 * libev through its public calls: ev_timer_start, ev_timer_stop, ev_timer_again and ev_run without waiting.
 * It reads our clock (bench/clock.c). A timer is set to its ticks in milliseconds minus half a millisecond,
 * and the clock shows x.5 ms. So the timer is due on its tick, and the rounding of doubles cannot put it on a
 * neighbouring tick. libev has no call that returns the next event.
 */
#include "object.inc.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>

struct object {
    ev_timer timer;
    uint64_t payload;
    uint32_t id;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct object) == 64, "one cache line");

static struct ev_loop *loop;

/* After ev_timer_again() a timer repeats. Here it must fire once. */
static void on_timer(struct ev_loop *of, ev_timer *timer, int events)
{
    (void)events;
    if (timer->repeat > 0)
        ev_timer_stop(of, timer);
    timer->repeat = 0;
    handle((struct object *)(void *)timer);
}

static inline void engine_open(const struct engine *engine, uint32_t timers)
{
    (void)timers;
    loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (loop == NULL) {
        fprintf(stderr, "wheel_bench: %s: no loop\n", engine->name);
        exit(1);
    }
}

static inline void engine_close(void)
{
    ev_loop_destroy(loop);
}

static inline void engine_prepare(struct object *object)
{
    ev_timer_init(&object->timer, on_timer, 0, 0);
}

static inline ev_tstamp seconds_until(uint64_t deadline)
{
    return ((double)(deadline - now_tick) - 0.5) * 1e-3;
}

static inline void engine_add(struct object *object, uint64_t deadline)
{
    ev_timer_set(&object->timer, seconds_until(deadline), 0);
    ev_timer_start(loop, &object->timer);
}

static inline void engine_cancel(struct object *object)
{
    ev_timer_stop(loop, &object->timer);
}

/* libev's manual recommends this for timeouts that are pushed back often. */
static inline void engine_move(struct object *object, uint64_t deadline)
{
    object->timer.repeat = seconds_until(deadline);
    ev_timer_again(loop, &object->timer);
}

static inline void engine_advance(uint64_t tick)
{
    bench_set_tick(tick);
    ev_run(loop, EVRUN_NOWAIT);
}

static inline uint64_t engine_next(void)
{
    return 0;
}

#include "../workloads.inc.h"

extern const struct engine engine_libev;
const struct engine engine_libev = {.name = "libev",
                                    .kind = KIND_PEER,
                                    .object_size = sizeof(struct object),
                                    .lacks = 1u << NEXT_FAR,
                                    .why_lacks = "libev has no call for it",
                                    .run = run};
