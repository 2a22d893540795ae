/* SPDX-License-Identifier: MIT
 *
 * The structure of a wheel in a loop, and the check of its invariants. The essay is in loop.c.
 */
#ifndef TW_LOOPS_INTERNAL_H
#define TW_LOOPS_INTERNAL_H

#include <tickwheel/loop.h>

#include <base/assert.h>
#include <base/saturate.h>
#include <pthread.h>

/* A pass: a call of tw_loop_turn() under way. There is more than one where a callback runs the loop. */
struct tw__loop_pass {
    struct tw__loop_pass *outer;
    uint64_t tick;   /* it fires the timers that are due then */
    uint32_t budget; /* units of work that it may still do */
    uint32_t fired;
    bool reentered; /* a pass inside it has ended, and set the loop's timer */
    bool gone;      /* the loop was freed */
};

struct tw_loop {
    struct tw_wheel *wheel;
    uint64_t armed;   /* L1; TW_NEVER: the driver's timer is off */
    uint64_t told_ns; /* the time that the driver was told last; UINT64_MAX: never */
    uint64_t tick_ns, base_ns, base_tick;
    uint32_t budget;
    tw_due_fn *due;
    void *arg;
    struct tw__loop_pass *pass;
    struct tw_loop_driver driver;
    void *driver_arg;
    pthread_t thread; /* that runs the loop */
};

/* When a tick begins. */
static inline uint64_t tw__loop_tick_start(const struct tw_loop *loop, uint64_t tick)
{
    if (tick <= loop->base_tick)
        return loop->base_ns;
    return tw__add_saturating(loop->base_ns, tw__mul_saturating(tick - loop->base_tick, loop->tick_ns));
}

/* Checks L1 to L3. Cost: O(timers that are due before `armed`) and a look at the slots before it.
 * Returns NULL, or the first invariant that does not hold, as a static string. */
const char *tw__loop_check(const struct tw_loop *loop);

#endif
