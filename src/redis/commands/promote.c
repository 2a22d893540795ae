/* SPDX-License-Identifier: MIT
 *
 * TW.PROMOTE: waiting tasks become ready now. A promoted task is filed for the present time, and keeps its
 * due time, its attempts and its error. The next tick finds it, as it finds each task whose time has come. So
 * pauses and the setting tickwheel.deliver hold for it too.
 *
 * A task that is held by its target stays in the line of its route. The route ends its wait, so that the next
 * tick tries the target again.
 *
 * ALL ends when its time is over, also if tasks still wait. Those that it has promoted wait no longer, so the
 * next call goes on behind them. IDS promotes each task that it names.
 */
#include "commands.h"

#include <stdlib.h>

#include "keyspace/alarm.h"
#include "queues/lease.h"
#include "queues/look.h"
#include "queues/place.h"
#include "server/strings.h"

enum {
    PROMOTE_US = 20000, /* for one call with ALL, besides the look for the tasks */
    RIGHTS_US = 10000,  /* of these, for the rights to write the targets */
    PROMOTE_LOOK = 100, /* tasks between two looks at the clock */
    PROMOTE_BIG = 4096  /* bytes of a payload; a bigger one takes time to be copied */
};

/* When a call has to end, of the monotonic clock. */
struct ends {
    uint64_t rights_us, all_us;
};

static struct ends ends_of(const struct tw__redis_named *named)
{
    uint64_t now_us = RedisModule_MonotonicMicroseconds();
    if (named->ids != NULL)
        return (struct ends){UINT64_MAX, UINT64_MAX};
    return (struct ends){now_us + RIGHTS_US, now_us + PROMOTE_US};
}

static bool waits(const struct tw__redis_task *task, uint64_t now_ms)
{
    return tw__redis_task_waits(task) && tw__redis_task_filed(task) &&
           tw__redis_place_next(tw__redis_shared.queues, task, now_ms) > now_ms;
}

/* Names the waiting tasks with the earliest `next`. */
static void gather_all(const struct tw__redis_queue *queue, struct tw__redis_named *named)
{
    struct tw__redis_task **task = RedisModule_Alloc(TW__REDIS_NAMED_MAX * sizeof(struct tw__redis_task *));
    size_t count =
        tw__redis_look_earliest(queue, named->now_ms + 1, UINT64_MAX, named->now_ms, TW__REDIS_NAMED_MAX, task);
    for (size_t i = 0; i < count; i++)
        if (waits(task[i], named->now_ms)) /* not the task that is being delivered */
            tw__redis_vector_add(&named->all, task[i], &tw__redis_shared.queues->memory);
    named->count = named->all.count;
    RedisModule_Free(task);
}

static int compare_tasks(const void *one, const void *other)
{
    uintptr_t a = (uintptr_t) * (void *const *)one, b = (uintptr_t) * (void *const *)other;
    return a < b ? -1 : a > b;
}

/* Tries the targets of these held tasks again. Returns the number of tasks: an id may have been named twice. */
static size_t try_targets(struct tw__redis_vector *held, uint64_t now_ms)
{
    size_t count = 0;
    if (held->count > 0)
        qsort(held->at, held->count, sizeof *held->at, compare_tasks);
    for (size_t i = 0; i < held->count; i++) {
        if (i > 0 && held->at[i] == held->at[i - 1])
            continue;
        tw__redis_place_try_again(tw__redis_route_of(tw__redis_shared.queues, held->at[i]), now_ms);
        count++;
    }
    return count;
}

/* Returns the number of tasks. */
static size_t promote_named(struct tw__redis_queue *queue, const struct tw__redis_named *named,
                            uint64_t until_us)
{
    const struct tw__redis_verb promote = {.call = {.verb = TW__TASK_PROMOTE}};
    struct tw__redis_vector held = {.at = NULL};
    struct tw__task_outcome outcome;
    size_t count = 0;
    for (size_t i = 0; i < named->count; i++) {
        struct tw__redis_task *task = tw__redis_named_at(queue, named, i);
        bool big = task != NULL && tw__redis_task_packed(task).size > PROMOTE_BIG;
        if (task != NULL && task->place == TW__REDIS_IN_HELD) {
            tw__redis_vector_add(&held, task, &tw__redis_shared.queues->memory);
        } else if (task != NULL) {
            tw__redis_lease_change(queue, task, &promote, named->now_ms, &tw__redis_shared.log, &outcome);
            count += outcome.reply == TW__TASK_YES;
        }
        if ((big || (i + 1) % PROMOTE_LOOK == 0) && RedisModule_MonotonicMicroseconds() >= until_us)
            break;
    }
    count += try_targets(&held, named->now_ms);
    RedisModule_Free(held.at);
    return count;
}

/* TW.PROMOTE queue ALL|IDS n id [id ...] */
int tw__redis_promote_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    struct tw__redis_named named = {.fits = waits, .gather = gather_all, .now_ms = tw__redis_now_ms()};
    size_t count = 0;
    if (!tw__redis_named_open(ctx, argv, argc, &named, NULL, &queue))
        return REDISMODULE_OK;
    struct ends ends = ends_of(&named);
    bool may = tw__redis_named_may_deliver(ctx, queue, &named, ends.rights_us);
    if (may)
        count = promote_named(queue, &named, ends.all_us);
    if (count > 0) {
        tw__redis_alarm_at(named.now_ms);
        tw__redis_changes_close(ctx, argv[1], "tw.promote");
    }
    RedisModule_Free(named.all.at);
    return may ? RedisModule_ReplyWithLongLong(ctx, (long long)count) : REDISMODULE_OK;
}
