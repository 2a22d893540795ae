/* SPDX-License-Identifier: MIT
 *
 * TW.PUT and TW.SEND read all their arguments first (options.c), so that an error changes nothing. The command
 * is replicated with the task's id, with an absolute time and without a condition. Arguments that have this
 * form already are passed on unchanged. Example: TW.SEND s t * IN 500 NX PAYLOAD f v is replicated as TW.SEND s
 * t 1795312608000-0 AT 1795312608500 PAYLOAD f v.
 *
 * KEEPDUE has been decided by then. A task that is renewed in place is replicated as TW.FIRED RENEW, one that
 * keeps its times for another target as TW.LOAD, and any other one as a command without KEEPDUE. Example: at
 * 1795312608500 a worker has the task t, which runs once. TW.PUT s t IN 500 KEEPDUE PAYLOAD v is replicated as
 * TW.PUT s t AT 1795312608500 PAYLOAD v.
 */
#include "filing.h"

#include <stdio.h>
#include <string.h>

#include "keyspace/alarm.h"
#include "keyspace/chores.h"
#include "keyspace/keys.h"
#include "queues/chunk.h"
#include "queues/keep.h"
#include "queues/queue.h"
#include "queues/route.h"
#include "server/rights.h"
#include "server/strings.h"

enum { ID_MAX = 48, SMALL_ARGUMENTS = 64 };

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
        uint64_t hash = tw__redis_queue_hash(tw__redis_shared.queues, id);
        tw__redis_chores_finish_for(hash);
        if (queue == NULL || tw__redis_queue_find(queue, hash, id) == NULL)
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

/* Whether the argument at an index is a condition, which has been decided. */
static bool is_decided(const struct tw__redis_filing *filing, int i)
{
    return i != 0 && (i == filing->condition_at || i == filing->keepdue_at);
}

/* Replicates a task that has kept its times, as it is now. */
static void replicate_kept(RedisModuleCtx *ctx, const struct tw__redis_filing *filing,
                           const struct tw__redis_queue *queue, uint64_t hash)
{
    struct tw__redis_buffer chunk = {0};
    tw__redis_chunk_put(&chunk, queue, tw__redis_queue_find(queue, hash, tw__redis_string_bytes(filing->id)));
    if (filing->how == TW__TASK_KEEPDUE_IN_PLACE)
        RedisModule_Replicate(ctx, "TW.FIRED", "scb", filing->queue, "RENEW", chunk.at, chunk.size);
    else
        RedisModule_Replicate(ctx, "TW.LOAD", "sb", filing->queue, chunk.at, chunk.size);
    tw__redis_buffer_free(&chunk, &tw__redis_shared.queues->memory);
}

/* Replicates the command as it came, except for the id, the time and the condition. */
static void replicate_filing(RedisModuleCtx *ctx, const struct tw__redis_filing *filing)
{
    if (filing->absolute && !filing->new_id && filing->condition_at == 0 && filing->keepdue_at == 0) {
        RedisModule_ReplicateVerbatim(ctx);
        return;
    }
    RedisModuleString *small[SMALL_ARGUMENTS], **vector = small;
    if (filing->argc > SMALL_ARGUMENTS)
        vector = RedisModule_Alloc((size_t)filing->argc * sizeof(RedisModuleString *));
    size_t count = 0;
    for (int i = 1; i < filing->argc; i++)
        if (!is_decided(filing, i))
            vector[count++] = filing->argv[i];
    RedisModuleString *due = RedisModule_CreateStringFromLongLong(NULL, (long long)filing->due);
    vector[filing->id_at - 1] = filing->id;
    vector[filing->id_at] = tw__redis_shared.at;
    vector[filing->id_at + 1] = due;
    RedisModule_Replicate(ctx, filing->command, "v", vector, count);
    RedisModule_FreeString(NULL, due);
    if (vector != small)
        RedisModule_Free(vector);
}

/* Makes the queue with its first task. */
static void file_first(RedisModuleCtx *ctx, const struct tw__redis_filing *filing, RedisModuleKey *key,
                       struct tw__redis_task *task, uint64_t hash)
{
    tw__redis_chores_finish(); /* tasks that are due together keep their order, whatever their queues */
    struct tw__redis_queue *queue = tw__redis_queue_new(tw__redis_shared.queues);
    struct tw__redis_route *route = tw__redis_route_for(queue, &filing->plan);
    tw__redis_queue_put(queue, task, route, hash, NULL, filing->now_ms);
    tw__redis_keys_set(ctx, key, filing->queue, queue);
}

static void file_new(RedisModuleCtx *ctx, const struct tw__redis_filing *filing, RedisModuleKey *key,
                     struct tw__redis_queue *queue, uint64_t hash)
{
    struct tw__redis_task *task = make_task(filing, tw__redis_string_bytes(filing->id));
    if (queue == NULL)
        file_first(ctx, filing, key, task, hash);
    else
        tw__redis_chores_leave(&(struct tw__redis_chore){.kind = TW__REDIS_CHORE_PUT,
                                                         .queue = queue,
                                                         .task = task,
                                                         .route = tw__redis_route_for(queue, &filing->plan),
                                                         .hash = hash,
                                                         .now_ms = filing->now_ms});
    tw__redis_shared.counts.added++;
    tw__redis_alarm_at(filing->due);
}

/* Whether KEEPDUE has found a task whose times stay. */
static bool keeps_times(const struct tw__redis_filing *filing)
{
    return filing->how == TW__TASK_KEEPDUE_IN_PLACE || filing->how == TW__TASK_KEEPDUE_SAME_TIMES;
}

/* Files the task as KEEPDUE says. `old` has its id; NULL: there is none. */
static void file_keeping(RedisModuleCtx *ctx, struct tw__redis_filing *filing, RedisModuleKey *key,
                         struct tw__redis_queue *queue, struct tw__redis_task *old, uint64_t hash)
{
    if (filing->now_ms == 0)
        filing->now_ms = tw__redis_now_ms();
    struct tw__redis_keep keep = tw__redis_keep_decide(tw__redis_shared.queues, old, &filing->plan,
                                                       filing->every, filing->due, filing->now_ms);
    filing->due = keep.due;
    filing->how = keep.how;
    if (!keeps_times(filing)) {
        file_new(ctx, filing, key, queue, hash);
        return;
    }
    tw__redis_chores_finish(); /* those before it file their tasks before this one */
    tw__redis_keep_put(queue, make_task(filing, tw__redis_string_bytes(filing->id)),
                       tw__redis_route_for(queue, &filing->plan), hash, old, keep.how, filing->now_ms);
    tw__redis_alarm_next();
}

/* Files the task if the conditions allow it. Returns whether they do. Without a condition nothing is looked up
 * yet (chores.c). */
static bool file_if_allowed(RedisModuleCtx *ctx, struct tw__redis_filing *filing, RedisModuleKey *key,
                            struct tw__redis_queue *queue, uint64_t hash)
{
    struct tw__redis_task *old = NULL;
    bool looks = filing->condition != 0 || filing->keepdue_at != 0;
    if (looks && queue != NULL)
        old = tw__redis_queue_find(queue, hash, tw__redis_string_bytes(filing->id));
    if (looks && !tw__redis_conditions_met(filing->condition, old, filing->due))
        return false;
    if (filing->keepdue_at != 0)
        file_keeping(ctx, filing, key, queue, old, hash);
    else
        file_new(ctx, filing, key, queue, hash);
    return true;
}

int tw__redis_filing_file(RedisModuleCtx *ctx, struct tw__redis_filing *filing, uint64_t hash,
                          const char *event)
{
    RedisModuleKey *key;
    struct tw__redis_queue *queue;
    if (!tw__redis_keys_open_quickly(ctx, filing->queue, &key, &queue))
        return REDISMODULE_OK;
    if (filing->new_id) {
        filing->id = make_id(queue, filing->now_ms == 0 ? tw__redis_now_ms() : filing->now_ms);
        hash = tw__redis_queue_foresee(tw__redis_shared.queues, tw__redis_string_bytes(filing->id));
    }
    tw__redis_chores_finish_for(hash);
    if (file_if_allowed(ctx, filing, key, queue, hash)) {
        RedisModule_CloseKey(key);
        if (keeps_times(filing))
            replicate_kept(ctx, filing, queue, hash);
        else
            replicate_filing(ctx, filing);
        tw__redis_keys_changed(ctx, filing->queue, event);
        RedisModule_ReplyWithString(ctx, filing->id);
    } else {
        RedisModule_CloseKey(key);
        RedisModule_ReplyWithNull(ctx);
    }
    if (filing->new_id)
        RedisModule_FreeString(NULL, filing->id);
    return REDISMODULE_OK;
}
