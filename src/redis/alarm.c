/* SPDX-License-Identifier: MIT
 *
 * The server's timers do not come sooner than a millisecond after the last one has ended, which would leave a
 * third of the time unused while there is a backlog. So then the next tick is asked for through the event loop,
 * by a pipe that is always readable. What has come while a tick ran is read in the next round of the loop, and
 * answered at the end of that round, after the timers: so the tick leaves out a round, or each answer would
 * wait for a second tick. In the round after it the timer, set to no time at all, comes at its end.
 *
 *     round 1 of the event loop:  timers: tick, tw__redis_alarm_soon()
 *     round 2:                    reads, timers: nothing
 *     round 3:                    reads, timers: tick
 */
#include "alarm.h"

#include <base/assert.h>
#include <fcntl.h>
#include <unistd.h>

#include "schedules/grave.h"
#include "schedules/place.h"

enum {
    SLEEP_MAX_MS = 1800 * 1000, /* past 35 minutes Redis 7.0 spins: it counts microseconds in an int */
    ROUNDS = 2                  /* of the event loop from a tick to the next, while there is a backlog */
};

static struct {
    RedisModuleCtx *ctx;
    tw__redis_alarm_fn *ring;
    RedisModuleTimerID id;
    bool set, paused; /* set: the timer is, and rings at `ms` */
    uint64_t ms;
    uint32_t rounds; /* of the event loop to come before the timer is asked for; 0: it is not */
    int pipe[2]; /* there is a byte in it: while the event loop watches it, it calls on_round() in each round */
} timer = {.pipe = {-1, -1}};

static void on_alarm(RedisModuleCtx *ctx, void *data)
{
    (void)data;
    timer.set = false;
    timer.ring(ctx);
}

static void disarm(void)
{
    if (timer.set)
        RedisModule_StopTimer(timer.ctx, timer.id, NULL);
    timer.set = false;
}

void tw__redis_alarm_at(uint64_t ms)
{
    if (timer.paused || timer.rounds > 0 || (timer.set && timer.ms <= ms))
        return;
    uint64_t now_ms = tw__redis_now_ms(), wait_ms = ms > now_ms ? ms - now_ms : 0;
    if (wait_ms > SLEEP_MAX_MS)
        wait_ms = SLEEP_MAX_MS;
    disarm();
    timer.id = RedisModule_CreateTimer(timer.ctx, (mstime_t)wait_ms, on_alarm, NULL);
    timer.set = true;
    timer.ms = now_ms + wait_ms;
}

static void on_round(int fd, void *data, int mask)
{
    (void)data, (void)mask;
    TW_ASSERT(timer.rounds > 0);
    if (--timer.rounds > 0)
        return;
    RedisModule_EventLoopDel(fd, REDISMODULE_EVENTLOOP_READABLE);
    tw__redis_alarm_at(tw__redis_now_ms());
}

void tw__redis_alarm_soon(void)
{
    if (timer.rounds > 0 || timer.paused)
        return;
    if (RedisModule_EventLoopAdd(timer.pipe[0], REDISMODULE_EVENTLOOP_READABLE, on_round, NULL) ==
        REDISMODULE_OK)
        timer.rounds = ROUNDS;
    else
        tw__redis_alarm_at(tw__redis_now_ms() + 1);
}

uint64_t tw__redis_alarm_work(uint64_t now_ms)
{
    if (tw__redis_grave_reaping(tw__redis_shared.schedules))
        return now_ms + 1; /* not at once: a schedule may be with the thread that frees, and not be here yet */
    uint64_t next = tw__redis_place_next_work(tw__redis_shared.schedules),
             retry = tw_wheel_next_bound(tw__redis_shared.schedules->retries);
    if (retry == TW_NEVER)
        return next;
    uint64_t monotonic_ms = RedisModule_MonotonicMicroseconds() / 1000;
    retry = now_ms + (retry > monotonic_ms ? retry - monotonic_ms : 0);
    return retry < next ? retry : next;
}

void tw__redis_alarm_next(void)
{
    uint64_t now_ms = tw__redis_now_ms(), next = tw__redis_place_any_waiting(tw__redis_shared.schedules)
                                                     ? now_ms
                                                     : tw__redis_alarm_work(now_ms);
    if (next != TW_NEVER)
        tw__redis_alarm_at(next);
}

void tw__redis_alarm_renew(uint64_t now_ms, bool clock_set)
{
    if (!timer.set || timer.paused || !(clock_set || now_ms > timer.ms))
        return;
    /* The server's timers sleep by the monotonic clock and are due by the wall clock: after a step either way
     * ours would come too late. */
    disarm();
    tw__redis_alarm_at(now_ms);
}

void tw__redis_alarm_pause(bool pause)
{
    timer.paused = pause;
    if (pause)
        disarm();
}

void tw__redis_alarm_start(RedisModuleCtx *ctx, tw__redis_alarm_fn *ring)
{
    timer.ctx = RedisModule_GetDetachedThreadSafeContext(ctx);
    timer.ring = ring;
    timer.paused = (RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_LOADING) != 0;
    /* The event loop takes no end of -1; then tw__redis_alarm_soon() sets the timer instead. */
    if (pipe2(timer.pipe, O_CLOEXEC) == 0 && write(timer.pipe[1], "", 1) != 1)
        timer.pipe[0] = -1;
}
