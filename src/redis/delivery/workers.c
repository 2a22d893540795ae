/* SPDX-License-Identifier: MIT
 *
 * A worker that finds no ready task is blocked by the server on the keys of its queues, as BLPOP is. The
 * server keeps the order in which clients were blocked; it answers their timeouts, ends their waits when it
 * becomes a replica or gives a slot away, and serves them after SWAPDB and RENAME. It also lets them wait for
 * keys that do not exist yet. (Tried on Redis 7.0.15.)
 *
 *     tick.c      a task becomes ready: its queue is awake
 *        |
 *     workers.c   RedisModule_SignalKeyAsReady()      at the end of the tick, for each queue that is awake
 *        |
 *     the server  calls on_ready() for each client that is blocked on the key, the longest-blocked first
 *        |
 *     workers.c   RedisModule_Call("TW.TAKE")         without BLOCK, and for the key that is ready alone
 *
 * Serving a blocked worker is a write at a time when no command runs. As a call of TW.TAKE, it passes all
 * checks of the server that a command passes: the rights of the user, too few replicas, disk errors, slots.
 * Pauses, role and memory are asked for before. A worker that must not be served now stays blocked, and its
 * queue awake. When memory is full, it gets nil at once: its next TW.TAKE is a command, which the server
 * lets through, and its TW.ACK frees memory.
 */
#include "workers.h"

#include <base/list.h>

#include "keyspace/alarm.h"
#include "keyspace/keys.h"
#include "server/arguments.h"

enum { AGAIN_MS = 100, SMALL = 32 };

/* ---- queues that are awake ------------------------------------------------------------------------------- */

void tw__redis_workers_wake(struct tw__redis_queue *queue)
{
    if (!tw__link_listed(&queue->awake))
        tw__list_append(&queue->queues->awake, &queue->awake);
}

void tw__redis_workers_wake_all(void)
{
    struct tw__link *attached = &tw__redis_shared.queues->attached;
    for (struct tw__link *link = attached->next; link != attached; link = link->next)
        if (tw__redis_queue_at(link)->ready_count > 0)
            tw__redis_workers_wake(tw__redis_queue_at(link));
}

void tw__redis_workers_signal(RedisModuleCtx *ctx)
{
    struct tw__link *awake = &tw__redis_shared.queues->awake;
    int db = RedisModule_GetSelectedDb(ctx);
    enum tw__redis_defer why = tw__redis_gate(ctx);
    if (tw__list_empty(awake) || (why != TW__REDIS_DEFER_NONE && why != TW__REDIS_DEFER_OOM))
        return;
    while (!tw__list_empty(awake)) {
        struct tw__redis_queue *queue = TW_CONTAINER(awake->next, struct tw__redis_queue, awake);
        tw__list_remove(&queue->awake);
        if (!queue->attached || queue->paused || queue->ready_count == 0)
            continue;
        RedisModule_SelectDb(ctx, queue->db);
        RedisModule_SignalKeyAsReady(ctx, queue->name);
        tw__redis_asked_note(TW__REDIS_ASKED_QUEUE, queue->db, queue->name);
    }
    RedisModule_SelectDb(ctx, db);
}

/* ---- blocked clients ------------------------------------------------------------------------------------- */

/* Calls TW.TAKE with the options of a blocked TW.TAKE but for BLOCK, for one key. */
static RedisModuleCallReply *take_for(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                                      RedisModuleString *key)
{
    RedisModuleString *few[SMALL], *one = RedisModule_CreateString(NULL, "1", 1);
    size_t count = 0;
    long long queues = 0;
    RedisModule_StringToLongLong(argv[1], &queues);
    few[count++] = one;
    few[count++] = key;
    for (int at = 2 + (int)queues; at + 1 < argc && count + 2 <= SMALL; at += 2)
        if (!tw__redis_argument_is(argv[at], "BLOCK")) {
            few[count++] = argv[at];
            few[count++] = argv[at + 1];
        }
    /* Before 7.0.6 a call cannot act for a user. */
    const char *flags = RMAPI_FUNC_SUPPORTED(RedisModule_SetContextUser) ? "!ESCv" : "!ESv";
    RedisModuleCallReply *reply = RedisModule_Call(ctx, "TW.TAKE", flags, few, count);
    RedisModule_FreeString(NULL, one);
    return reply;
}

/* Whether an error will be over some time, so that the client waits on. In a cluster the server itself soon
 * tells its blocked clients where to go. */
static bool is_temporary(struct tw__redis_bytes error)
{
    return tw__redis_gate_refusal(error) != TW__REDIS_DEFER_REFUSED;
}

/* Whether the user has lost the right since the call was blocked. The server's text for a call of a module
 * names no kind of error, so clients would not know it. */
static bool is_forbidden(struct tw__redis_bytes error)
{
    return tw__redis_bytes_begin(error, "NOPERM") ||
           tw__redis_bytes_begin(error, "ERR acl verification failed");
}

/* Replies to a blocked client what TW.TAKE has replied. Returns whether it replied; otherwise the client stays
 * blocked. */
static bool pass_on(RedisModuleCtx *ctx, RedisModuleCallReply *reply, struct tw__redis_queue *queue)
{
    if (reply == NULL)
        return false;
    int type = RedisModule_CallReplyType(reply);
    struct tw__redis_bytes error = {NULL, 0};
    if (type == REDISMODULE_REPLY_NULL)
        return false;
    if (type == REDISMODULE_REPLY_ERROR)
        error.at = RedisModule_CallReplyStringPtr(reply, &error.size);
    if (is_temporary(error)) {
        tw__redis_workers_wake(queue);
        tw__redis_alarm_at(tw__redis_now_ms() + AGAIN_MS);
        return false;
    }
    if (is_forbidden(error))
        RedisModule_ReplyWithError(ctx, "NOPERM the user may not take tasks of this queue any more");
    else
        RedisModule_ReplyWithCallReply(ctx, reply);
    return true;
}

/* The server's callback: a key is ready on which this client is blocked. `argv` is its TW.TAKE. Returns
 * REDISMODULE_OK after a reply, or REDISMODULE_ERR if the client stays blocked. */
static int on_ready(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleString *key = RedisModule_GetBlockedClientReadyKey(ctx);
    struct tw__redis_queue *queue = tw__redis_keys_peek(ctx, key);
    if (queue == NULL || queue->paused || queue->ready_count == 0 || tw__link_listed(&queue->awake))
        return REDISMODULE_ERR; /* awake: another worker has just been refused */
    enum tw__redis_defer why = tw__redis_gate(ctx);
    if (why == TW__REDIS_DEFER_OOM) {
        RedisModule_ReplyWithNullArray(ctx);
        return REDISMODULE_OK;
    }
    if (why != TW__REDIS_DEFER_NONE) {
        tw__redis_workers_wake(queue);
        tw__redis_alarm_at(tw__redis_now_ms() + AGAIN_MS);
        return REDISMODULE_ERR;
    }
    RedisModuleCallReply *reply = take_for(ctx, argv, argc, key);
    bool replied = pass_on(ctx, reply, queue);
    if (reply != NULL)
        RedisModule_FreeCallReply(reply);
    return replied ? REDISMODULE_OK : REDISMODULE_ERR;
}

static int on_timeout(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    return RedisModule_ReplyWithNullArray(ctx); /* as a TW.TAKE that finds nothing and does not wait */
}

void tw__redis_workers_block(RedisModuleCtx *ctx, RedisModuleString **keys, int count, long long ms)
{
    RedisModule_BlockClientOnKeys(ctx, on_ready, on_timeout, NULL, ms, keys, count, NULL);
}
