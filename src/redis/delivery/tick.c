/* SPDX-License-Identifier: MIT
 *
 * The tick is the callback of the module's timer (alarm.c). It turns the wheel.
 *
 * Each tick does a little of all pending work:
 * - It frees tasks of removed queues.
 * - It tries a target again whose wait after a refusal is over.
 * - It removes dead tasks that the settings do not let stay, in a part of the budget.
 * - It delivers due tasks, until the budget of tasks or of time is used up.
 *
 * The server then serves its clients, and the next tick follows. A long gap between two ticks shows that
 * clients had to wait. While that is so, the budget shrinks, but not below one eighth.
 *
 * When nothing may be delivered (a pause, another role, no memory), the tick still moves due tasks from the
 * wheel to the line of late tasks. So the wheel never falls behind, and INFO can say how many tasks wait.
 * When memory is full, tasks for workers still become ready, leases end, and dead tasks are removed: that frees
 * memory, and so does who takes tasks and acknowledges them.
 *
 * Each tick looks at the clocks first (server/clock.c), and takes its time from that look. So the clock cannot
 * be set between the two. Otherwise the tick would end leases that have just moved.
 *
 * A write while the server is paused for a failover or a shutdown ends the server with a failed assertion. So
 * each tick calls RedisModule_AvoidReplicaTraffic() immediately before its first write. Nothing else runs
 * until the tick ends, so the result holds for the whole tick.
 */
#include "tick.h"

#include <base/list.h>

#include "delivery.h"
#include "keyspace/alarm.h"
#include "keyspace/keys.h"
#include "purge.h"
#include "queues/place.h"
#include "queues/queue.h"
#include "queues/route.h"
#include "server/config.h"
#include "server/shared.h"
#include "workers.h"

enum {
    SHARES = 8,            /* parts of the budget */
    BUSY_US = 2000,        /* a gap between two ticks that shows that clients wait */
    LOOK_AT_CLOCK = 8,     /* tasks between two looks at the clock */
    BIG = 4096,            /* after a task of more bytes the tick looks at the clock too */
    REAP_TASKS = 1000,     /* tasks freed in one tick */
    COLLECT_TASKS = 10000, /* tasks taken off the wheel in one tick when nothing may be delivered */
    REFILE_FACTOR = 8,     /* steps of the wheel's own work for each task */
    PURGE_SHARE = 4,       /* dead tasks get at most so many parts of a budget: one */
    PAUSE_MS = 10,         /* between two checks whether a pause is over */
    BACK_OFF_MS = 100,     /* the first wait for memory, replicas or disks; then it doubles */
    BACK_OFF_MAX_MS = 5000
};

static struct {
    uint32_t share;    /* the present part of the budget, in SHARES */
    uint64_t ended_us; /* monotonic: the end of the last tick if it left work behind; else 0 */
    uint64_t back_off_ms;
    unsigned long long (*server_us)(void); /* Redis 7.2 and later, else NULL */
} ticks = {.share = SHARES};

/* The time of a tick, after its look at the clocks.
 *
 * From Redis 7.2 on, the server's own time stands still while it runs one command or callback. The ids of
 * entries that the tick adds come from that time. So a task is due only when it is due by both clocks.
 * Otherwise an entry could have an id that is older than the due time of its task. */
static uint64_t now_of_tick(void)
{
    uint64_t now_ms = tw__redis_shared.iteration_ms,
             server_ms = ticks.server_us == NULL ? now_ms : ticks.server_us() / 1000;
    return server_ms < now_ms ? server_ms : now_ms;
}

static uint64_t now_us(void)
{
    return RedisModule_MonotonicMicroseconds();
}

uint32_t tw__redis_tick_budget_tasks(void)
{
    uint64_t tasks = (uint64_t)tw__redis_config.tasks_per_tick * ticks.share / SHARES;
    return tasks == 0 ? 1 : (uint32_t)tasks;
}

uint32_t tw__redis_tick_budget_us(void)
{
    return (uint32_t)((uint64_t)tw__redis_config.us_per_tick * ticks.share / SHARES);
}

/* ---- work ------------------------------------------------------------------------------------------------ */

static void give_another_try(uint64_t monotonic_ms)
{
    struct tw_timer *retry;
    while ((retry = tw_wheel_poll(tw__redis_shared.queues->retries, monotonic_ms)) != NULL)
        tw__redis_place_make_ready(TW_CONTAINER(retry, struct tw__redis_route, retry));
}

/* Removes dead tasks that may not stay. Returns whether there are more. */
static bool purge(struct tw__redis_batch *batch, uint64_t now_ms, uint64_t started_us)
{
    return tw__redis_purge_some(batch, now_ms, tw__redis_tick_budget_tasks() / PURGE_SHARE + 1,
                                started_us + tw__redis_tick_budget_us() / PURGE_SHARE);
}

static bool is_for_workers(const struct tw__redis_task *task)
{
    const struct tw__redis_route *route = tw__redis_route_of(tw__redis_shared.queues, task);
    return tw__redis_route_plan(route).kind == TW__REDIS_WORKERS;
}

/* Delivers due tasks. Sets *more if the budget ended first. Returns TW__REDIS_DEFER_NONE, or why it had to
 * stop. When memory is `full`, only tasks for workers become ready, and leases end, because an acknowledged
 * task frees memory. Tasks with targets are put aside. */
static enum tw__redis_defer deliver_batch(RedisModuleCtx *ctx, bool full, uint64_t now_ms, uint64_t started_us,
                                          bool *more)
{
    struct tw__redis_queues *queues = tw__redis_shared.queues;
    enum tw__redis_source from = full ? TW__REDIS_FROM_LATE : TW__REDIS_FROM_ALL;
    uint32_t tasks = tw__redis_tick_budget_tasks(), us = tw__redis_tick_budget_us(),
             work = full ? COLLECT_TASKS : tasks * REFILE_FACTOR;
    enum tw__redis_defer why = TW__REDIS_DEFER_NONE;
    enum tw__redis_taken taken = TW__REDIS_TAKEN_MORE;
    struct tw__redis_task *task;
    struct tw__redis_batch batch;
    tw__redis_batch_begin(&batch, ctx);
    bool dead = purge(&batch, now_ms, started_us);
    while (tasks > 0) {
        taken = tw__redis_place_take(queues, now_ms, from, &work, &task);
        if (taken == TW__REDIS_TAKEN_NONE || taken == TW__REDIS_TAKEN_MORE)
            break;
        if (full && !is_for_workers(task)) {
            tw__redis_place_put_aside(queues, task);
            continue;
        }
        bool big = tw__redis_task_bytes(task, &queues->memory) > BIG;
        why = tw__redis_deliver(&batch, &task, taken, now_ms);
        if (why != TW__REDIS_DEFER_NONE) {
            tw__redis_place_put_back(queues, task, taken);
            break;
        }
        if ((--tasks % LOOK_AT_CLOCK == 0 || big) && now_us() - started_us >= us)
            break;
    }
    tw__redis_deliver_finish(&batch);
    *more = dead || taken != TW__REDIS_TAKEN_NONE;
    return why;
}

/* Shrinks the budget if the gap since the last tick was long, otherwise widens it. Without a backlog the
 * budget is full. */
static void adapt(uint64_t started_us)
{
    if (ticks.ended_us == 0)
        ticks.share = SHARES;
    else if (started_us - ticks.ended_us > BUSY_US)
        ticks.share -= ticks.share > 1;
    else
        ticks.share += ticks.share < SHARES;
}

/* Returns when to look again after deliveries had to stop, or TW_NEVER if a server event will tell. */
static uint64_t look_again(enum tw__redis_defer why, uint64_t now_ms)
{
    if (why == TW__REDIS_DEFER_ROLE || why == TW__REDIS_DEFER_STOPPED)
        return TW_NEVER;
    if (why == TW__REDIS_DEFER_PAUSE)
        return now_ms + PAUSE_MS;
    ticks.back_off_ms = ticks.back_off_ms == 0 ? BACK_OFF_MS : ticks.back_off_ms * 2;
    if (ticks.back_off_ms > BACK_OFF_MAX_MS)
        ticks.back_off_ms = BACK_OFF_MAX_MS;
    return now_ms + ticks.back_off_ms;
}

/* Notes since when workers have been able to end their leases. When memory is full, they are. */
static void note_serving(enum tw__redis_defer why, uint64_t now_ms)
{
    bool serving = why == TW__REDIS_DEFER_NONE || why == TW__REDIS_DEFER_OOM;
    if (serving && !tw__redis_shared.serving)
        tw__redis_shared.serving_since_ms = now_ms;
    tw__redis_shared.serving = serving;
}

/* Delivers the due tasks. Returns TW__REDIS_DEFER_NONE and sets *next to the time of the next tick. Otherwise
 * returns why it could not deliver, or had to stop. */
static enum tw__redis_defer deliver_due(RedisModuleCtx *ctx, uint64_t now_ms, uint64_t started_us,
                                        uint64_t *next)
{
    bool more = false;
    enum tw__redis_defer why = tw__redis_gate(ctx);
    note_serving(why, now_ms);
    if (why != TW__REDIS_DEFER_NONE)
        return why;
    if (tw__redis_shared.queues->empty > 0)
        tw__redis_keys_remove_empty_ones(ctx);
    adapt(started_us);
    why = deliver_batch(ctx, false, now_ms, started_us, &more);
    ticks.ended_us = more && why == TW__REDIS_DEFER_NONE ? now_us() : 0;
    if (why != TW__REDIS_DEFER_NONE)
        return why;
    ticks.back_off_ms = 0;
    /* A task that is left in a line came due before the clock was set back by a few milliseconds. */
    *next = more ? now_ms : tw__redis_place_any_waiting(tw__redis_shared.queues) ? now_ms + PAUSE_MS : TW_NEVER;
    return TW__REDIS_DEFER_NONE;
}

/* Moves the due tasks to a line, because they cannot be delivered now. Returns the time of the next tick. */
static uint64_t postpone(RedisModuleCtx *ctx, uint64_t now_ms, uint64_t started_us, enum tw__redis_defer why)
{
    bool more = false;
    if (why == TW__REDIS_DEFER_OOM) {
        enum tw__redis_defer refused = deliver_batch(ctx, true, now_ms, started_us, &more);
        why = refused != TW__REDIS_DEFER_NONE ? refused : why;
    }
    note_serving(why, now_ms); /* the batch may have been refused */
    if (why != TW__REDIS_DEFER_OOM)
        more = tw__redis_place_collect(tw__redis_shared.queues, now_ms, COLLECT_TASKS);
    if (more)
        return now_ms; /* the tasks are put off when this work has been done */
    if (!tw__redis_place_any_waiting(tw__redis_shared.queues))
        return TW_NEVER;
    tw__redis_shared.counts.deferred[why]++;
    return look_again(why, now_ms);
}

static void tick(RedisModuleCtx *ctx)
{
    uint64_t started_us = now_us(), next, other;
    tw__redis_clock_look(ctx);
    uint64_t now_ms = now_of_tick();
    if (tw__redis_alarm_overslept() && ticks.ended_us == 0) {
        tw__redis_alarm_soon(); /* workers may have ended their leases meanwhile: the server reads that first */
        return;
    }
    tw__redis_reaper_run(tw__redis_shared.queues, REAP_TASKS);
    give_another_try(started_us / 1000);
    enum tw__redis_defer why = deliver_due(ctx, now_ms, started_us, &next);
    if (why != TW__REDIS_DEFER_NONE)
        next = postpone(ctx, now_ms, started_us, why);
    tw__redis_workers_signal(ctx);
    tw__redis_asked_last(ctx);
    other = tw__redis_alarm_work(now_ms);
    if (other < next)
        next = other;
    if (next <= now_ms)
        tw__redis_alarm_soon();
    else if (next != TW_NEVER)
        tw__redis_alarm_at(next);
    uint64_t took_us = now_us() - started_us;
    if (took_us > tw__redis_shared.counts.tick_us_max)
        tw__redis_shared.counts.tick_us_max = took_us;
}

void tw__redis_tick_loaded(void)
{
    tw__redis_shared.serving = false;
}

void tw__redis_tick_cron(RedisModuleCtx *ctx)
{
    tw__redis_clock_look(ctx);
    uint64_t now_ms = tw__redis_shared.iteration_ms;
    tw__redis_alarm_renew(now_ms, tw__redis_clock_was_set());
    if (!tw__list_empty(&tw__redis_shared.queues->awake) || tw__redis_purge_any(now_ms))
        tw__redis_alarm_at(now_ms);
    if (tw__redis_reaper_busy(tw__redis_shared.queues) || tw__redis_shared.queues->empty > 0)
        tw__redis_alarm_at(now_ms);
}

void tw__redis_tick_iteration(RedisModuleCtx *ctx)
{
    tw__redis_clock_look(ctx);
    if (tw__redis_clock_was_set())
        tw__redis_alarm_renew(tw__redis_shared.iteration_ms, true);
}

void tw__redis_tick_start(RedisModuleCtx *ctx)
{
    RedisModule_GetApi("RedisModule_CachedMicroseconds", (void **)&ticks.server_us);
    tw__redis_alarm_start(ctx, tick);
    tw__redis_clock_look(ctx);
}
