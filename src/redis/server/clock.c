/* SPDX-License-Identifier: MIT
 *
 * The wall clock can be set while the server runs. The monotonic clock cannot. So a look at both clocks shows
 * by how much the wall clock was set since the last look: by how much more it has gone on.
 *
 *     more than a second       counted and logged; the ends of leases move by as much (place.c)
 *     a smaller step forward   leases that ended in it begin anew
 *     a smaller step back      leases last longer by as much
 *
 * The server looks when an event-loop iteration begins, in each tick, and in its cron. An iteration may last
 * for long. So a command that files leases looks too, if the wall clock differs by more than LOOK_AGAIN_MS from
 * the last look. Otherwise a lease that begins between a step and the next look would be wrong by the whole
 * step. While a batch of deliveries is open nobody looks, because the batch has a time of its own.
 *
 * Nobody can read both clocks in one moment. If the process is suspended between two readings, their difference
 * is no step. So a difference counts only if readings that lie close together show it too.
 *
 * A look cannot know these things:
 * - Whether a wall clock that went on, but less than the monotonic clock, was set back or went slowly. Example:
 *   a script runs for 5 s, and meanwhile the clock is set back by 3 s. The difference is counted and logged,
 *   but moves no lease, so leases last 3 s longer.
 * - Whether the machine was suspended. The monotonic clock stands meanwhile. So a suspend is a step forward,
 *   and leases do not run on in it.
 * - Anything, if the monotonic clock goes back. Some servers read the processor's own counter, and a virtual
 *   machine may move to another processor. Then this look measures nothing.
 */
#include "shared.h"

#include "queues/place.h"

enum {
    STEP_US = 1000000,
    NOTICE_US = 20000,  /* a smaller difference does no harm */
    ROUND_US = 1000,    /* a smaller difference may come from rounding: times are cut off to milliseconds */
    TOGETHER_US = 1000, /* between two readings that lie close together */
    READINGS = 100,     /* then the last one has to do */
    MORE_MS = 5,        /* a difference may be off by so much, and no lease shall be shorter than its length */
    STILL_US = 3000000, /* without a look: longer than the server's cron waits, even with hz 1 */
    LOOK_AGAIN_MS = 100
};

struct reading {
    uint64_t wall_ms, monotonic_us;
};

static struct {
    uint64_t monotonic_us; /* at the last look; the wall clock is tw__redis_shared.iteration_ms */
    uint64_t heard_us;     /* the same at the last look that was not in the middle of an iteration */
    int64_t drift_us;      /* by how much the wall clock was set, for tw__redis_clock_was_set() */
} clocks;

/* ---- reading --------------------------------------------------------------------------------------------- */

static struct reading read_clocks(void)
{
    struct reading now = {.monotonic_us = RedisModule_MonotonicMicroseconds()};
    now.wall_ms = tw__redis_now_ms();
    return now;
}

/* Reads both clocks until that took no longer than TOGETHER_US. */
static struct reading read_together(void)
{
    struct reading now = read_clocks();
    for (int left = READINGS; left > 0 && RedisModule_MonotonicMicroseconds() - now.monotonic_us > TOGETHER_US;
         left--)
        now = read_clocks();
    return now;
}

/* By how much the wall clock was set since the last look, or 0 if that cannot be known. */
static int64_t set_since(const struct reading *now)
{
    if (tw__redis_shared.iteration_ms == 0 || now->monotonic_us < clocks.monotonic_us)
        return 0;
    return (int64_t)(now->wall_ms - tw__redis_shared.iteration_ms) * 1000 -
           (int64_t)(now->monotonic_us - clocks.monotonic_us);
}

/* ---- looking --------------------------------------------------------------------------------------------- */

/* The difference is large: notes it. `back`: the wall clock shows an earlier time than at the last look. */
static void note_step(RedisModuleCtx *ctx, int64_t set_us, bool back)
{
    tw__redis_shared.counts.clock_jumps++;
    RedisModule_Log(ctx, "warning", "tickwheel: the wall clock was set by %lld ms", (long long)(set_us / 1000));
    if (set_us > 0 || back)
        tw__redis_place_clock_set(tw__redis_shared.queues, set_us / 1000 + MORE_MS);
}

static void compare_clocks(RedisModuleCtx *ctx)
{
    struct tw__redis_shared *shared = &tw__redis_shared;
    struct reading now = read_clocks();
    int64_t set_us = set_since(&now);
    if (set_us > ROUND_US || set_us < -ROUND_US) {
        now = read_together();
        set_us = set_since(&now);
    }
    if (set_us > STEP_US || set_us < -STEP_US)
        note_step(ctx, set_us, now.wall_ms < shared->iteration_ms);
    else if (set_us > NOTICE_US)
        shared->serving = false; /* leases that have run out in this step could not be ended */
    if (set_us < -NOTICE_US && shared->serving_since_ms > now.wall_ms)
        shared->serving_since_ms = now.wall_ms; /* else leases would begin anew until the clock has caught up */
    clocks.drift_us += set_us;
    clocks.monotonic_us = now.monotonic_us;
    shared->iteration_ms = now.wall_ms;
    if (now.wall_ms + TW__REDIS_BACK_MS < tw__redis_place_now(shared->queues))
        tw__redis_place_clock_back(shared->queues, now.wall_ms);
}

void tw__redis_clock_look(RedisModuleCtx *ctx)
{
    compare_clocks(ctx);
    /* Leases that have run out while the server stood still could not be ended. */
    if ((int64_t)(clocks.monotonic_us - clocks.heard_us) > STILL_US)
        tw__redis_shared.serving = false;
    clocks.heard_us = clocks.monotonic_us;
}

uint64_t tw__redis_clock_now(RedisModuleCtx *ctx)
{
    uint64_t now_ms = tw__redis_now_ms();
    /* Without a sign, the difference is large too if the clock shows an earlier time. */
    if (now_ms - tw__redis_shared.iteration_ms <= LOOK_AGAIN_MS || tw__redis_shared.batch != NULL)
        return now_ms;
    compare_clocks(ctx);
    return tw__redis_shared.iteration_ms;
}

bool tw__redis_clock_was_set(void)
{
    if (clocks.drift_us <= NOTICE_US && clocks.drift_us >= -NOTICE_US)
        return false;
    clocks.drift_us = 0;
    return true;
}
