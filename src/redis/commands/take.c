/* SPDX-License-Identifier: MIT
 *
 * TW.TAKE gives ready tasks to a worker. What it changes is replicated as changes: the token, the end
 * of the lease and the attempt of each task, in one transaction with the reply.
 *
 * A worker gets each task that is due, also if no tick has reached it yet. So the call makes due tasks of its
 * queues ready, and looks at 100 others on the way at most. A backlog is the ticks' work.
 *
 * In this moment it is decided whether a task is too late, and for how many periods it stands. So a call may
 * pass over tasks, and find none to give out. It passes over at most 1,000. If there may be more tasks then,
 * the next tick serves a worker that waits.
 */
#include "commands.h"

#include <task/limits.h>

#include "delivery/workers.h"
#include "keyspace/alarm.h"
#include "keyspace/keys.h"
#include "queues/lease.h"
#include "queues/place.h"
#include "server/arguments.h"
#include "server/config.h"
#include "server/lateness.h"
#include "server/shared.h"
#include "server/strings.h"

enum { TAKE_BYTES = 16 << 20 }; /* a reply ends after the task with which it reaches so many bytes */
enum { KEYS_MAX = 10000, FIELDS = 7 };

/* The arguments of one TW.TAKE. */
struct taking {
    uint64_t lease_ms, count, block_ms;
    bool block;
    struct tw__redis_bytes worker;
    RedisModuleString **keys;
    int key_count;
    uint64_t taken, bytes; /* tasks, and the memory that they take */
    uint64_t passed;       /* tasks that were passed over */
    uint32_t looks;        /* at further tasks that are due and that no tick has reached */
};

/* ---- reading --------------------------------------------------------------------------------------------- */

static bool read_worker(RedisModuleCtx *ctx, const struct tw__redis_option *option, struct taking *take)
{
    take->worker = (struct tw__redis_bytes){"", 0};
    if (option->value != NULL)
        take->worker = tw__redis_string_bytes(option->value);
    return take->worker.size <= TW__TASK_WORKER_MAX ||
           tw__redis_refuse(ctx, "ERR NAME has %zu bytes: expected at most %d", take->worker.size,
                            TW__TASK_WORKER_MAX);
}

/* Reads n queue [queue ...]. Their number has a limit, because the server takes a worker that leaves off the
 * list of each key, in one go. */
static bool read_queues(RedisModuleCtx *ctx, struct taking *take, RedisModuleString **argv, int argc)
{
    uint64_t count;
    if (!tw__redis_argument_number(ctx, argv[0], "the number of queues", TW__REDIS_COUNT, 1, KEYS_MAX, &count))
        return false;
    if (count > (uint64_t)argc - 1)
        return tw__redis_argument_error(ctx, argv[0], "the number of queues", "so many queues behind it");
    take->keys = argv + 1;
    take->key_count = (int)count;
    return true;
}

/* Tells the server which arguments are keys: Redis 7.0 in a cluster does not read it in docs.c. */
static void tell_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long count;
    if (argc < 2 || RedisModule_StringToLongLong(argv[1], &count) != REDISMODULE_OK || count > argc - 2)
        return; /* the command will reply with an error */
    for (int i = 0; i < count; i++)
        RedisModule_KeyAtPos(ctx, 2 + i);
}

static bool read_take(RedisModuleCtx *ctx, struct taking *take, RedisModuleString **argv, int argc)
{
    struct tw__redis_option options[] = {
        tw__redis_option_of("LEASE", TW__REDIS_MS, TW__TASK_IN_LEASE, NULL),
        tw__redis_option_of("COUNT", TW__REDIS_COUNT, TW__TASK_IN_COUNT, &take->count),
        {"BLOCK", TW__REDIS_MS, 0, UINT32_MAX, &take->block_ms, NULL},
        {.word = "NAME"},
        {.word = NULL}};
    *take = (struct taking){.count = tw__task_range(TW__TASK_IN_COUNT).usual, .looks = TW__REDIS_LOOKS};
    if (!read_queues(ctx, take, argv + 1, argc - 1))
        return false;
    int at = 2 + take->key_count;
    if (!tw__redis_argument_options(ctx, argv + at, argc - at, options,
                                    "LEASE ms, COUNT n, BLOCK ms or NAME worker") ||
        !read_worker(ctx, &options[3], take) ||
        !tw__redis_argument_option_ms(ctx, &options[0], &take->lease_ms))
        return false;
    take->block = options[2].value != NULL;
    return true;
}

/* ---- taking ---------------------------------------------------------------------------------------------- */

static void reply_task(RedisModuleCtx *ctx, RedisModuleString *key, const struct tw__redis_task *task,
                       const struct tw__task *numbers)
{
    char token[TW__REDIS_TOKEN_TEXT];
    struct tw__redis_bytes id = tw__redis_task_id(task);
    struct tw__redis_payload payload = tw__redis_task_payload(task);
    tw__redis_token_write(numbers->token, token);
    RedisModule_ReplyWithArray(ctx, FIELDS);
    RedisModule_ReplyWithString(ctx, key);
    RedisModule_ReplyWithStringBuffer(ctx, id.at, id.size);
    RedisModule_ReplyWithStringBuffer(ctx, token, sizeof token);
    RedisModule_ReplyWithLongLong(ctx, (long long)numbers->due_ms);
    RedisModule_ReplyWithLongLong(ctx, numbers->attempt);
    RedisModule_ReplyWithArray(ctx, payload.count);
    while (payload.count > 0) {
        struct tw__redis_bytes string = tw__redis_payload_next(&payload);
        RedisModule_ReplyWithStringBuffer(ctx, string.at, string.size);
    }
    RedisModule_ReplyWithLongLong(ctx, (long long)numbers->missed_periods);
}

/* Whether the call may go on with a further task. */
static bool may_take_more(const struct taking *take)
{
    return take->taken < take->count && take->bytes < TAKE_BYTES && take->passed < TW__TASK_PASSED_MAX;
}

/* Gives a ready task to the worker, and adds it to the reply; or passes over it. */
static void take_ready(RedisModuleCtx *ctx, struct taking *take, RedisModuleString *key,
                       struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t now_ms)
{
    struct tw__task_outcome outcome;
    struct tw__redis_verb verb = {
        .call = {.verb = TW__TASK_TAKE, .token = tw__redis_token_new(), .lease_ms = (uint32_t)take->lease_ms},
        .said = take->worker};
    uint64_t since_ms = task->parked.since_ms;
    task = tw__redis_lease_change(queue, task, &verb, now_ms, &tw__redis_shared.log, &outcome);
    if (outcome.reply == TW__TASK_LATE) {
        take->passed++;
        return;
    }
    tw__redis_lateness_count_taken(since_ms);
    if (take->taken++ == 0)
        RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
    take->bytes += tw__redis_task_bytes(task, &tw__redis_shared.queues->memory);
    reply_task(ctx, key, task, &outcome.task);
    tw__redis_count(queue, TW__REDIS_TAKEN, 1);
}

/* Gives ready tasks of one queue to the worker, or passes over them. Returns whether it has passed over any, so
 * that the call may look for others. */
static bool take_of_queue(RedisModuleCtx *ctx, struct taking *take, RedisModuleString *key,
                          struct tw__redis_queue *queue, uint64_t now_ms)
{
    struct tw__redis_task *task;
    uint64_t passed = take->passed;
    while (may_take_more(take) && (task = tw__redis_place_first_ready(queue)) != NULL)
        take_ready(ctx, take, key, queue, task, now_ms);
    return take->passed > passed && may_take_more(take);
}

/* Tells the file, the replicas and the handlers what a call has done to a queue. */
static void tell_of_take(RedisModuleCtx *ctx, RedisModuleString *name, bool ready, bool taken, bool passed)
{
    tw__redis_log_command(ctx, name);
    if (ready)
        tw__redis_keys_changed(ctx, name, "tw.ready");
    if (taken)
        tw__redis_keys_changed(ctx, name, "tw.take");
    if (!passed)
        return;
    tw__redis_keys_changed(ctx, name, "tw.delivered");
    tw__redis_keys_remove_if_empty(ctx, name, true);
}

/* Takes from one key. The reply may have begun, so a key that a handler has changed meanwhile is no error. */
static void take_key(RedisModuleCtx *ctx, struct taking *take, RedisModuleString *name)
{
    struct tw__redis_queue *queue = tw__redis_keys_peek(ctx, name);
    uint64_t taken = take->taken, passed = take->passed, looks = take->looks, ready = 0;
    if (queue == NULL || queue->paused || !tw__redis_config.deliver)
        return;
    uint64_t now_ms = tw__redis_clock_now(ctx);
    do {
        if (may_take_more(take))
            ready += tw__redis_offer_due(queue, take->count - take->taken, now_ms, &take->looks);
    } while (take_of_queue(ctx, take, name, queue, now_ms));
    bool left = queue->ready_count > 0 && (ready > 0 || take->passed == TW__TASK_PASSED_MAX);
    if (left)
        tw__redis_workers_wake(queue); /* others may wait for its tasks */
    if (left || take->passed > passed || take->looks < looks)
        tw__redis_alarm_next();
    if (take->taken > taken)
        tw__redis_alarm_at(now_ms + take->lease_ms);
    tell_of_take(ctx, name, ready > 0, take->taken > taken, take->passed > passed);
}

/* Whether all keys are queues, or nothing. If not, replies with an error. */
static bool are_queues(RedisModuleCtx *ctx, const struct taking *take)
{
    struct tw__redis_queue *queue;
    for (int i = 0; i < take->key_count; i++)
        if (!tw__redis_keys_open(ctx, take->keys[i], &queue))
            return false;
    return true;
}

static bool may_block(RedisModuleCtx *ctx)
{
    const int no =
        REDISMODULE_CTX_FLAGS_MULTI | REDISMODULE_CTX_FLAGS_LUA | REDISMODULE_CTX_FLAGS_DENY_BLOCKING;
    return (RedisModule_GetContextFlags(ctx) & no) == 0;
}

/* TW.TAKE n queue [queue ...] LEASE ms [COUNT n] [BLOCK ms] [NAME worker] */
int tw__redis_take_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct taking take;
    if (RedisModule_IsKeysPositionRequest(ctx)) {
        tell_keys(ctx, argv, argc);
        return REDISMODULE_OK;
    }
    if (!read_take(ctx, &take, argv, argc) || !are_queues(ctx, &take))
        return REDISMODULE_OK;
    enum tw__redis_defer why = tw__redis_gate(ctx);
    if (why == TW__REDIS_DEFER_ROLE) {
        tw__redis_refuse(ctx, "READONLY TW.TAKE on a replica: expected a call of its primary");
        return REDISMODULE_OK;
    }
    if (why == TW__REDIS_DEFER_OOM)
        take.worker.size = 0; /* a task that is taken and done makes room, and a name takes some meanwhile */
    for (int i = 0; i < take.key_count && take.taken < take.count && take.bytes < TAKE_BYTES; i++)
        take_key(ctx, &take, take.keys[i]);
    if (take.taken > 0)
        RedisModule_ReplySetArrayLength(ctx, (long)take.taken);
    else if (take.block && may_block(ctx))
        tw__redis_workers_block(ctx, take.keys, take.key_count, (long long)take.block_ms);
    else
        RedisModule_ReplyWithNullArray(ctx);
    return REDISMODULE_OK;
}
