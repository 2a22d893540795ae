/* SPDX-License-Identifier: MIT
 *
 * TW.CANCEL and TW.MOVE.
 *
 * Each command that writes reads all its arguments first, so that an error changes nothing. The outcome is
 * replicated as changes: the tasks that are gone, and the task that waits for another time.
 *
 * With millions of tasks the neighbours of a task in the wheel are in no cache. So a command prefetches them
 * before it writes the log, and changes the wheel after that.
 *
 * Rejected: to change the wheel a few commands later, when the neighbours have arrived. The list of open
 * changes took up to a tenth more instructions, and saved no processor time.
 */
#include "commands.h"

#include <task/conditions.h>

#include "keyspace/alarm.h"
#include "keyspace/keys.h"
#include "queues/change.h"
#include "queues/lease.h"
#include "queues/place.h"
#include "queues/queue.h"
#include "queues/route.h"
#include "server/arguments.h"
#include "server/config.h"
#include "server/rights.h"
#include "server/strings.h"

/* ---- TW.CANCEL ------------------------------------------------------------------------------------------- */

/* The reply for an id. */
enum { GONE, CANCELLED, AT_WORK };

/* Cancels the task with an id. Returns the reply. */
static int cancel_id(struct tw__redis_queue *queue, uint64_t hash, struct tw__redis_bytes id,
                     struct tw__redis_buffer *log)
{
    tw__redis_queue_foresee_removal(queue, hash);
    struct tw__redis_task *task = tw__redis_queue_find(queue, hash, id);
    if (task == NULL)
        return GONE;
    tw__redis_place_prefetch(task);
    int reply = tw__redis_task_is_leased(task) ? AT_WORK : CANCELLED;
    tw__redis_change_put_gone(log, tw__redis_shared.queues, task);
    tw__redis_queue_remove(queue, task, hash);
    return reply;
}

int tw__redis_cancel_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    long long cancelled = 0;
    if (!tw__redis_argument_ids(ctx, argv + 2, argc - 2, 1))
        return REDISMODULE_OK;
    uint64_t hash = tw__redis_queue_foresee(tw__redis_shared.queues, tw__redis_string_bytes(argv[2]));
    tw__redis_queue_foresee_cells(tw__redis_shared.queues, hash);
    if (!tw__redis_keys_open(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    struct tw__redis_buffer *log = tw__redis_log_open(ctx);
    RedisModule_ReplyWithArray(ctx, argc - 2);
    for (int i = 2; i < argc; i++) {
        uint64_t next = 0;
        if (i + 1 < argc) {
            next = tw__redis_queue_foresee(tw__redis_shared.queues, tw__redis_string_bytes(argv[i + 1]));
            tw__redis_queue_foresee_cells(tw__redis_shared.queues, next);
        }
        int reply = queue == NULL ? GONE : cancel_id(queue, hash, tw__redis_string_bytes(argv[i]), log);
        RedisModule_ReplyWithLongLong(ctx, reply);
        cancelled += reply != GONE;
        hash = next;
    }
    if (cancelled > 0) {
        tw__redis_log_close(ctx, argv[1], log);
        tw__redis_shared.counts.cancelled += (uint64_t)cancelled;
        tw__redis_keys_changed(ctx, argv[1], "tw.cancel");
        tw__redis_keys_remove_if_empty(ctx, argv[1], true);
    }
    return REDISMODULE_OK;
}

/* ---- TW.MOVE --------------------------------------------------------------------------------------------- */

/* Returns whether the caller may write the target of the task. If not, replies with an error. */
static bool may_move(RedisModuleCtx *ctx, const struct tw__redis_task *task)
{
    struct tw__redis_caller caller;
    struct tw__redis_route *route = tw__redis_route_of(tw__redis_shared.queues, task);
    if (tw__redis_route_plan(route).kind == TW__REDIS_WORKERS)
        return true;
    tw__redis_caller_init(&caller, ctx);
    bool may = tw__redis_caller_may_deliver(&caller, route);
    if (!may)
        tw__redis_caller_error(&caller, ctx);
    tw__redis_caller_fini(&caller);
    return may;
}

/* Reads GT or LT, or no argument. Returns false after an error reply. */
static bool read_conditions(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, unsigned *condition)
{
    for (int i = 0; i < argc; i++) {
        unsigned before = *condition;
        if (!tw__redis_argument_condition(argv[i], condition) || !(*condition & (TW__TASK_GT | TW__TASK_LT)))
            return tw__redis_argument_error(ctx, argv[i], "the option", "GT or LT");
        if (before != 0)
            return tw__redis_conditions_refuse(ctx, before, argv[i]);
    }
    return true;
}

int tw__redis_move_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    uint64_t now_ms, due;
    unsigned condition = 0;
    struct tw__redis_bytes id = tw__redis_string_bytes(argv[2]);
    uint64_t hash = tw__redis_queue_foresee(tw__redis_shared.queues, id);
    if (!tw__redis_argument_id(ctx, argv[2], TW__TASK_NAME_MAX) ||
        !tw__redis_argument_time(ctx, argv + 3, argc - 3, &now_ms, &due))
        return REDISMODULE_OK;
    tw__redis_queue_foresee_cells(tw__redis_shared.queues, hash);
    if (!read_conditions(ctx, argv + 5, argc - 5, &condition) || !tw__redis_keys_open(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    struct tw__redis_task *task = queue == NULL ? NULL : tw__redis_queue_find(queue, hash, id);
    if (task == NULL)
        return RedisModule_ReplyWithNull(ctx);
    if (!may_move(ctx, task))
        return REDISMODULE_OK;
    struct tw__redis_verb verb = {.call = {.verb = TW__TASK_MOVE, .conditions = condition, .at_ms = due}};
    struct tw__redis_buffer *log = tw__redis_log_open(ctx);
    struct tw__task_outcome outcome;
    tw__redis_place_prefetch(task);
    tw__redis_lease_change(queue, task, &verb, now_ms, log, &outcome);
    if (outcome.reply == TW__TASK_IS_DEAD) {
        tw__redis_refuse(ctx, "ERR the task is dead: expected a replay, or a put in its place");
        return REDISMODULE_OK;
    }
    if (outcome.reply == TW__TASK_YES) {
        tw__redis_log_close(ctx, argv[1], log);
        tw__redis_shared.counts.moved++;
        tw__redis_alarm_at(due);
        tw__redis_keys_changed(ctx, argv[1], "tw.move");
    }
    return RedisModule_ReplyWithLongLong(ctx, outcome.reply == TW__TASK_YES);
}
