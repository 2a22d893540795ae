/* SPDX-License-Identifier: MIT
 *
 * TW.REPLAY and TW.PURGE of ALL take the tasks that died first, and at most MANY in one call, because the
 * server serves nobody else meanwhile.
 */
#include "commands.h"

#include "delivery/purge.h"
#include "delivery/workers.h"
#include "keyspace/alarm.h"
#include "keyspace/keys.h"
#include "lives.h"
#include "queues/change.h"
#include "queues/place.h"
#include "queues/queue.h"
#include "queues/sums.h"
#include "server/arguments.h"
#include "server/gate.h"
#include "server/rights.h"
#include "server/strings.h"

enum { DEAD_USUAL = 100, MANY = 10000, DEAD_FIELDS = 5 };

/* ---- TW.DEAD --------------------------------------------------------------------------------------------- */

static void reply_dead(RedisModuleCtx *ctx, const struct tw__redis_task *task)
{
    struct tw__redis_life life = tw__redis_task_whole_life(task);
    struct tw__redis_bytes id = tw__redis_task_id(task);
    RedisModule_ReplyWithArray(ctx, DEAD_FIELDS);
    RedisModule_ReplyWithStringBuffer(ctx, id.at, id.size);
    RedisModule_ReplyWithLongLong(ctx, (long long)life.due);
    RedisModule_ReplyWithLongLong(ctx, (long long)tw__redis_task_due(task));
    RedisModule_ReplyWithLongLong(ctx, life.attempt);
    RedisModule_ReplyWithStringBuffer(ctx, life.error.at, life.error.size);
}

/* AFTER: sets *task to the dead task after the named one. Returns false, after an error reply, if the named
 * task is not dead. */
static bool begin_after(RedisModuleCtx *ctx, const struct tw__redis_queue *queue, RedisModuleString *after,
                        struct tw__redis_task **task)
{
    struct tw__redis_task *named = tw__redis_lives_find(queue, after);
    if (named == NULL || tw__redis_task_stage(named) != TW__REDIS_DEAD) {
        tw__redis_argument_error(ctx, after, "AFTER", "the id of a dead task");
        return false;
    }
    *task = tw__redis_place_next_dead(queue, named);
    return true;
}

/* TW.DEAD queue [LIMIT n] [AFTER id] */
int tw__redis_dead_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    uint64_t limit = DEAD_USUAL;
    struct tw__redis_option options[] = {{"LIMIT", TW__REDIS_COUNT, 1, MANY, NULL},
                                         {"AFTER", TW__REDIS_TEXT, 0, 0, NULL},
                                         {NULL, TW__REDIS_TEXT, 0, 0, NULL}};
    if (argc < 2)
        return RedisModule_WrongArity(ctx);
    if (!tw__redis_argument_options(ctx, argv + 2, argc - 2, options, "LIMIT n or AFTER id") ||
        !tw__redis_argument_option_number(ctx, &options[0], &limit) ||
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

/* Whether the argument is ALL, in capital letters: a dead task may well have the id `all`. */
static bool is_all(RedisModuleString *argument)
{
    struct tw__redis_bytes text = tw__redis_string_bytes(argument);
    return tw__redis_bytes_equal(text, (struct tw__redis_bytes){"ALL", 3});
}

/* The id or ALL, the only argument behind the queue that TW.REPLAY and TW.PURGE need. */
static int reply_no_name(RedisModuleCtx *ctx)
{
    return tw__redis_argument_missing(ctx, "the id", "the id of a dead task, or ALL");
}

/* Gathers the named dead task, or the first MANY of all. The caller frees `tasks->at`. Returns false, after an
 * error reply, for `all` in other letters, unless a dead task has this id: the caller may have meant ALL, and
 * would take a reply of 0 for success. */
static bool gather_dead(RedisModuleCtx *ctx, const struct tw__redis_queue *queue, RedisModuleString *name,
                        struct tw__redis_vector *tasks)
{
    const struct tw__redis_memory *memory = &tw__redis_shared.queues->memory;
    *tasks = (struct tw__redis_vector){NULL, 0, 0};
    if (!is_all(name)) {
        struct tw__redis_task *task = tw__redis_lives_find(queue, name);
        if (task != NULL && tw__redis_task_stage(task) == TW__REDIS_DEAD)
            tw__redis_vector_add(tasks, task, memory);
        else if (tw__redis_argument_is(name, "ALL")) {
            tw__redis_argument_error(ctx, name, "the id", "ALL in capital letters, or the id of a dead task");
            return false;
        }
        return true;
    }
    struct tw__redis_task *task = queue == NULL ? NULL : tw__redis_place_first_dead(queue);
    for (; task != NULL && tasks->count < MANY; task = tw__redis_place_next_dead(queue, task))
        tw__redis_vector_add(tasks, task, memory);
    return true;
}

/* Returns whether the caller may write the targets of all these tasks, the tasks that have one. If not, replies
 * with an error. */
static bool may_replay(RedisModuleCtx *ctx, const struct tw__redis_vector *tasks)
{
    struct tw__redis_caller caller;
    bool may = true;
    tw__redis_caller_init(&caller, ctx);
    for (size_t i = 0; i < tasks->count && may; i++)
        may = tw__redis_caller_may_deliver(&caller, tw__redis_route_of(tw__redis_shared.queues, tasks->at[i]));
    if (!may)
        tw__redis_caller_error(&caller, ctx);
    tw__redis_caller_fini(&caller);
    return may;
}

static void replay(struct tw__redis_queue *queue, const struct tw__redis_vector *tasks, uint64_t due_ms,
                   struct tw__redis_buffer *log)
{
    uint64_t now_ms = tw__redis_now_ms();
    for (size_t i = 0; i < tasks->count; i++) {
        tw__redis_change_put_anew(log, tw__redis_shared.queues, tasks->at[i], due_ms);
        tw__redis_queue_begin_anew(queue, tasks->at[i], due_ms, now_ms);
    }
}

/* TW.REPLAY queue id|ALL [IN ms|AT unix-ms] */
int tw__redis_replay_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    struct tw__redis_buffer log = {0};
    struct tw__redis_vector tasks;
    uint64_t now_ms, due_ms = tw__redis_now_ms();
    bool absolute;
    if (argc < 2 || argc > 5)
        return RedisModule_WrongArity(ctx);
    if (argc == 2)
        return reply_no_name(ctx);
    if ((argc > 3 && !tw__redis_argument_time(ctx, argv + 3, argc - 3, &now_ms, &due_ms, &absolute)) ||
        !tw__redis_lives_open(ctx, argv[1], &queue) || !gather_dead(ctx, queue, argv[2], &tasks))
        return REDISMODULE_OK;
    bool may = tasks.count == 0 || may_replay(ctx, &tasks);
    if (may && tasks.count > 0) {
        replay(queue, &tasks, due_ms, &log);
        tw__redis_shared.counts.replayed += tasks.count;
        tw__redis_lives_close(ctx, argv[1], &log, "tw.replay");
    }
    RedisModule_Free(tasks.at);
    return may ? RedisModule_ReplyWithLongLong(ctx, (long long)tasks.count) : REDISMODULE_OK;
}

/* TW.PURGE queue id|ALL */
int tw__redis_purge_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    struct tw__redis_buffer log = {0};
    struct tw__redis_vector tasks;
    if (argc < 2 || argc > 3)
        return RedisModule_WrongArity(ctx);
    if (argc == 2)
        return reply_no_name(ctx);
    if (!tw__redis_lives_open(ctx, argv[1], &queue) || !gather_dead(ctx, queue, argv[2], &tasks))
        return REDISMODULE_OK;
    for (size_t i = 0; i < tasks.count; i++)
        tw__redis_purge_task(queue, tasks.at[i], &log);
    if (tasks.count > 0)
        tw__redis_lives_close(ctx, argv[1], &log, "tw.purge");
    RedisModule_Free(tasks.at);
    return RedisModule_ReplyWithLongLong(ctx, (long long)tasks.count);
}

/* ---- TW.PAUSE -------------------------------------------------------------------------------------------- */

/* Makes a queue that is paused and has no tasks. */
static void make_paused(RedisModuleCtx *ctx, RedisModuleString *name)
{
    struct tw__redis_queue *queue = tw__redis_queue_new(tw__redis_shared.queues);
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
    tw__redis_sums_pause(queue, true);
    tw__redis_keys_set(ctx, key, name, queue);
    RedisModule_CloseKey(key);
}

static void end_pause(struct tw__redis_queue *queue)
{
    tw__redis_place_go_on(queue);
    tw__redis_sums_pause(queue, false);
    if (queue->ready_count > 0)
        tw__redis_workers_wake(queue);
}

/* TW.PAUSE queue ON|OFF */
int tw__redis_pause_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    if (argc < 2 || argc > 3)
        return RedisModule_WrongArity(ctx);
    if (argc == 2)
        return tw__redis_argument_missing(ctx, "the state", "ON or OFF");
    bool on = tw__redis_argument_is(argv[2], "ON");
    if (!on && !tw__redis_argument_is(argv[2], "OFF"))
        return tw__redis_argument_error(ctx, argv[2], "the state", "ON or OFF");
    if (!tw__redis_lives_open(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    bool was = queue != NULL && queue->paused;
    if (on == was)
        return RedisModule_ReplyWithLongLong(ctx, 0);
    if (queue == NULL && tw__redis_gate_is_full(ctx)) /* a pause that ends needs no memory */
        return RedisModule_ReplyWithError(ctx, "OOM command not allowed when used memory > 'maxmemory'.");
    if (queue == NULL)
        make_paused(ctx, argv[1]);
    else if (on)
        tw__redis_sums_pause(queue, true);
    else
        end_pause(queue);
    RedisModule_ReplicateVerbatim(ctx);
    tw__redis_alarm_at(tw__redis_now_ms());
    tw__redis_keys_changed(ctx, argv[1], on ? "tw.pause" : "tw.resume");
    tw__redis_keys_remove_if_empty(ctx, argv[1], false);
    return RedisModule_ReplyWithLongLong(ctx, 1);
}
