/* SPDX-License-Identifier: MIT
 *
 * A wheel in a loop: what is the same for every loop.
 *
 *     the program  -- add, move, cancel -->  tw_loop  -- at what time? -->  driver: one timer of the loop
 *          ^                                  |   ^                                   |
 *          +-------- due(arg, timer) ---------+   +---------- tw_loop_turn() ---------+
 *
 * Ticks. The tick at which the wheel stands when it is attached begins at that moment. A deadline becomes the first tick
 * that does not begin before it (the ceiling), the present becomes the tick that has begun (the floor). A timer fires
 * when floor(now) has reached ceiling(deadline), so now >= deadline: never early. The wheel is never polled at the last
 * tick there is, so what sums saturate to never fires.
 *
 * Invariants
 *   L1  Outside of tw_loop_turn() no timer of the wheel is due before the tick `armed`, and the driver will call by the
 *       time that tick begins, or a day from when it was told, and is told anew then.
 *   L2  `armed` is 0 while a turn is under way or is to come next: nothing is earlier, so nothing is set.
 *   L3  A turn does at most `budget` units of work, all for one tick: a timer that its callback files again comes due on
 *       a later one.
 *
 * The bound is enough. L1 speaks of deadlines, while the wheel may want to refile a far timer sooner than `armed`, when that
 * was set before the timer was filed. Refiled late it still fires on its tick, and `armed` is not past that.
 *
 * A cancelled timer does not set the loop's timer later: that would be a system call for each, to save one turn. Only a
 * loop that would not end for it is told when the last one has gone.
 *
 * The wheel of a loop that has slept stands in the past. Before the loop's timer is set for a new one, the wheel is brought
 * to the present (with no work done, by a budget of 0): filed from there, the timer needs no refiling on its way that
 * it would not need in a wheel that had ticked all the time.
 *
 * Rejected: the loop's own notion of now (early by what callbacks have taken since); a timer of the loop for each tick
 * (wakes an idle machine); reading how far a callback has got to stop in time (a clock read for each timer).
 */
#include <tickwheel/loop.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const uint64_t tick_min_ns = 1000, tick_max_ns = UINT64_C(3600000000000);
/* The budget: a million timers due at once cost 39 ns each with 256 in a turn of epoll, 31 ns with 4,096, 90 ns with 16.
 * With callbacks of a microsecond 256 keep other events waiting for a quarter of a millisecond. */
enum { NS_PER_S = 1000000000, TICK_NS = 1000000, BUDGET = 256 };
/* The farthest that a driver is told: within an int of milliseconds, exact in a double of seconds. */
static const uint64_t day_ns = UINT64_C(86400000000000);

/* A call of tw_loop_turn() under way; more than one where a callback runs the loop. */
struct turn {
    struct turn *outer;
    bool gone; /* the loop was freed */
};

struct tw_loop {
    struct tw_wheel *wheel;
    uint64_t armed; /* L1; TW_NEVER: the driver's timer is off */
    uint64_t tick_ns, base_ns, base_tick;
    uint32_t budget;
    tw_due_fn *due;
    void *arg;
    struct turn *turn;
    struct tw_loop_driver driver;
    void *driver_arg;
};

/* ---- options ------------------------------------------------------------------------------------------------ */

int tw_loop_check(const struct tw_loop_options *options, char *message, size_t size)
{
    uint64_t tick_ns = options->tick_ns;
    if (tick_ns != 0 && (tick_ns < tick_min_ns || tick_ns > tick_max_ns)) {
        snprintf(message, size,
                 "tick_ns is %" PRIu64 ": expected 1,000 to 3,600,000,000,000, or 0 for a millisecond",
                 tick_ns);
        return TW_EINVAL;
    }
    if (options->due == NULL) {
        snprintf(message, size, "due is NULL: expected a function");
        return TW_EINVAL;
    }
    return 0;
}

/* ---- time --------------------------------------------------------------------------------------------------- */

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t tw_loop_now(const struct tw_loop *loop)
{
    struct timespec now;
    if (loop->driver.now != NULL)
        return loop->driver.now(loop->driver_arg);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t tw_loop_tick(const struct tw_loop *loop, uint64_t at_ns)
{
    if (at_ns <= loop->base_ns)
        return loop->base_tick;
    if (at_ns == UINT64_MAX)
        return TW_NEVER;
    return sum(loop->base_tick, (at_ns - loop->base_ns - 1) / loop->tick_ns + 1);
}

uint64_t tw_loop_time(const struct tw_loop *loop, uint64_t tick)
{
    uint64_t ns;
    if (tick <= loop->base_tick)
        return loop->base_ns;
    if (__builtin_mul_overflow(tick - loop->base_tick, loop->tick_ns, &ns))
        return UINT64_MAX;
    return sum(loop->base_ns, ns);
}

/* The tick that has begun at a time; never the last one there is. */
static uint64_t tick_begun(const struct tw_loop *loop, uint64_t now_ns)
{
    uint64_t tick = sum(loop->base_tick, (now_ns - loop->base_ns) / loop->tick_ns);
    return tick < TW_NEVER ? tick : TW_NEVER - 1;
}

/* ---- the loop's timer ------------------------------------------------------------------------------------------ */

static int arm(struct tw_loop *loop, uint64_t tick)
{
    uint64_t at_ns = UINT64_MAX, now_ns = tw_loop_now(loop);
    if (tick != TW_NEVER) {
        uint64_t latest_ns = sum(now_ns, day_ns);
        at_ns = tw_loop_time(loop, tick);
        at_ns = at_ns < latest_ns ? at_ns : latest_ns;
    }
    int error = loop->driver.arm(loop->driver_arg, at_ns, now_ns);
    if (error == 0)
        loop->armed = tick;
    return error;
}

int tw_loop_update(struct tw_loop *loop)
{
    uint64_t tick = tw_wheel_next_bound(loop->wheel);
    return tick < loop->armed ? arm(loop, tick) : 0;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

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
    if (tw_loop_check(options, NULL, 0) != 0)
        return TW_EINVAL;
    struct tw_loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL)
        return TW_ENOMEM;
    take_options(loop, options);
    loop->wheel = wheel;
    loop->driver = *driver;
    loop->driver_arg = arg;
    loop->base_ns = tw_loop_now(loop);
    loop->base_tick = tw_wheel_now(wheel);
    loop->armed = TW_NEVER;
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
    for (struct turn *turn = loop->turn; turn != NULL; turn = turn->outer)
        turn->gone = true;
    loop->driver.close(loop->driver_arg);
    free(loop);
}

void *tw_loop_driver_arg(const struct tw_loop *loop)
{
    return loop->driver_arg;
}

struct tw_wheel *tw_loop_wheel(const struct tw_loop *loop)
{
    return loop->wheel;
}

/* ---- filing ---------------------------------------------------------------------------------------------------- */

typedef int file_fn(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t deadline);

/* Brings a wheel that has slept to the present; what is due stays in it. */
static void note_time(struct tw_loop *loop)
{
    uint32_t none = 0;
    struct tw_timer *timer;
    tw_wheel_poll_budget(loop->wheel, tick_begun(loop, tw_loop_now(loop)), &none, &timer);
}

/* The same for a wheel that refuses, or grows, and measures from what it has done: as far as nothing is due. One in which
 * something is due already is left where it is, as a poll would take that out. */
static void catch_up(struct tw_loop *loop)
{
    uint64_t tick = tick_begun(loop, tw_loop_now(loop)), first = tw_wheel_next_exact(loop->wheel);
    tick = tick < first ? tick : first - 1; /* no deadline is 0 */
    if (tick >= tw_wheel_now(loop->wheel))
        tw_wheel_poll(loop->wheel, tick);
}

static int file(struct tw_loop *loop, struct tw_timer *timer, uint64_t at_ns, file_fn *into)
{
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
        if (error != 0 && moved) /* from where it would never fire: the driver was off */
            tw_wheel_move_at(loop->wheel, timer, old);
        else if (error != 0)
            tw_wheel_cancel(loop->wheel, timer);
    }
    return error;
}

int tw_loop_add_at(struct tw_loop *loop, struct tw_timer *timer, uint64_t at_ns)
{
    return file(loop, timer, at_ns, tw_wheel_add_at);
}

int tw_loop_add_in(struct tw_loop *loop, struct tw_timer *timer, uint64_t ns)
{
    return file(loop, timer, sum(tw_loop_now(loop), ns), tw_wheel_add_at);
}

int tw_loop_move_at(struct tw_loop *loop, struct tw_timer *timer, uint64_t at_ns)
{
    return file(loop, timer, at_ns, tw_wheel_move_at);
}

int tw_loop_move_in(struct tw_loop *loop, struct tw_timer *timer, uint64_t ns)
{
    return file(loop, timer, sum(tw_loop_now(loop), ns), tw_wheel_move_at);
}

bool tw_loop_cancel(struct tw_loop *loop, struct tw_timer *timer)
{
    bool pending = tw_wheel_cancel(loop->wheel, timer);
    if (pending && loop->driver.lingers && loop->armed != 0 && tw_wheel_count(loop->wheel) == 0)
        arm(loop, TW_NEVER);
    return pending;
}

/* ---- firing ---------------------------------------------------------------------------------------------------- */

void tw_loop_turn(struct tw_loop *loop)
{
    struct turn turn = {.outer = loop->turn};
    uint64_t now_ns = tw_loop_now(loop), tick = tick_begun(loop, now_ns);
    uint32_t budget = loop->budget;
    struct tw_timer *timer;
    enum tw_polled polled;
    loop->turn = &turn;
    loop->armed = 0;
    while ((polled = tw_wheel_poll_budget(loop->wheel, tick, &budget, &timer)) == TW_POLL_DUE) {
        loop->due(loop->arg, timer);
        if (turn.gone)
            return;
    }
    loop->turn = turn.outer;
    loop->armed = 0;
    if (polled == TW_POLL_MORE)
        loop->driver.arm(loop->driver_arg, 0, now_ns); /* the next turn */
    else
        arm(loop, tw_wheel_next_bound(loop->wheel));
}
