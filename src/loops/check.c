/* SPDX-License-Identifier: MIT
 *
 * The invariants of a wheel in a loop (loop.c), checked without changing anything.
 */
#include "internal.h"

static int found_one(void *arg, struct tw_timer *timer)
{
    (void)arg;
    (void)timer;
    return 1;
}

/* L1, of the wheel: whether no timer is due before `armed`. Where that is the wheel's present, timers may be
 * overdue. */
static bool none_is_earlier(const struct tw_loop *loop)
{
    return loop->armed <= tw_wheel_now(loop->wheel) ||
           tw_wheel_visit_until(loop->wheel, loop->armed - 1, found_one, NULL) == 0;
}

/* L1, of the driver: whether it will call by the time that tick `armed` begins. */
static bool driver_calls(const struct tw_loop *loop)
{
    return loop->armed == TW_NEVER || loop->told_ns <= tw__loop_tick_start(loop, loop->armed);
}

/* L2. The wheel may have stood at tick 0 when it was attached: then that tick has begun too. */
static bool nothing_is_set(const struct tw_loop *loop)
{
    if (loop->pass != NULL)
        return loop->armed == 0 || loop->pass->reentered;
    return loop->armed != 0 || loop->told_ns <= loop->base_ns;
}

/* L3, of one pass. While the wheel stands at its tick or later, a timer that is filed is due on a later one. */
static bool pass_is_bounded(const struct tw_loop *loop, const struct tw__loop_pass *pass)
{
    return pass->budget <= loop->budget && pass->fired <= loop->budget - pass->budget &&
           tw_wheel_now(loop->wheel) >= pass->tick;
}

const char *tw__loop_check(const struct tw_loop *loop)
{
    TW_ASSERT(loop != NULL);
    if (!nothing_is_set(loop))
        return "L2: a turn is under way or comes next, and the loop's timer is set for later";
    if (loop->pass == NULL && !none_is_earlier(loop))
        return "L1: a timer is due before the tick for which the loop's timer is set";
    if (loop->pass == NULL && !driver_calls(loop))
        return "L1: the driver was told a later time than that tick's";
    for (const struct tw__loop_pass *pass = loop->pass; pass != NULL; pass = pass->outer)
        if (!pass_is_bounded(loop, pass))
            return "L3: a turn does more than its budget, or for more than one tick";
    return NULL;
}
