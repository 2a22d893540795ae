/* SPDX-License-Identifier: MIT
 *
 * Checks the invariants of a wheel in a loop (loop.c) without changing anything.
 */
#include "internal.h"

static int found_one(void *arg, struct tw_timer *timer)
{
    (void)arg;
    (void)timer;
    return 1;
}

/* L1 for the wheel: whether no timer is due before `armed`. If the wheel stands at `armed` or later, timers
 * may be overdue, and nothing is checked. */
static bool none_is_earlier(const struct tw_loop *loop)
{
    return loop->armed <= tw_wheel_now(loop->wheel) ||
           tw_wheel_visit_until(loop->wheel, loop->armed - 1, found_one, NULL) == 0;
}

/* L1 for the driver: whether it will call by the time that tick `armed` begins. */
static bool driver_calls(const struct tw_loop *loop)
{
    return loop->armed == TW_NEVER || loop->told_ns <= tw__loop_tick_start(loop, loop->armed);
}

/* L2. Outside a pass `armed` may also be 0 for tick 0, if the wheel stood there when it was attached: that
 * tick has begun already. */
static bool nothing_is_set(const struct tw_loop *loop)
{
    if (loop->pass != NULL)
        return loop->armed == 0 || loop->pass->reentered;
    return loop->armed != 0 || loop->told_ns <= loop->base_ns;
}

/* L3 for one pass. While the wheel stands at the pass's tick or later, a timer that is filed is due on a
 * later tick. */
static bool pass_is_bounded(const struct tw_loop *loop, const struct tw__loop_pass *pass)
{
    return pass->budget <= loop->budget && pass->fired <= loop->budget - pass->budget &&
           tw_wheel_now(loop->wheel) >= pass->tick;
}

/* L4. The clock is read only for a wheel that the program has polled itself. */
static bool wheel_is_behind(const struct tw_loop *loop)
{
    uint64_t stands = tw_wheel_now(loop->wheel);
    return stands <= loop->begun || tw__loop_tick_start(loop, stands) <= tw__loop_clock(loop);
}

const char *tw__loop_check(const struct tw_loop *loop)
{
    TW_ASSERT(loop != NULL);
    if (!nothing_is_set(loop))
        return "L2: a pass is under way or comes next, but the loop's timer is set for later";
    if (loop->pass == NULL && !none_is_earlier(loop))
        return "L1: a timer is due before the tick for which the loop's timer is set";
    if (loop->pass == NULL && !driver_calls(loop))
        return "L1: the driver was armed for a time after the tick `armed` begins";
    for (const struct tw__loop_pass *pass = loop->pass; pass != NULL; pass = pass->outer)
        if (!pass_is_bounded(loop, pass))
            return "L3: a pass does more work than its budget, or works for more than one tick";
    if (!wheel_is_behind(loop))
        return "L4: the wheel stands at a tick that has not begun";
    return NULL;
}
