/* SPDX-License-Identifier: MIT
 *
 * The structure of a wheel in a loop, and the check of its invariants. The essay is in loop.c.
 */
#ifndef TW_LOOPS_INTERNAL_H
#define TW_LOOPS_INTERNAL_H

#include <tickwheel/loop.h>

#include <base/assert.h>
#include <base/saturate.h>
#include <base/time.h>
#include <pthread.h>
#include <sys/types.h>
#include <time.h>

/* A pass: a call of tw_loop_turn() under way. Passes nest when a callback runs the loop. */
struct tw__loop_pass {
    struct tw__loop_pass *outer;
    uint64_t tick;   /* the pass fires the timers that are due at this tick */
    uint32_t budget; /* units of work that the pass may still do */
    uint32_t fired;
    bool reentered; /* an inner pass has ended, and has set the loop's timer */
    bool gone;      /* the loop was freed */
};

struct tw_loop {
    struct tw_wheel *wheel;
    uint64_t armed;   /* L1; TW_NEVER: the driver's timer is off */
    uint64_t told_ns; /* the time for which the driver was armed last; UINT64_MAX: its timer is off */
    uint64_t tick_ns, base_ns, base_tick;
    uint64_t begun; /* L4: the latest tick of which the loop knows that it has begun */
    uint32_t budget;
    tw_loop_due_fn *due;
    void *arg;
    struct tw__loop_pass *pass;
    struct tw_loop_driver driver;
    void *driver_arg;
    pthread_t thread; /* the thread that runs the loop */
    pid_t process;    /* which made it: a child of fork() may only free it */
};

static inline uint64_t tw__loop_clock(const struct tw_loop *loop)
{
    struct timespec now;
    if (loop->driver.now != NULL)
        return loop->driver.now(loop->driver_arg);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * TW__NS_PER_S + (uint64_t)now.tv_nsec;
}

/* The time at which a tick begins. */
static inline uint64_t tw__loop_tick_start(const struct tw_loop *loop, uint64_t tick)
{
    if (tick <= loop->base_tick)
        return loop->base_ns;
    return tw__add_saturating(loop->base_ns, tw__mul_saturating(tick - loop->base_tick, loop->tick_ns));
}

/* Checks L1 to L4. Returns NULL, or the first invariant that does not hold, as a static string. Cost:
 * O(timers that are due before `armed`), and a look at the slots before it. */
const char *tw__loop_check(const struct tw_loop *loop);

#endif
