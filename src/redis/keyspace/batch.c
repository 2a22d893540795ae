/* SPDX-License-Identifier: MIT
 *
 * A delivered task stays in its queue while a few more tasks are delivered. Meanwhile the memory that its
 * removal touches is prefetched. At the end of the batch TW.FIRED names the tasks that have left (ONCE), the
 * tasks that are due again (NEXT), and the tasks that were leased anew, have failed or have died (changes),
 * queue by queue.
 *
 * RedisModule_Call() can run other modules' keyspace handlers, and so can opening an expired key or sending
 * our own notifications. Such a handler may call our commands or delete any key. So before a handler sees or
 * changes a queue, the delivered tasks leave it, in the AOF too: keys.c, the only way to a queue,
 * settles the open batch. If a task was changed or removed during a call, the delivery leaves it alone. While
 * notifications are sent, the batch keeps the names of queues and nothing else of them.
 *
 * A replica does not remove an emptied queue by itself; it waits for DEL. Commands that a handler runs on
 * the emptied queue are replicated after TW.FIRED and before DEL, in the order in which they ran here.
 * Example: a handler of tw.delivered adds a task to the emptied queue. The replica then gets TW.FIRED, TW.SEND
 * and no DEL.
 *
 * Invariants of an open batch
 *   B1  A queue with `in_batch` is attached, and is in the list of touched queues. All other queues
 *       have nothing to replicate.
 *   B2  A leaving task is filed nowhere. It is in the table of its queue, which tells TW__REDIS_TELL_DELIVERED.
 */
#include "batch.h"

#include <base/assert.h>
#include <string.h>

#include "queues/place.h"
#include "queues/queue.h"
#include "server/strings.h"

/* ---- checking -------------------------------------------------------------------------------------------- */

#if TW_DEBUG > 1
/* Returns the name of the first broken invariant, or NULL. */
static const char *broken(const struct tw__redis_batch *batch)
{
    uint64_t touched = 0;
    for (const struct tw__redis_queue *queue = batch->touched; queue != NULL; queue = queue->touched, touched++)
        if (!queue->in_batch || !queue->attached)
            return "B1: a touched queue is not in the batch, or is detached";
    struct tw__link *attached = &tw__redis_shared.queues->attached;
    for (struct tw__link *link = attached->next; link != attached; link = link->next) {
        const struct tw__redis_queue *queue = tw__redis_queue_at(link);
        touched -= queue->in_batch;
        if (!queue->in_batch &&
            (queue->tells != 0 || queue->once.count > 0 || queue->next.count > 0 || queue->changes.size > 0))
            return "B1: a queue outside the batch has something to replicate";
    }
    if (touched != 0)
        return "B1: a queue in the batch is not in the list of touched queues";
    for (uint32_t i = 0; i < batch->leaving_count; i++) {
        const struct tw__redis_leaving *leaving = &batch->leaving[i];
        if (tw__redis_task_filed(leaving->task) || !(leaving->queue->tells & TW__REDIS_TELL_DELIVERED) ||
            tw__redis_queue_find(leaving->queue, leaving->hash, tw__redis_task_id(leaving->task)) !=
                leaving->task)
            return "B2: a leaving task is filed, or not in its queue, or its queue tells nothing";
    }
    return NULL;
}

static void expect_sound(const struct tw__redis_batch *batch)
{
    const char *fault = broken(batch);
    if (fault != NULL)
        RedisModule_Log(batch->ctx, "warning", "tickwheel: %s", fault);
    TW_ASSERT(fault == NULL);
}
#else
#define expect_sound(batch) ((void)(batch))
#endif

/* ---- replication ----------------------------------------------------------------------------------------- */

void tw__redis_batch_touch(struct tw__redis_batch *batch, struct tw__redis_queue *queue)
{
    TW_ASSERT(queue->attached);
    if (queue->in_batch)
        return;
    queue->in_batch = true;
    queue->touched = batch->touched;
    batch->touched = queue;
}

static void replicate(RedisModuleCtx *ctx, struct tw__redis_queue *queue, const char *what,
                      struct tw__redis_vector *strings)
{
    if (strings->count > 0)
        RedisModule_Replicate(ctx, "TW.FIRED", "scv", queue->name, what, strings->at, strings->count);
    for (size_t i = 0; i < strings->count; i++)
        RedisModule_FreeString(NULL, strings->at[i]);
    RedisModule_Free(strings->at);
    memset(strings, 0, sizeof *strings);
}

/* Replicates the names of tasks that were delivered: a task is due again, and later it leaves. */
static void replicate_names(RedisModuleCtx *ctx, struct tw__redis_queue *queue)
{
    int db = RedisModule_GetSelectedDb(ctx);
    RedisModule_SelectDb(ctx, queue->db);
    replicate(ctx, queue, "NEXT", &queue->next);
    replicate(ctx, queue, "ONCE", &queue->once);
    RedisModule_SelectDb(ctx, db);
}

static void replicate_changes(RedisModuleCtx *ctx, struct tw__redis_queue *queue)
{
    if (queue->changes.size == 0)
        return;
    int db = RedisModule_GetSelectedDb(ctx);
    RedisModule_SelectDb(ctx, queue->db);
    tw__redis_log_changes(ctx, queue->name, &queue->changes);
    tw__redis_buffer_free(&queue->changes, &tw__redis_shared.queues->memory);
    RedisModule_SelectDb(ctx, db);
}

/* A queue has names to replicate or changes, never both: one task may be in both, and their order counts. */
static void replicate_left(RedisModuleCtx *ctx, struct tw__redis_queue *queue)
{
    replicate_changes(ctx, queue);
    replicate_names(ctx, queue);
}

struct tw__redis_buffer *tw__redis_batch_log(struct tw__redis_batch *batch, struct tw__redis_queue *queue)
{
    tw__redis_batch_touch(batch, queue);
    replicate_names(batch->ctx, queue);
    return &queue->changes;
}

/* ---- after a delivery ------------------------------------------------------------------------------------ */

static void let_leave(struct tw__redis_batch *batch)
{
    for (uint32_t i = 0; i < batch->leaving_count; i++)
        tw__redis_queue_remove(batch->leaving[i].queue, batch->leaving[i].task, batch->leaving[i].hash);
    batch->leaving_count = 0;
}

void tw__redis_batch_leave(struct tw__redis_batch *batch, struct tw__redis_queue *queue,
                           struct tw__redis_task *task)
{
    struct tw__redis_bytes id = tw__redis_task_id(task);
    uint64_t hash = tw__redis_queue_hash(tw__redis_shared.queues, id);
    TW_ASSERT(!tw__redis_task_filed(task));
    tw__redis_table_prefetch(&queue->tasks, hash);
    if (batch->leaving_count == TW__REDIS_BATCH_LEAVING)
        let_leave(batch);
    batch->leaving[batch->leaving_count++] = (struct tw__redis_leaving){queue, task, hash};
    tw__redis_batch_tell(batch, queue, TW__REDIS_TELL_DELIVERED);
    replicate_changes(batch->ctx, queue);
    tw__redis_vector_add(&queue->once, tw__redis_string_new(id), &tw__redis_shared.queues->memory);
    expect_sound(batch);
}

void tw__redis_batch_rearm(struct tw__redis_batch *batch, struct tw__redis_queue *queue,
                           struct tw__redis_task *task, uint64_t due, uint64_t times, uint64_t now_ms)
{
    TW_ASSERT(!tw__redis_task_filed(task) && times > 0 && due <= TW__TASK_TIME_MAX);
    tw__redis_batch_tell(batch, queue, TW__REDIS_TELL_DELIVERED);
    replicate_changes(batch->ctx, queue);
    tw__redis_vector_add(&queue->next, tw__redis_string_new(tw__redis_task_id(task)),
                         &tw__redis_shared.queues->memory);
    tw__redis_vector_add(&queue->next, tw__redis_string_of_number(due), &tw__redis_shared.queues->memory);
    tw__redis_vector_add(
        &queue->next, RedisModule_CreateStringFromLongLong(NULL, times == TW_FOREVER ? -1 : (long long)times),
        &tw__redis_shared.queues->memory);
    if (task->has_attempt)
        task = tw__redis_queue_set_attempt(queue, task, NULL);
    tw__redis_task_set_times(task, times);
    task->tries = 0;
    tw__redis_place_file(tw__redis_shared.queues, task, due, now_ms);
    expect_sound(batch);
}

void tw__redis_batch_tell(struct tw__redis_batch *batch, struct tw__redis_queue *queue, uint8_t what)
{
    tw__redis_batch_touch(batch, queue);
    queue->tells |= what;
}

/* ---- from beginning to end ------------------------------------------------------------------------------- */

void tw__redis_batch_begin(struct tw__redis_batch *batch, RedisModuleCtx *ctx)
{
    TW_ASSERT(tw__redis_shared.batch == NULL);
    batch->ctx = ctx;
    batch->touched = NULL;
    batch->settled = batch->leaving_count = 0;
    tw__redis_shared.batch = batch;
}

static void log_left(struct tw__redis_batch *batch)
{
    let_leave(batch);
    for (struct tw__redis_queue *queue = batch->touched; queue != NULL; queue = queue->touched)
        replicate_left(batch->ctx, queue);
    expect_sound(batch);
}

struct tw__redis_told *tw__redis_batch_release(struct tw__redis_batch *batch)
{
    struct tw__redis_told *all = NULL;
    log_left(batch);
    while (batch->touched != NULL) {
        struct tw__redis_queue *queue = batch->touched;
        batch->touched = queue->touched;
        if (queue->tells != 0) {
            struct tw__redis_told *one = RedisModule_Alloc(sizeof *one);
            RedisModuleString *name = RedisModule_CreateStringFromString(NULL, queue->name);
            *one = (struct tw__redis_told){all, name, queue->db, queue->tells};
            all = one;
        }
        queue->in_batch = false;
        queue->tells = 0;
    }
    return all;
}

void tw__redis_batch_end(struct tw__redis_batch *batch)
{
    TW_ASSERT(tw__redis_shared.batch == batch && batch->touched == NULL && batch->leaving_count == 0);
    (void)batch;
    tw__redis_shared.batch = NULL;
}

/* ---- other modules --------------------------------------------------------------------------------------- */

void tw__redis_batch_settle_open(struct tw__redis_batch *batch)
{
    batch->settled++;
    log_left(batch);
}

void tw__redis_batch_forget(struct tw__redis_queue *queue)
{
    if (!queue->in_batch)
        return;
    TW_ASSERT(tw__redis_shared.batch != NULL);
    TW_ASSERT(tw__redis_shared.batch->leaving_count == 0); /* keys.c has settled the batch */
    struct tw__redis_queue **link = &tw__redis_shared.batch->touched;
    while (*link != queue)
        link = &(*link)->touched;
    *link = queue->touched;
    queue->in_batch = false;
    queue->tells = 0;
}
