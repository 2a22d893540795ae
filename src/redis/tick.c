/* SPDX-License-Identifier: MIT
 *
 * The tick: the one timer of the server that turns the wheel.
 *
 * Each tick does a little of everything that waits: it frees tasks of removed schedules, gives targets that refused
 * another try, and delivers what is due, until the budget of tasks or of time is used up. The server then serves its
 * clients, and the next tick follows. While the gap between two ticks shows that clients had to wait,
 * the budget shrinks, to an eighth at least.
 *
 * When nothing may be delivered (a pause, another role, no memory), due tasks are still taken off the wheel, into the
 * queue of overdue ones: so the wheel never falls behind, and INFO can say how many wait.
 *
 * The server's timers do not come sooner than a millisecond after the last one has ended, which would leave a third of the
 * time unused while there is a backlog. So then the next tick is asked for through the event loop, by a pipe that is
 * always readable. What has come while a tick ran is read in the next round of the loop, and answered at the end of that
 * round, after the timers: so the tick leaves out a round, or each answer would wait for a second tick. In the round after
 * it the timer, set to no time at all, comes at its end.
 *
 * Writing while the server is paused for a failover or a shutdown ends the server with a failed assertion. So each tick
 * asks, immediately before its first write, whether replicas must not be written to; nothing else runs until it ends.
 */
#include "tick.h"

#include <unistd.h>

#include "batch.h"
#include "config.h"
#include "deliver.h"
#include "keys.h"
#include "schedules/memory.h"

enum {
    SHARES = 8,            /* parts of the budget */
    BUSY_US = 2000,        /* a gap between two ticks that shows that clients wait */
    LOOK_AT_CLOCK = 8,     /* tasks between two looks */
    BIG = 4096,            /* bytes of a task after which one is due too */
    REAP_TASKS = 1000,     /* freed in one tick */
    COLLECT_TASKS = 10000, /* taken off the wheel in one tick when nothing may be delivered */
    REFILE_FACTOR = 8,     /* the wheel's own work for each task */
    PAUSE_MS = 10,         /* between two looks whether a pause is over */
    BACK_OFF_MS = 100,     /* the first wait for memory, replicas, disks; then it doubles */
    BACK_OFF_MAX_MS = 5000,
    SLEEP_MAX_MS = 3600 * 1000,
    JUMP_US = 1000000,
    NOTICE_US = 20000,
    BACK_MS = 10,
    ROUNDS = 2 /* of the event loop from a tick to the next, while there is a backlog */
};

static RedisModuleCtx *own_ctx;
static RedisModuleTimerID timer;
static bool armed, loading;
static int always_readable =
    -1;                 /* a pipe's end: while the event loop watches it, it calls on_round() in each round */
static uint32_t rounds; /* of the event loop to come before the timer is asked for; 0: it is not */
static uint64_t armed_ms;
static uint32_t share = SHARES;
static uint64_t ended_us; /* monotonic: when the last tick ended that left work behind; else 0 */
static uint64_t back_off_ms;
static uint64_t wall_us, monotonic_us; /* at the last look */

static unsigned long long (*server_us)(void); /* Redis 7.2 and later, else NULL */

/* From Redis 7.2 on, time stands still for the server while it does one thing, and so it does for the id of an entry that
 * the tick adds. What is due by the clock and not by that one waits until the server's has moved on: else an entry would
 * say that it is older than its task's due time. */
static uint64_t now_of_tick(void)
{
    uint64_t now_ms = tw__now_ms(), server_ms = server_us == NULL ? now_ms : server_us() / 1000;
    return server_ms < now_ms ? server_ms : now_ms;
}

static uint64_t now_us(void)
{
    return RedisModule_MonotonicMicroseconds();
}

uint32_t tw__tick_budget_tasks(void)
{
    uint64_t tasks = (uint64_t)tw__config.tasks_per_tick * share / SHARES;
    return tasks == 0 ? 1 : (uint32_t)tasks;
}

uint32_t tw__tick_budget_us(void)
{
    return (uint32_t)((uint64_t)tw__config.us_per_tick * share / SHARES);
}

/* ---- the clock --------------------------------------------------------------------------------------------------- */

/* The wall clock may be set; the monotonic one beside it tells by how much. Returns whether it was. */
static bool watch_clock(uint64_t now_ms)
{
    uint64_t wall = now_ms * 1000, monotonic = now_us();
    int64_t jump = wall_us == 0 ? 0 : (int64_t)(wall - wall_us) - (int64_t)(monotonic - monotonic_us);
    if (jump > JUMP_US || jump < -JUMP_US) {
        tw__shared.counts.clock_jumps++;
        RedisModule_Log(own_ctx, "warning", "tickwheel: the clock was set by %lld ms",
                        (long long)(jump / 1000));
    }
    wall_us = wall;
    monotonic_us = monotonic;
    uint64_t stands = tw_wheel_now(tw__all.behind != NULL ? tw__all.behind : tw__all.wheel);
    if (now_ms + BACK_MS < stands)
        tw__clock_back(now_ms);
    return jump > NOTICE_US || jump < -NOTICE_US;
}

/* ---- arming ------------------------------------------------------------------------------------------------------ */

static void tick(RedisModuleCtx *ctx, void *data);

static void disarm(void)
{
    if (armed)
        RedisModule_StopTimer(own_ctx, timer, NULL);
    armed = false;
}

void tw__arm(uint64_t ms)
{
    if (loading || rounds > 0 || (armed && armed_ms <= ms))
        return;
    uint64_t now_ms = tw__now_ms(), wait_ms = ms > now_ms ? ms - now_ms : 0;
    if (wait_ms > SLEEP_MAX_MS)
        wait_ms = SLEEP_MAX_MS;
    disarm();
    timer = RedisModule_CreateTimer(own_ctx, (mstime_t)wait_ms, tick, NULL);
    armed = true;
    armed_ms = now_ms + wait_ms;
}

static void on_round(int fd, void *data, int mask)
{
    (void)data, (void)mask;
    if (--rounds > 0)
        return;
    RedisModule_EventLoopDel(fd, REDISMODULE_EVENTLOOP_READABLE);
    tw__arm(tw__now_ms());
}

/* The next tick follows when the clients have been served and answered that are waiting now. */
static void go_on_soon(void)
{
    if (rounds > 0 || loading)
        return;
    if (RedisModule_EventLoopAdd(always_readable, REDISMODULE_EVENTLOOP_READABLE, on_round, NULL) ==
        REDISMODULE_OK)
        rounds = ROUNDS;
    else
        tw__arm(tw__now_ms() + 1);
}

/* When there is work next, on the wall clock; what has been put off apart. */
static uint64_t next_work(uint64_t now_ms)
{
    if (tw__schedule_reaping())
        return now_ms + 1; /* not at once: a schedule may be with the thread that frees, and not be here yet */
    uint64_t next = tw__next_work(), retry = tw_wheel_next_bound(tw__all.retries);
    if (retry == TW_NEVER)
        return next;
    uint64_t monotonic_ms = now_us() / 1000;
    retry = now_ms + (retry > monotonic_ms ? retry - monotonic_ms : 0);
    return retry < next ? retry : next;
}

void tw__arm_next(void)
{
    uint64_t now_ms = tw__now_ms(), next = tw__any_waiting() ? now_ms : next_work(now_ms);
    if (next != TW_NEVER)
        tw__arm(next);
}

/* ---- work -------------------------------------------------------------------------------------------------------- */

static void give_another_try(uint64_t monotonic_ms)
{
    struct tw_timer *retry;
    while ((retry = tw_wheel_poll(tw__all.retries, monotonic_ms)) != NULL)
        tw__give_turn(TW_CONTAINER(retry, struct tw__route, retry));
}

/* Takes what is due off the wheel, though it may not be delivered. Returns whether there is more. */
static bool collect(uint64_t now_ms)
{
    uint32_t budget = COLLECT_TASKS;
    struct tw__task *task;
    enum tw__taken taken;
    while ((taken = tw__take(now_ms, false, &budget, &task)) == TW__TAKEN_TASK)
        tw__file_overdue(task);
    return taken == TW__TAKEN_MORE;
}

/* Delivers what is due. *more: the budget ended first. Returns why it had to stop. */
static enum tw__defer deliver(RedisModuleCtx *ctx, uint64_t now_ms, uint64_t started_us, bool *more)
{
    uint32_t tasks = tw__tick_budget_tasks(), us = tw__tick_budget_us();
    uint32_t work = tasks * REFILE_FACTOR;
    enum tw__defer why = TW__DEFER_NONE;
    enum tw__taken taken = TW__TAKEN_MORE;
    struct tw__task *task;
    tw__batch_begin(ctx);
    while (tasks > 0 && (taken = tw__take(now_ms, true, &work, &task)) == TW__TAKEN_TASK) {
        bool big = tw__memory.usable(task) > BIG;
        why = tw__deliver(ctx, task, now_ms);
        if (why != TW__DEFER_NONE) {
            tw__put_back(task);
            break;
        }
        if ((--tasks % LOOK_AT_CLOCK == 0 || big) && now_us() - started_us >= us)
            break;
    }
    tw__batch_finish();
    *more = taken != TW__TAKEN_NONE;
    return why;
}

/* Shrinks or widens the budget by what the gap since the last tick says; only while there is a backlog. */
static void adapt(uint64_t started_us)
{
    if (ended_us == 0)
        share = SHARES;
    else if (started_us - ended_us > BUSY_US)
        share -= share > 1;
    else
        share += share < SHARES;
}

/* When to look again after deliveries had to stop; TW_NEVER when an event will tell. */
static uint64_t look_again(enum tw__defer why, uint64_t now_ms)
{
    if (why == TW__DEFER_ROLE)
        return TW_NEVER;
    if (why == TW__DEFER_PAUSE)
        return now_ms + PAUSE_MS;
    back_off_ms = back_off_ms == 0 ? BACK_OFF_MS : back_off_ms * 2;
    if (back_off_ms > BACK_OFF_MAX_MS)
        back_off_ms = BACK_OFF_MAX_MS;
    return now_ms + back_off_ms;
}

/* Delivers, or puts off; returns when the next tick has to come for it. */
static uint64_t serve(RedisModuleCtx *ctx, uint64_t now_ms, uint64_t started_us)
{
    bool more = false;
    enum tw__defer why = tw__deliver_allowed(ctx);
    if (why == TW__DEFER_NONE) {
        if (tw__all.empty > 0)
            tw__keys_remove_empty_ones(ctx);
        adapt(started_us);
        why = deliver(ctx, now_ms, started_us, &more);
        ended_us = more && why == TW__DEFER_NONE ? now_us() : 0;
    }
    if (why == TW__DEFER_NONE) {
        back_off_ms = 0;
        if (more)
            return now_ms;
        /* What is left in a queue came due once already, before the clock was set back. */
        return tw__any_waiting() ? now_ms + PAUSE_MS : TW_NEVER;
    }
    more = collect(now_ms);
    if (!tw__any_waiting())
        return more ? now_ms : TW_NEVER;
    tw__shared.counts.deferred[why]++;
    return more ? now_ms : look_again(why, now_ms);
}

static void tick(RedisModuleCtx *ctx, void *data)
{
    (void)data;
    armed = false;
    uint64_t now_ms = now_of_tick(), started_us = now_us();
    (void)watch_clock(now_ms);
    tw__schedule_reap(REAP_TASKS);
    give_another_try(started_us / 1000);
    uint64_t next = serve(ctx, now_ms, started_us);
    uint64_t work = next_work(now_ms);
    if (work < next)
        next = work;
    if (next <= now_ms)
        go_on_soon();
    else if (next != TW_NEVER)
        tw__arm(next);
    uint64_t took_us = now_us() - started_us;
    if (took_us > tw__shared.counts.tick_us_max)
        tw__shared.counts.tick_us_max = took_us;
}

void tw__tick_cron(void)
{
    uint64_t now_ms = tw__now_ms();
    bool jumped = watch_clock(now_ms);
    if (armed && !loading && (jumped || now_ms > armed_ms)) {
        /* The server's timers sleep by the monotonic clock and are due by the wall clock: after a step either way ours would
         * come too late. */
        disarm();
        tw__arm(now_ms);
    }
    if (tw__schedule_reaping() || tw__all.empty > 0)
        tw__arm(now_ms);
}

void tw__tick_loading(bool begun)
{
    loading = begun;
    if (begun)
        disarm();
}

void tw__tick_start(RedisModuleCtx *ctx)
{
    own_ctx = RedisModule_GetDetachedThreadSafeContext(ctx);
    RedisModule_GetApi("RedisModule_CachedMicroseconds", (void **)&server_us);
    loading = (RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_LOADING) != 0;
    int ends[2];
    if (pipe(ends) == 0 && write(ends[1], "", 1) == 1)
        always_readable = ends[0];
    (void)watch_clock(tw__now_ms());
}
