/* SPDX-License-Identifier: MIT
 *
 * A server timer cannot expire sooner than a millisecond after the last timer callback has ended. This would
 * leave a third of the time unused while there is a backlog. So with a backlog the next tick comes
 * through the event loop, by a pipe that is always readable.
 *
 * Requests that arrive during a tick are read in the next event-loop iteration, and answered at its end,
 * after timers have run. If the next tick ran in that iteration, each reply would wait for a second tick. So
 * we skip one iteration, and arm a zero-delay timer that expires at the end of the iteration after it.
 *
 *     iteration 1:  timers: tick, tw__redis_alarm_soon()
 *     iteration 2:  reads, timers: nothing
 *     iteration 3:  reads, timers: tick
 */
#include "alarm.h"

#include <base/assert.h>
#include <base/list.h>
#include <fcntl.h>
#include <unistd.h>

#include "queues/place.h"
#include "queues/queue.h"

enum {
    OVERSLEPT_MS = 20,
    SLEEP_MAX_MS = 1800 * 1000, /* past 35 minutes Redis 7.0 spins: it counts microseconds in an int */
    ROUNDS = 2                  /* event-loop iterations from a tick to the next, while there is a backlog */
};

static struct {
    RedisModuleCtx *ctx;
    tw__redis_alarm_fn *ring;
    RedisModuleTimerID id;
    bool set, paused; /* set: the timer is armed, and expires at `ms` */
    bool overslept;
    uint64_t ms;
    uint32_t rounds; /* event-loop iterations left before the timer is armed; 0: no count is running */
    int pipe[2];     /* holds a byte: while the event loop watches the pipe, each iteration calls on_round() */
} timer = {.pipe = {-1, -1}};

static void note_late(uint64_t now_ms)
{
    if (now_ms > timer.ms + OVERSLEPT_MS)
        timer.overslept = true;
}

static void on_alarm(RedisModuleCtx *ctx, void *data)
{
    (void)data;
    timer.set = false;
    note_late(tw__redis_now_ms());
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
    if (tw__redis_reaper_busy(tw__redis_shared.queues))
        return now_ms + 1; /* not at once: the background thread may not have handed a queue over yet */
    uint64_t next = tw__redis_place_next_work(tw__redis_shared.queues),
             retry = tw_wheel_next_bound(tw__redis_shared.queues->retries);
    if (retry == TW_NEVER)
        return next;
    uint64_t monotonic_ms = RedisModule_MonotonicMicroseconds() / 1000;
    retry = now_ms + (retry > monotonic_ms ? retry - monotonic_ms : 0);
    return retry < next ? retry : next;
}

void tw__redis_alarm_next(void)
{
    const struct tw__redis_queues *queues = tw__redis_shared.queues;
    bool waiting = tw__redis_place_any_waiting(queues) || !tw__list_empty(&queues->awake);
    uint64_t now_ms = tw__redis_now_ms(), next = waiting ? now_ms : tw__redis_alarm_work(now_ms);
    if (next != TW_NEVER)
        tw__redis_alarm_at(next);
}

void tw__redis_alarm_renew(uint64_t now_ms, bool clock_set)
{
    if (!timer.set || timer.paused || !(clock_set || now_ms > timer.ms))
        return;
    /* The server sleeps by the monotonic clock until a timer is due, but compares timers with the wall clock.
     * After a step in either direction our timer would expire too late. */
    note_late(now_ms);
    disarm();
    tw__redis_alarm_at(now_ms);
}

bool tw__redis_alarm_overslept(void)
{
    bool overslept = timer.overslept;
    timer.overslept = false;
    return overslept;
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
    /* The event loop refuses a pipe end of -1; then tw__redis_alarm_soon() arms the timer instead. */
    if (pipe2(timer.pipe, O_CLOEXEC) == 0 && write(timer.pipe[1], "", 1) != 1)
        timer.pipe[0] = -1;
}
