/* SPDX-License-Identifier: MIT
 *
 * TW.REPLAY and TW.PURGE of ALL take the tasks that died first.
 */
#include "commands.h"

#include "delivery/purge.h"
#include "keyspace/keys.h"
#include "queues/change.h"
#include "queues/place.h"
#include "queues/queue.h"
#include "server/arguments.h"
#include "server/strings.h"

enum { DEAD_USUAL = 100, DEAD_FIELDS = 7 };

/* ---- TW.DEAD --------------------------------------------------------------------------------------------- */

static void reply_dead(RedisModuleCtx *ctx, const struct tw__redis_task *task)
{
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    struct tw__redis_bytes id = tw__redis_task_id(task);
    RedisModule_ReplyWithArray(ctx, DEAD_FIELDS);
    RedisModule_ReplyWithStringBuffer(ctx, id.at, id.size);
    RedisModule_ReplyWithLongLong(ctx, (long long)attempt.due);
    RedisModule_ReplyWithLongLong(ctx, (long long)tw__redis_task_due(task));
    RedisModule_ReplyWithLongLong(ctx, attempt.number);
    RedisModule_ReplyWithStringBuffer(ctx, attempt.error.at, attempt.error.size);
    RedisModule_ReplyWithLongLong(ctx, attempt.lapses);
    RedisModule_ReplyWithNull(ctx); /* `next`, which each look has */
}

/* AFTER: sets *task to the dead task after the named one. Returns false, after an error reply, if the named
 * task is not dead. */
static bool begin_after(RedisModuleCtx *ctx, const struct tw__redis_queue *queue, RedisModuleString *after,
                        struct tw__redis_task **task)
{
    struct tw__redis_task *named = tw__redis_changes_find(queue, after);
    if (named == NULL || tw__redis_task_stage(named) != TW__TASK_BURIED)
        return tw__redis_argument_error(ctx, after, "AFTER", "the id of a dead task");
    *task = tw__redis_place_next_dead(queue, named);
    return true;
}

/* TW.DEAD queue [COUNT n] [AFTER id] */
int tw__redis_dead_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    uint64_t limit = DEAD_USUAL;
    struct tw__redis_option options[] = {
        tw__redis_option_of("COUNT", TW__REDIS_COUNT, TW__TASK_IN_COUNT, &limit),
        {.word = "AFTER"},
        {.word = NULL}};
    if (!tw__redis_argument_options(ctx, argv + 2, argc - 2, options, "COUNT n or AFTER id") ||
        (options[1].value != NULL && !tw__redis_argument_ids(ctx, &options[1].value, 1, 1)) ||
        !tw__redis_keys_find(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    struct tw__redis_task *task = queue == NULL ? NULL : tw__redis_place_first_dead(queue);
    if (options[1].value != NULL && !begin_after(ctx, queue, options[1].value, &task))
        return REDISMODULE_OK;
    long count = 0;
    RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
    for (; task != NULL && (uint64_t)count < limit; count++) {
        reply_dead(ctx, task);
        task = tw__redis_place_next_dead(queue, task);
    }
    RedisModule_ReplySetArrayLength(ctx, count);
    return REDISMODULE_OK;
}

/* ---- TW.REPLAY, TW.PURGE --------------------------------------------------------------------------------- */

static void gather_all(const struct tw__redis_queue *queue, struct tw__redis_named *named)
{
    struct tw__redis_task *task = tw__redis_place_first_dead(queue);
    for (; task != NULL && named->all.count < TW__REDIS_NAMED_MAX;
         task = tw__redis_place_next_dead(queue, task))
        tw__redis_vector_add(&named->all, task, &tw__redis_shared.queues->memory);
    named->count = named->all.count;
}

static bool is_dead(const struct tw__redis_task *task, uint64_t now_ms)
{
    (void)now_ms;
    return tw__redis_task_stage(task) == TW__TASK_BURIED;
}

/* Returns the number of tasks. */
static size_t replay_named(struct tw__redis_queue *queue, const struct tw__redis_named *named, uint64_t due_ms)
{
    uint64_t now_ms = tw__redis_now_ms();
    size_t count = 0;
    for (size_t i = 0; i < named->count; i++) {
        struct tw__redis_task *task = tw__redis_named_at(queue, named, i);
        if (task == NULL)
            continue;
        tw__redis_change_put_anew(&tw__redis_shared.log, tw__redis_shared.queues, task, due_ms);
        tw__redis_queue_begin_anew(queue, task, due_ms, now_ms);
        count++;
    }
    return count;
}

/* TW.REPLAY queue ALL|IDS n id [id ...] [IN ms|AT unix-ms] */
int tw__redis_replay_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    struct tw__redis_named named = {.fits = is_dead, .gather = gather_all};
    uint64_t due_ms = tw__redis_now_ms();
    size_t count = 0;
    if (!tw__redis_named_open(ctx, argv, argc, &named, &due_ms, &queue))
        return REDISMODULE_OK;
    bool may = tw__redis_named_may_deliver(ctx, queue, &named, UINT64_MAX);
    if (may)
        count = replay_named(queue, &named, due_ms);
    if (count > 0) {
        tw__redis_shared.counts.replayed += count;
        tw__redis_changes_close(ctx, argv[1], "tw.replay");
    }
    RedisModule_Free(named.all.at);
    return may ? RedisModule_ReplyWithLongLong(ctx, (long long)count) : REDISMODULE_OK;
}

/* Returns the number of tasks. */
static size_t purge_named(struct tw__redis_queue *queue, const struct tw__redis_named *named)
{
    size_t count = 0;
    for (size_t i = 0; i < named->count; i++) {
        struct tw__redis_task *task = tw__redis_named_at(queue, named, i);
        if (task != NULL)
            tw__redis_purge_task(queue, task, &tw__redis_shared.log);
        count += task != NULL;
    }
    return count;
}

/* TW.PURGE queue ALL|IDS n id [id ...] */
int tw__redis_purge_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    struct tw__redis_named named = {.fits = is_dead, .gather = gather_all};
    if (!tw__redis_named_open(ctx, argv, argc, &named, NULL, &queue))
        return REDISMODULE_OK;
    size_t count = purge_named(queue, &named);
    if (count > 0)
        tw__redis_changes_close(ctx, argv[1], "tw.purge");
    RedisModule_Free(named.all.at);
    return RedisModule_ReplyWithLongLong(ctx, (long long)count);
}
