/* SPDX-License-Identifier: MIT
 *
 * TW.PUT, a task for workers, and TW.SEND, a task with a target. Both read all their arguments first
 * (options.c), so that an error changes nothing. The log gets the outcome in one form for both: the task that
 * was filed, with its final id, its times, all its options and its payload, as a chunk (queues/chunk.c):
 *
 *     TW.FIRED queue chunk [value ...]           the task takes the place of a task with its id
 *     TW.FIRED queue RENEW chunk [value ...]     KEEPDUE renews the task with its id in its place
 *
 * Conditions and KEEPDUE have been decided by then. Example: at 1795312608500 a worker has the task t, which
 * runs once. TW.PUT s t IN 500 KEEPDUE PAYLOAD v is logged as a task t that is due at 1795312608500.
 *
 * Whether an attempt of the task with this id is under way, so that the new task stands behind it, is not
 * logged: all beginnings and ends of attempts are, so the reader of the log has the same attempt. A small
 * payload is in the chunk, because the server spends much on each argument. A large one is beside it, because
 * it would be copied twice more.
 */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "filing.h"
#include "keyspace/alarm.h"
#include "keyspace/keys.h"
#include "queues/chunk.h"
#include "queues/lease.h"
#include "queues/queue.h"
#include "queues/route.h"
#include "server/rights.h"
#include "server/strings.h"

enum { ID_MAX = 48 };

/* The last id that was made: its time, and a number that starts anew with each millisecond. */
static struct {
    uint64_t ms, number;
} last_id;

static struct tw__redis_bytes payload_string(void *arg, uint32_t i)
{
    return tw__redis_string_bytes(((RedisModuleString **)arg)[i]);
}

/* Returns a new id that is not in use. */
static RedisModuleString *make_id(const struct tw__redis_queue *queue, uint64_t now_ms)
{
    char text[ID_MAX];
    struct tw__redis_bytes id = {text, 0};
    last_id.number = now_ms == last_id.ms ? last_id.number + 1 : 0;
    last_id.ms = now_ms;
    for (;; last_id.number++) {
        id.size = (size_t)snprintf(text, sizeof text, "%llu-%llu", (unsigned long long)now_ms,
                                   (unsigned long long)last_id.number);
        if (queue == NULL || tw__redis_queue_named(queue, id) == NULL)
            return RedisModule_CreateString(NULL, id.at, id.size);
    }
}

static struct tw__redis_task *make_task(const struct tw__redis_filing *filing, struct tw__redis_bytes id)
{
    struct tw__redis_task_plan plan = {
        .id = id,
        .due = filing->due,
        .every = filing->every,
        .times = filing->times,
        .count = (uint32_t)filing->payload_count,
        .string = payload_string,
        .arg = filing->payload,
    };
    return tw__redis_task_new(&plan, &tw__redis_shared.queues->memory);
}

/* `values` is how many strings of the payload stand beside the chunk: all or none. */
static void replicate_task(RedisModuleCtx *ctx, const struct tw__redis_filing *filing,
                           const struct tw__redis_buffer *chunk, size_t values)
{
    if (filing->how == TW__TASK_KEEPDUE_IN_PLACE)
        RedisModule_Replicate(ctx, "TW.FIRED", values > 0 ? "scbv" : "scb", filing->queue, "RENEW", chunk->at,
                              chunk->size, filing->payload, values);
    else
        RedisModule_Replicate(ctx, "TW.FIRED", values > 0 ? "sbv" : "sb", filing->queue, chunk->at, chunk->size,
                              filing->payload, values);
}

/* Logs a task that is filed with this route, or is about to be. */
static void log_task(RedisModuleCtx *ctx, const struct tw__redis_filing *filing,
                     const struct tw__redis_task *task, struct tw__redis_route *route)
{
    struct tw__redis_buffer *chunk = tw__redis_log_open(ctx);
    if (chunk == NULL) {
        tw__redis_log_close(ctx, filing->queue, NULL);
        return;
    }
    bool beside = tw__redis_chunk_put(chunk, task, route);
    replicate_task(ctx, filing, chunk, beside ? (size_t)filing->payload_count : 0);
    tw__redis_buffer_reset(chunk, &tw__redis_shared.queues->memory);
}

/* Makes the queue with its first task. */
static void file_first(RedisModuleCtx *ctx, const struct tw__redis_filing *filing, struct tw__redis_task *task,
                       uint64_t hash)
{
    struct tw__redis_queue *queue = tw__redis_queue_new(tw__redis_shared.queues);
    struct tw__redis_route *route = tw__redis_route_for(queue, &filing->plan);
    log_task(ctx, filing, task, route);
    tw__redis_queue_put(queue, task, route, hash, NULL, filing->now_ms);
    tw__redis_keys_make(ctx, filing->queue, queue);
}

/* Whether the task with its id decides about the new one. */
static bool looks(const struct tw__redis_filing *filing)
{
    return filing->condition != 0 || filing->keepdue;
}

/* Puts a new task into its queue, in place of the task with its id. That is `old`, which may be NULL, if the
 * call has looked for it. Otherwise the call looks now, when the memory of the table has arrived. */
static void file_into(RedisModuleCtx *ctx, const struct tw__redis_filing *filing, struct tw__redis_queue *queue,
                      struct tw__redis_task *old, struct tw__redis_task *task, uint64_t hash)
{
    struct tw__redis_route *route = tw__redis_route_for(queue, &filing->plan);
    log_task(ctx, filing, task, route);
    if (!looks(filing))
        old = tw__redis_queue_find(queue, hash, tw__redis_task_id(task));
    tw__redis_lease_put(queue, task, route, hash, old, filing->now_ms);
    tw__redis_count(queue, TW__REDIS_REPLACED, old != NULL);
}

static void file_new(RedisModuleCtx *ctx, const struct tw__redis_filing *filing, struct tw__redis_queue *queue,
                     struct tw__redis_task *old, uint64_t hash)
{
    tw__redis_queue_foresee_cells(tw__redis_shared.queues, hash);
    struct tw__redis_task *task = make_task(filing, tw__redis_string_bytes(filing->id));
    if (queue == NULL)
        file_first(ctx, filing, task, hash);
    else
        file_into(ctx, filing, queue, old, task, hash);
    tw__redis_shared.counts.put++;
    tw__redis_alarm_at(filing->due);
}

/* Whether KEEPDUE has found a task whose times stay. */
static bool keeps_times(const struct tw__redis_filing *filing)
{
    return filing->how == TW__TASK_KEEPDUE_IN_PLACE || filing->how == TW__TASK_KEEPDUE_SAME_TIMES;
}

/* Files the task as KEEPDUE says. `old` has its id; NULL: there is none. */
static void file_keeping(RedisModuleCtx *ctx, struct tw__redis_filing *filing, struct tw__redis_queue *queue,
                         struct tw__redis_task *old, uint64_t hash)
{
    if (filing->now_ms == 0)
        filing->now_ms = tw__redis_now_ms();
    struct tw__task_keep keep = tw__redis_keep_decide(tw__redis_shared.queues, old, &filing->plan,
                                                      filing->every, filing->due, filing->now_ms);
    filing->due = keep.due_ms;
    filing->how = keep.how;
    if (!keeps_times(filing)) {
        file_new(ctx, filing, queue, old, hash);
        return;
    }
    struct tw__redis_bytes id = tw__redis_string_bytes(filing->id);
    struct tw__redis_route *route = tw__redis_route_for(queue, &filing->plan);
    tw__redis_keep_put(queue, make_task(filing, id), route, hash, old, keep.how, filing->now_ms);
    log_task(ctx, filing, tw__redis_queue_find(queue, hash, id), route);
    tw__redis_alarm_next();
}

/* Files the task if the conditions allow it. Returns whether they do. */
static bool file_if_allowed(RedisModuleCtx *ctx, struct tw__redis_filing *filing, struct tw__redis_queue *queue,
                            uint64_t hash)
{
    struct tw__redis_task *old = NULL;
    if (queue != NULL && looks(filing))
        old = tw__redis_queue_find(queue, hash, tw__redis_string_bytes(filing->id));
    if (filing->condition != 0 && !tw__redis_conditions_met(filing->condition, old, filing->due))
        return false;
    if (filing->keepdue)
        file_keeping(ctx, filing, queue, old, hash);
    else
        file_new(ctx, filing, queue, old, hash);
    return true;
}

/* Files the task, logs the outcome, notifies of `event`, and replies with the id; or with nil, if the condition
 * keeps the queue as it is. `hash` is that of the id among the arguments. */
static void file_put(RedisModuleCtx *ctx, struct tw__redis_filing *filing, uint64_t hash, const char *event)
{
    struct tw__redis_queue *queue;
    if (!tw__redis_keys_open(ctx, filing->queue, &queue))
        return;
    if (filing->new_id) {
        filing->id = make_id(queue, filing->now_ms == 0 ? tw__redis_now_ms() : filing->now_ms);
        hash = tw__redis_queue_hash(tw__redis_shared.queues, tw__redis_string_bytes(filing->id));
    }
    if (file_if_allowed(ctx, filing, queue, hash)) {
        tw__redis_keys_changed(ctx, filing->queue, event);
        RedisModule_ReplyWithString(ctx, filing->id);
    } else {
        RedisModule_ReplyWithNull(ctx);
    }
    if (filing->new_id)
        RedisModule_FreeString(NULL, filing->id);
}

static int put_or_send(RedisModuleCtx *ctx, bool send, RedisModuleString **argv, int argc)
{
    struct tw__redis_filing filing;
    int id_at = send ? 3 : 2;
    uint64_t hash = tw__redis_queue_foresee(tw__redis_shared.queues, tw__redis_string_bytes(argv[id_at]));
    if (tw__redis_filing_read(ctx, &filing, send, argv, argc))
        file_put(ctx, &filing, hash, send ? "tw.send" : "tw.put");
    return REDISMODULE_OK;
}

int tw__redis_put_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return put_or_send(ctx, false, argv, argc);
}

int tw__redis_send_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return put_or_send(ctx, true, argv, argc);
}
