/* SPDX-License-Identifier: MIT
 *
 * TW.CANCEL and TW.MOVE.
 *
 * Each command that writes reads all its arguments first, so that an error changes nothing. The effect is
 * replicated: absolute times, final ids, no conditions. Arguments that have this form already are passed on
 * unchanged.
 */
#include "commands.h"

#include <task/conditions.h>

#include "keyspace/alarm.h"
#include "keyspace/chores.h"
#include "keyspace/keys.h"
#include "queues/queue.h"
#include "server/arguments.h"
#include "server/config.h"
#include "server/gate.h"
#include "server/rights.h"
#include "server/strings.h"

/* ---- TW.CANCEL ------------------------------------------------------------------------------------------- */

/* The reply for an id. */
enum { GONE, CANCELLED, AT_WORK };

/* Cancels the task with an id. Returns the reply. */
static int cancel_id(struct tw__redis_queue *queue, uint64_t hash, struct tw__redis_bytes id)
{
    tw__redis_chores_finish_for(hash);
    tw__redis_queue_foresee_removal(queue, hash);
    struct tw__redis_task *task = tw__redis_queue_find(queue, hash, id);
    if (task == NULL)
        return GONE;
    int reply = tw__redis_task_is_leased(task) ? AT_WORK : CANCELLED;
    tw__redis_chores_leave(
        &(struct tw__redis_chore){.kind = TW__REDIS_CHORE_REMOVE, .queue = queue, .task = task, .hash = hash});
    return reply;
}

int tw__redis_cancel_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    struct tw__redis_queue *queue;
    long long cancelled = 0;
    if (argc < 3)
        return RedisModule_WrongArity(ctx);
    uint64_t hash = tw__redis_queue_foresee(tw__redis_shared.queues, tw__redis_string_bytes(argv[2]));
    tw__redis_queue_foresee_cells(tw__redis_shared.queues, hash);
    if (!tw__redis_keys_open_quickly(ctx, argv[1], &key, &queue))
        return REDISMODULE_OK;
    RedisModule_CloseKey(key);
    RedisModule_ReplyWithArray(ctx, argc - 2);
    for (int i = 2; i < argc; i++) {
        uint64_t next = 0;
        if (i + 1 < argc) {
            next = tw__redis_queue_foresee(tw__redis_shared.queues, tw__redis_string_bytes(argv[i + 1]));
            tw__redis_queue_foresee_cells(tw__redis_shared.queues, next);
        }
        int reply = queue == NULL ? GONE : cancel_id(queue, hash, tw__redis_string_bytes(argv[i]));
        RedisModule_ReplyWithLongLong(ctx, reply);
        cancelled += reply != GONE;
        hash = next;
    }
    if (cancelled > 0) {
        RedisModule_ReplicateVerbatim(ctx);
        tw__redis_chores_finish_last(queue);
        tw__redis_shared.counts.cancelled += (uint64_t)cancelled;
        tw__redis_keys_changed(ctx, argv[1], "tw.cancel");
        tw__redis_keys_remove_if_empty(ctx, argv[1], false);
    }
    return REDISMODULE_OK;
}

/* ---- TW.MOVE --------------------------------------------------------------------------------------------- */

/* Replicates TW.MOVE queue id AT due. */
static void replicate_move(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, bool absolute, uint64_t due)
{
    if (absolute && argc == 5) {
        RedisModule_ReplicateVerbatim(ctx);
        return;
    }
    RedisModuleString *time = RedisModule_CreateStringFromLongLong(NULL, (long long)due);
    RedisModule_Replicate(ctx, "TW.MOVE", "ssss", argv[1], argv[2], tw__redis_shared.at, time);
    RedisModule_FreeString(NULL, time);
}

/* Returns whether the caller may write the target of the task. If not, replies with an error. */
static bool may_move(RedisModuleCtx *ctx, const struct tw__redis_task *task)
{
    struct tw__redis_caller caller;
    tw__redis_caller_init(&caller, ctx);
    bool may = tw__redis_caller_may_deliver(&caller, tw__redis_route_of(tw__redis_shared.queues, task));
    if (!may)
        tw__redis_caller_error(&caller, ctx);
    tw__redis_caller_fini(&caller);
    return may;
}

int tw__redis_move_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    struct tw__redis_queue *queue;
    uint64_t now_ms, due;
    bool absolute;
    unsigned condition = 0;
    if (argc < 3 || argc > 6)
        return RedisModule_WrongArity(ctx);
    uint64_t hash = tw__redis_queue_foresee(tw__redis_shared.queues, tw__redis_string_bytes(argv[2]));
    if (!tw__redis_argument_time(ctx, argv + 3, argc - 3, &now_ms, &due, &absolute))
        return REDISMODULE_OK;
    tw__redis_queue_foresee_cells(tw__redis_shared.queues, hash);
    if (argc == 6 &&
        (!tw__redis_argument_condition(argv[5], &condition) || !(condition & (TW__TASK_GT | TW__TASK_LT))))
        return tw__redis_argument_error(ctx, argv[5], "the option", "GT or LT");
    if (!tw__redis_keys_open_quickly(ctx, argv[1], &key, &queue))
        return REDISMODULE_OK;
    tw__redis_chores_finish_for(hash);
    struct tw__redis_bytes id = tw__redis_string_bytes(argv[2]);
    struct tw__redis_task *task = queue == NULL ? NULL : tw__redis_queue_find(queue, hash, id);
    RedisModule_CloseKey(key);
    if (task == NULL)
        return RedisModule_ReplyWithNull(ctx);
    if (tw__redis_task_stage(task) == TW__REDIS_DEAD)
        return RedisModule_ReplyWithError(ctx,
                                          "ERR the task is dead: expected a replay, or a put in its place");
    if (!may_move(ctx, task))
        return REDISMODULE_OK;
    bool moves = tw__redis_conditions_met(condition, task, due);
    if (moves) {
        tw__redis_chores_leave(&(struct tw__redis_chore){.kind = TW__REDIS_CHORE_REFILE,
                                                         .queue = queue,
                                                         .task = task,
                                                         .hash = hash,
                                                         .due = due,
                                                         .now_ms = now_ms});
        replicate_move(ctx, argv, argc, absolute, due);
        tw__redis_shared.counts.moved++;
        tw__redis_alarm_at(due);
        tw__redis_keys_changed(ctx, argv[1], "tw.move");
    }
    return RedisModule_ReplyWithLongLong(ctx, moves);
}
