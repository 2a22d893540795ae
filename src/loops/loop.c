/* SPDX-License-Identifier: MIT
 *
 * A wheel in an event loop: the part that is the same for every loop.
 *
 *     the program  -- add, move, cancel -->  tw_loop  --- arm(at_ns) --->  driver: one timer of the loop
 *          ^                                  |   ^                                   |
 *          +-------- due(arg, timer) ---------+   +---------- tw_loop_turn() ---------+
 *
 * The program files timers. tw_loop arms the driver, which is one timer of the event loop (a timerfd, a
 * uv_timer_t), for the wheel's next work. When that time comes, the driver calls tw_loop_turn(), which hands
 * the due timers to the program and arms the driver again. One call of tw_loop_turn() is a pass.
 *
 * Ticks. The tick at which the wheel stands when it is attached begins at that moment. A deadline becomes the
 * first tick that does not begin before it (the ceiling). The present becomes the tick that has begun (the
 * floor). A timer fires when floor(now) has reached ceiling(deadline), so now >= deadline: never early.
 * Example, with ticks of 1 ms and a wheel attached at tick 0 at the time 100 ms: a timer for 103.2 ms is due
 * on tick 4, which begins at 104 ms. A pass at 103.9 ms polls for tick 3 and fires nothing; a pass at 104 ms
 * fires the timer.
 *
 * The wheel is never polled at TW_NEVER, the last tick there is. So a timer whose deadline has saturated
 * never fires.
 *
 * Invariants (tw__loop_check() in check.c names the first that does not hold)
 *   L1  Outside of tw_loop_turn() no timer of the wheel is due before the tick `armed`. The driver will call
 *       by the time that tick begins, or a day after it was armed if that is earlier; then it is armed again.
 *   L2  `armed` is 0 while a pass is under way or comes in the next iteration. No tick is earlier than 0, so
 *       filing a timer does not arm the driver. The exception is a callback that has run the loop: the inner
 *       pass has set `armed` for the rest of the outer pass.
 *   L3  A pass does at most `budget` units of work, all for one tick. A timer that its callback files again
 *       is due on a later tick.
 *   L4  The wheel's time never passes the loop's: the wheel stands at no tick that has not begun. `begun` is
 *       the latest tick of which the loop knows that.
 *
 * It is enough to wake at `armed`. L1 speaks of deadlines, but the wheel may want to refile a far timer
 * earlier than `armed`, if `armed` was set before that timer was filed. Refiling the timer late is harmless:
 * it still fires on its tick, and `armed` is not after that tick. Example, with the default geometry: A is
 * due at tick 1,000, so `armed` is 1,000. Then B is filed for tick 1,030, and the wheel could refile B from
 * tick 512 on. The loop sleeps until tick 1,000, refiles B then, and fires B at tick 1,030.
 *
 * A cancel does not set the loop's timer later. That would be a system call for each cancel, and would save
 * one wake-up. The exception is a loop that does not end while its timer is set (`lingers`): there the last
 * cancel switches the timer off, and so does an update that finds no timer.
 *
 * While a loop sleeps, its wheel stays at an old tick. Before the loop's timer is set for a new timer, the
 * wheel is brought to the present, by a poll with a budget of 0 that does no work. Filed from there, the new
 * timer is refiled no more often than in a wheel that had ticked all the time.
 *
 * Rejected
 *   - The time that the loop noted at the beginning of its iteration. Timers would be early by the time that
 *     callbacks have taken since.
 *   - A timer of the loop for each tick. It wakes an idle machine.
 *   - A time limit for a pass instead of a budget. It would read the clock once for each timer.
 */
#include "internal.h"

#include <base/grow.h>
#include <base/saturate.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t loop_tick_min_ns = 1000, loop_tick_max_ns = UINT64_C(3600000000000);
/* The default budget. A million timers that are due at once cost, each, in an epoll loop: 90 ns with a budget
 * of 16, 39 ns with 256, 31 ns with 4,096. With callbacks of a microsecond, a budget of 256 keeps other
 * events waiting for a quarter of a millisecond. */
enum { TICK_NS = 1000000, BUDGET = 256 };
/* A driver is armed for at most a day ahead: a day fits in an int of milliseconds, and is exact in a double
 * of seconds. */
static const uint64_t day_ns = UINT64_C(86400000000000);

#if TW_DEBUG > 1
/* Makes a call that changes the loop, asserts that each invariant still holds, and has the value of the call.
 * An invariant need not have held before: the program may have filed timers in the wheel itself, and not
 * called tw_loop_update() yet. Then nothing is asserted. */
#define TW__LOOP_AUDITED(loop, result)                                                                         \
    __extension__({                                                                                            \
        bool held_ = tw__loop_check(loop) == NULL;                                                             \
        __auto_type audited_ = (result);                                                                       \
        TW_ASSERT(!held_ || tw__loop_check(loop) == NULL);                                                     \
        audited_;                                                                                              \
    })
#else
#define TW__LOOP_AUDITED(loop, result) (result)
#endif

/* Asserts the duties of each call that changes a loop: the loop is not NULL, this process made it, and the
 * call comes from the thread that runs it. */
static inline void may_change(const struct tw_loop *loop)
{
    (void)loop;
    TW_ASSERT(loop != NULL);
    TW_ASSERT(loop->process == getpid());
    TW_ASSERT(pthread_equal(pthread_self(), loop->thread));
}

/* ---- options --------------------------------------------------------------------------------------------- */

int tw_loop_options_check(const struct tw_loop_options *options, char *message, size_t size)
{
    TW_ASSERT(options != NULL);
    TW_ASSERT(message != NULL || size == 0);
    uint64_t tick_ns = options->tick_ns;
    if (tick_ns != 0 && (tick_ns < loop_tick_min_ns || tick_ns > loop_tick_max_ns)) {
        snprintf(message, size,
                 "tick_ns is %" PRIu64 ": expected 1,000 to 3,600,000,000,000, or 0 for a millisecond",
                 tick_ns);
        return TW_EINVAL;
    }
    if (options->due == NULL) {
        snprintf(message, size, "due is NULL: expected a function");
        return TW_EINVAL;
    }
    return TW__GROW_CHECK("tw_loop_options", options->reserved, message, size);
}

/* ---- time ------------------------------------------------------------------------------------------------ */

uint64_t tw_loop_now(const struct tw_loop *loop)
{
    TW_ASSERT(loop != NULL);
    return tw__loop_clock(loop);
}

uint64_t tw_loop_tick(const struct tw_loop *loop, uint64_t at_ns)
{
    TW_ASSERT(loop != NULL);
    if (at_ns <= loop->base_ns)
        return loop->base_tick;
    if (at_ns == UINT64_MAX)
        return TW_NEVER;
    return tw__add_saturating(loop->base_tick, (at_ns - loop->base_ns - 1) / loop->tick_ns + 1);
}

uint64_t tw_loop_time(const struct tw_loop *loop, uint64_t tick)
{
    TW_ASSERT(loop != NULL);
    return tw__loop_tick_start(loop, tick);
}

/* The tick that has begun at a time, never TW_NEVER (the last). Notes it for L4. Requires: the driver's clock
 * does not go back. */
static uint64_t tick_begun(struct tw_loop *loop, uint64_t now_ns)
{
    TW_ASSERT(now_ns >= loop->base_ns);
    uint64_t passed_ns = now_ns > loop->base_ns ? now_ns - loop->base_ns : 0;
    uint64_t tick = tw__add_saturating(loop->base_tick, passed_ns / loop->tick_ns);
    tick = tick < TW_NEVER ? tick : TW_NEVER - 1;
    loop->begun = tick > loop->begun ? tick : loop->begun;
    return tick;
}

/* Brings a wheel that has slept to the present. Timers that are due stay in it. */
static void note_time(struct tw_loop *loop)
{
    uint32_t none = 0;
    struct tw_timer *timer;
    tw_wheel_poll_budget(loop->wheel, tick_begun(loop, tw_loop_now(loop)), &none, &timer);
}

/* ---- the loop's timer ------------------------------------------------------------------------------------ */

/* Arms the driver for a time and notes the time. Returns: 0, or the driver's error. Requires: the driver
 * refuses only when its timer was off. */
static int tell(struct tw_loop *loop, uint64_t at_ns, uint64_t now_ns)
{
    int error = loop->driver.arm(loop->driver_arg, at_ns, now_ns);
    TW_ASSERT(error == 0 || loop->told_ns == UINT64_MAX);
    if (error == 0)
        loop->told_ns = at_ns;
    return error;
}

/* Arms the driver for the beginning of a tick, or for a day ahead if that is earlier; TW_NEVER: switches its
 * timer off. Returns: 0, or the driver's error. */
static int arm(struct tw_loop *loop, uint64_t tick)
{
    uint64_t at_ns = UINT64_MAX, now_ns = tw_loop_now(loop);
    if (tick != TW_NEVER) {
        uint64_t latest_ns = tw__add_saturating(now_ns, day_ns);
        at_ns = tw_loop_time(loop, tick);
        at_ns = at_ns < latest_ns ? at_ns : latest_ns;
    }
    int error = tell(loop, at_ns, now_ns);
    if (error == 0)
        loop->armed = tick;
    return error;
}

/* Switches the timer off in a loop that would not end otherwise, if nothing is pending. Not in a pass, after
 * which the timer is set anyway. */
static void let_end(struct tw_loop *loop)
{
    if (loop->driver.lingers && loop->armed != 0 && loop->armed != TW_NEVER && tw_wheel_count(loop->wheel) == 0)
        arm(loop, TW_NEVER);
}

int tw_loop_update(struct tw_loop *loop)
{
    may_change(loop);
    uint64_t tick = tw_wheel_next_bound(loop->wheel);
    int error = tick < loop->armed ? arm(loop, tick) : 0;
    let_end(loop);
    TW_ASSERT_WALK(error != 0 || tw__loop_check(loop) == NULL);
    return error;
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

static void take_options(struct tw_loop *loop, const struct tw_loop_options *options)
{
    loop->tick_ns = options->tick_ns != 0 ? options->tick_ns : TICK_NS;
    loop->budget = options->budget != 0 ? options->budget : BUDGET;
    loop->due = options->due;
    loop->arg = options->arg;
}

int tw_loop_new(struct tw_loop **made, struct tw_wheel *wheel, const struct tw_loop_options *options,
                const struct tw_loop_driver *driver, void *arg)
{
    TW_ASSERT(made != NULL && wheel != NULL);
    TW_ASSERT(driver != NULL && driver->arm != NULL && driver->close != NULL);
    if (tw_loop_options_check(options, NULL, 0) != 0 || !TW__GROW_UNUSED(driver->reserved))
        return TW_EINVAL;
    struct tw_loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL)
        return TW_ENOMEM;
    take_options(loop, options);
    loop->wheel = wheel;
    loop->driver = *driver;
    loop->driver_arg = arg;
    loop->thread = pthread_self();
    loop->process = getpid();
    loop->base_ns = tw_loop_now(loop);
    loop->base_tick = loop->begun = tw_wheel_now(wheel);
    loop->armed = TW_NEVER;
    loop->told_ns = UINT64_MAX;
    int error = tw_loop_update(loop);
    if (error != 0) {
        free(loop);
        return error;
    }
    *made = loop;
    return 0;
}

void tw_loop_free(struct tw_loop *loop)
{
    if (loop == NULL)
        return;
    TW_ASSERT(loop->process != getpid() || pthread_equal(pthread_self(), loop->thread));
    note_time(loop);
    for (struct tw__loop_pass *pass = loop->pass; pass != NULL; pass = pass->outer)
        pass->gone = true;
    loop->driver.close(loop->driver_arg);
    free(loop);
}

void *tw_loop_driver_arg(const struct tw_loop *loop)
{
    TW_ASSERT(loop != NULL);
    return loop->driver_arg;
}

struct tw_wheel *tw_loop_wheel(const struct tw_loop *loop)
{
    TW_ASSERT(loop != NULL);
    return loop->wheel;
}

/* ---- filing ---------------------------------------------------------------------------------------------- */

typedef int file_fn(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t deadline);

/* Brings a wheel to the present after it has refused a timer. A wheel that refuses measures a deadline from
 * the latest tick that it was polled for, and a wheel that grows from the tick up to which it has done its
 * work. So the work is done here, up to the present or to the tick before the first deadline: a poll at that
 * deadline would take a due timer out. A wheel with a timer that is due already is left where it is. */
static void catch_up(struct tw_loop *loop)
{
    uint64_t tick = tick_begun(loop, tw_loop_now(loop)), stands = tw_wheel_now(loop->wheel),
             first = tw_wheel_next_exact(loop->wheel);
    if (tick < stands || first <= stands)
        return;
    struct tw_timer *due = tw_wheel_poll(loop->wheel, tick < first ? tick : first - 1);
    (void)due;
    TW_ASSERT(due == NULL);
}

static int file_timer(struct tw_loop *loop, struct tw_timer *timer, uint64_t at_ns, file_fn *into)
{
    may_change(loop);
    uint64_t tick = tw_loop_tick(loop, at_ns), old = tw_timer_deadline(timer);
    bool moved = tw_timer_pending(timer);
    if (tick < loop->armed)
        note_time(loop);
    int error = into(loop->wheel, timer, tick);
    if (error != 0) {
        catch_up(loop);
        error = into(loop->wheel, timer, tick);
    }
    if (error == 0 && tw_timer_deadline(timer) < loop->armed) {
        error = tw_loop_update(loop);
        if (error != 0 && moved) /* the driver's timer is off, so this timer would never fire */
            tw_wheel_move_at(loop->wheel, timer, old);
        else if (error != 0)
            tw_wheel_cancel(loop->wheel, timer);
    }
    return error;
}

int tw_loop_add_at(struct tw_loop *loop, struct tw_timer *timer, uint64_t at_ns)
{
    return TW__LOOP_AUDITED(loop, file_timer(loop, timer, at_ns, tw_wheel_add_at));
}

int tw_loop_add_in(struct tw_loop *loop, struct tw_timer *timer, uint64_t ns)
{
    return TW__LOOP_AUDITED(
        loop, file_timer(loop, timer, tw__add_saturating(tw_loop_now(loop), ns), tw_wheel_add_at));
}

int tw_loop_move_at(struct tw_loop *loop, struct tw_timer *timer, uint64_t at_ns)
{
    return TW__LOOP_AUDITED(loop, file_timer(loop, timer, at_ns, tw_wheel_move_at));
}

int tw_loop_move_in(struct tw_loop *loop, struct tw_timer *timer, uint64_t ns)
{
    return TW__LOOP_AUDITED(
        loop, file_timer(loop, timer, tw__add_saturating(tw_loop_now(loop), ns), tw_wheel_move_at));
}

static bool cancel(struct tw_loop *loop, struct tw_timer *timer)
{
    may_change(loop);
    bool pending = tw_wheel_cancel(loop->wheel, timer);
    if (pending)
        let_end(loop);
    return pending;
}

bool tw_loop_cancel(struct tw_loop *loop, struct tw_timer *timer)
{
    return TW__LOOP_AUDITED(loop, cancel(loop, timer));
}

/* ---- firing ---------------------------------------------------------------------------------------------- */

/* Fires the timers that are due, as far as the budget goes; sets *done to whether no more are due. Returns
 * false when a callback has freed the loop. */
static bool fire(struct tw_loop *loop, struct tw__loop_pass *pass, bool *done)
{
    struct tw_timer *timer;
    enum tw_poll polled;
    const uint64_t tick = pass->tick;
    while ((polled = tw_wheel_poll_budget(loop->wheel, tick, &pass->budget, &timer)) == TW_POLL_DUE) {
        pass->fired++;
        loop->due(loop->arg, timer);
        if (pass->gone)
            return false;
    }
    *done = polled == TW_POLL_IDLE;
    return true;
}

void tw_loop_turn(struct tw_loop *loop)
{
    may_change(loop);
    uint64_t now_ns = tw_loop_now(loop);
    struct tw__loop_pass pass = {.outer = loop->pass, .tick = tick_begun(loop, now_ns), .budget = loop->budget};
    bool done;
    loop->pass = &pass;
    loop->armed = 0;
    if (!fire(loop, &pass, &done))
        return;
    loop->pass = pass.outer;
    if (pass.outer != NULL)
        pass.outer->reentered = true;
    loop->armed = 0;
    if (done)
        arm(loop, tw_wheel_next_bound(loop->wheel));
    else
        tell(loop, 0, now_ns); /* in the next iteration */
    TW_ASSERT_WALK(tw__loop_check(loop) == NULL);
}
