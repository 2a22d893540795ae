/* SPDX-License-Identifier: MIT
 *
 * The data type: how a queue is saved, loaded, written to the AOF, copied, digested, defragmented and freed.
 *
 *     RDB:  number of tasks, 1 if paused or 0, then chunks (chunk.c), each a string, until there are that many
 *           tasks. The server stores the number of the format (format.h) with the data type
 *     AOF:  TW.LOAD queue chunk, for each chunk; TW.FIRED queue PAUSE, if it is paused
 *
 * A loaded queue is attached at once. After RESTORE the key exists when the call returns, and while a data
 * set is loaded no tick runs. Tasks whose due time has passed wait in a line, which is sorted at the end of
 * loading.
 *
 * The server may free a value on any thread. A value that belonged to a key is detached by then (events.c).
 */
#include "keys.h"

#include <pthread.h>

#include "alarm.h"
#include "queues/chunk.h"
#include "queues/format.h"
#include "queues/lease.h"
#include "queues/place.h"
#include "queues/queue.h"
#include "queues/route.h"
#include "queues/share.h"
#include "queues/sums.h"
#include "server/shared.h"

enum { PAUSED = 1 };

static pthread_t server_thread;

static uint64_t monotonic_ms(void)
{
    return RedisModule_MonotonicMicroseconds() / 1000;
}

/* ---- RDB ------------------------------------------------------------------------------------------------- */

static void rdb_save(RedisModuleIO *rdb, void *value)
{
    struct tw__redis_chunks chunks;
    struct tw__redis_bytes bytes;
    const struct tw__redis_queue *queue = tw__redis_keys_value(value);
    tw__redis_chunks_init(&chunks, queue);
    RedisModule_SaveUnsigned(rdb, chunks.count);
    RedisModule_SaveUnsigned(rdb, queue->paused ? PAUSED : 0);
    while (tw__redis_chunks_next(&chunks, &bytes))
        RedisModule_SaveStringBuffer(rdb, bytes.at, bytes.size);
    tw__redis_chunks_fini(&chunks);
}

/* Loads chunks until there are `count` tasks. Returns false if the file cannot be read, or if a chunk is
 * damaged, of which `fault` tells more. */
static bool load_chunks(RedisModuleIO *rdb, struct tw__redis_queue *queue, uint64_t count,
                        struct tw__redis_fault *fault)
{
    RedisModuleCtx *ctx = RedisModule_GetContextFromIO(rdb);
    while (tw__redis_table_count(&queue->tasks) < count) {
        uint64_t before = tw__redis_table_count(&queue->tasks);
        struct tw__redis_bytes bytes;
        char *buffer = RedisModule_LoadStringBuffer(rdb, &bytes.size);
        if (buffer == NULL || RedisModule_IsIOError(rdb))
            return false;
        bytes.at = buffer;
        bool good = tw__redis_chunk_read(queue, bytes, NULL, tw__redis_clock_now(ctx), monotonic_ms(), fault);
        RedisModule_Free(buffer);
        if (!good || tw__redis_table_count(&queue->tasks) == before)
            return false;
    }
    return tw__redis_table_count(&queue->tasks) == count;
}

static void *rdb_load(RedisModuleIO *rdb, int number)
{
    if (number != TW__REDIS_FORMAT_NUMBER) {
        RedisModule_LogIOError(rdb, "warning",
                               "tickwheel: format is %d: expected %d; the version that wrote it can read it",
                               (int)tw__redis_format((uint64_t)number), TW__REDIS_FORMAT);
        return NULL;
    }
    uint64_t count = RedisModule_LoadUnsigned(rdb), state = RedisModule_LoadUnsigned(rdb);
    struct tw__redis_fault fault = {0};
    char text[TW__REDIS_FAULT_TEXT];
    if (RedisModule_IsIOError(rdb))
        return NULL;
    struct tw__redis_queue *queue = tw__redis_queue_new(tw__redis_shared.queues);
    tw__redis_keys_name(queue, RedisModule_GetKeyNameFromIO(rdb), RedisModule_GetDbIdFromIO(rdb));
    /* A file has an empty queue if another module's handler had the file written. The server must be able
     * to load such a file. */
    bool good = state <= PAUSED &&
                (count > 0 || state == PAUSED || (RedisModule_GetContextFlags(NULL) & TW__REDIS_LOADING) != 0);
    tw__redis_sums_pause(queue, state == PAUSED);
    if (!good || !load_chunks(rdb, queue, count, &fault)) {
        RedisModule_LogIOError(rdb, "warning", "tickwheel: a queue is damaged: %s",
                               tw__redis_fault_text(&fault, text));
        tw__redis_reaper_add(queue);
        return NULL;
    }
    tw__redis_queue_attach(queue);
    tw__redis_alarm_next();
    return queue;
}

/* ---- AOF ------------------------------------------------------------------------------------------------- */

static void aof_rewrite(RedisModuleIO *aof, RedisModuleString *name, void *value)
{
    struct tw__redis_chunks chunks;
    struct tw__redis_bytes bytes;
    const struct tw__redis_queue *queue = tw__redis_keys_value(value);
    tw__redis_chunks_init(&chunks, queue);
    while (tw__redis_chunks_next(&chunks, &bytes))
        RedisModule_EmitAOF(aof, "TW.LOAD", "sb", name, bytes.at, bytes.size);
    tw__redis_chunks_fini(&chunks);
    if (queue->paused)
        RedisModule_EmitAOF(aof, "TW.FIRED", "sc", name, "PAUSE");
}

/* ---- copies, digests, sizes ------------------------------------------------------------------------------ */

static void *copy(RedisModuleKeyOptCtx *context, const void *value)
{
    struct tw__redis_queue *queue = tw__redis_queue_new(tw__redis_shared.queues);
    struct tw__redis_chunks chunks;
    struct tw__redis_bytes bytes;
    tw__redis_keys_name(queue, RedisModule_GetToKeyNameFromOptCtx(context),
                        RedisModule_GetToDbIdFromOptCtx(context));
    const struct tw__redis_queue *from = tw__redis_keys_value(value);
    uint64_t now_ms = tw__redis_now_ms();
    tw__redis_chunks_init(&chunks, from);
    while (tw__redis_chunks_next(&chunks, &bytes))
        tw__redis_chunk_read(queue, bytes, NULL, now_ms, monotonic_ms(), NULL);
    tw__redis_chunks_fini(&chunks);
    tw__redis_lease_forget_all(queue, from, now_ms);
    tw__redis_sums_pause(queue, from->paused);
    tw__redis_queue_attach(queue);
    tw__redis_alarm_next();
    return queue;
}

static void digest_bytes(RedisModuleDigest *digest, struct tw__redis_bytes bytes)
{
    RedisModule_DigestAddStringBuffer(digest, bytes.at, bytes.size);
}

static void digest_attempt(RedisModuleDigest *digest, const struct tw__redis_task *task)
{
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    RedisModule_DigestAddLongLong(digest, attempt.stage);
    RedisModule_DigestAddLongLong(digest, attempt.renewed);
    RedisModule_DigestAddLongLong(digest, (long long)attempt.due);
    RedisModule_DigestAddLongLong(digest, (long long)attempt.token);
    RedisModule_DigestAddLongLong(digest, attempt.lease_ms);
    RedisModule_DigestAddLongLong(digest, attempt.number);
    RedisModule_DigestAddLongLong(digest, attempt.lapses);
    if (attempt.has_next)
        RedisModule_DigestAddLongLong(digest, (long long)attempt.next);
    if (attempt.has_missed_periods)
        RedisModule_DigestAddLongLong(digest, (long long)attempt.missed_periods);
    digest_bytes(digest, attempt.worker);
    digest_bytes(digest, attempt.error);
}

static void digest_retry(RedisModuleDigest *digest, const struct tw__redis_retry *retry)
{
    RedisModule_DigestAddLongLong(digest, retry->tries);
    RedisModule_DigestAddLongLong(digest, (long long)retry->first_ms);
    RedisModule_DigestAddLongLong(digest, (long long)retry->max_ms);
    RedisModule_DigestAddLongLong(digest, retry->factor_percent);
    RedisModule_DigestAddLongLong(digest, retry->jitter);
}

/* Each server moves the ends of leases by its own clock (place.c). So after a step of the clock the digests of
 * a primary and of its replica may differ, by some milliseconds in a lease, until the lease has another end. */
static void digest_task(void *entry, void *arg)
{
    RedisModuleDigest *digest = arg;
    const struct tw__redis_task *task = entry;
    struct tw__redis_plan plan = tw__redis_route_plan(tw__redis_route_of(tw__redis_shared.queues, task));
    digest_bytes(digest, tw__redis_task_id(task));
    RedisModule_DigestAddLongLong(digest, (long long)tw__redis_place_due(tw__redis_shared.queues, task));
    RedisModule_DigestAddLongLong(digest, (long long)tw__redis_task_every(task));
    RedisModule_DigestAddLongLong(digest, (long long)tw__redis_task_times(task));
    if (task->has_attempt)
        digest_attempt(digest, task);
    RedisModule_DigestAddLongLong(digest, plan.kind);
    RedisModule_DigestAddLongLong(digest, plan.missed);
    RedisModule_DigestAddLongLong(digest, (long long)plan.maxlen);
    RedisModule_DigestAddLongLong(digest, (long long)plan.max_late_ms);
    digest_bytes(digest, plan.target);
    digest_retry(digest, &plan.retry);
    digest_bytes(digest, tw__redis_task_packed(task));
    RedisModule_DigestEndSequence(digest);
}

static void digest(RedisModuleDigest *sum, void *value)
{
    const struct tw__redis_queue *queue = tw__redis_keys_value(value);
    RedisModule_DigestAddLongLong(sum, queue->paused);
    RedisModule_DigestEndSequence(sum);
    tw__redis_table_each(&queue->tasks, digest_task, sum);
}

static size_t memory_usage(RedisModuleKeyOptCtx *context, const void *value, size_t samples)
{
    (void)context;
    (void)samples;
    return tw__redis_keys_value(value)->bytes;
}

/* The server frees values with a high effort on a background thread. When memory is short we report an effort
 * of 1. Then free_value() runs on the server's thread, and the memory is available when the call returns. */
static size_t free_effort(RedisModuleKeyOptCtx *context, const void *value)
{
    (void)context;
    if (RedisModule_GetUsedMemoryRatio() >= 1)
        return 1;
    return tw__redis_table_count(&((const struct tw__redis_queue *)value)->tasks);
}

/* ---- freeing --------------------------------------------------------------------------------------------- */

static void free_value(void *value)
{
    struct tw__redis_queue *queue = value;
    bool ours = pthread_equal(pthread_self(), server_thread) != 0;
    if (ours)
        tw__redis_queue_detach(
            queue); /* never a key's value, for example from RESTORE with an expiry in the past */
    tw__redis_reaper_add(queue);
    /* While the server evicts keys, it goes on until memory is free. So the tasks are freed now, not later. It
     * evicts nothing while a batch is open, and the present delivery may be one of this queue. */
    if (ours && tw__redis_shared.batch == NULL && RedisModule_GetUsedMemoryRatio() >= 1)
        tw__redis_reaper_run_all(tw__redis_shared.queues);
}

/* ---- defragmentation ------------------------------------------------------------------------------------- */

static RedisModuleDefragCtx *defrag_context; /* of the current call, for move_block() */

static void *move_block(void *block)
{
    return RedisModule_DefragAlloc(defrag_context, block);
}

static void gather_task(void *entry, void *arg)
{
    tw__redis_vector_add(arg, entry, &tw__redis_shared.queues->memory);
}

/* Moves the tasks of one segment of the table, and the segment's memory. Returns false past the end. */
static bool defrag_segment(struct tw__redis_queue *queue, uint64_t *segment)
{
    struct tw__redis_vector few = {NULL, 0, 0};
    uint64_t same = *segment;
    bool there = tw__redis_table_walk(&queue->tasks, &same, gather_task, &few);
    for (size_t i = 0; i < few.count; i++) {
        struct tw__redis_task *task = few.at[i], *moved = move_block(task);
        if (moved != NULL)
            tw__redis_queue_moved(queue, task, moved);
        tw__redis_share_relocate(moved != NULL ? moved : task, move_block);
    }
    RedisModule_Free(few.at);
    return tw__redis_queue_relocate(queue, segment, move_block) && there;
}

static int defrag(RedisModuleDefragCtx *context, RedisModuleString *name, void **value)
{
    (void)name;
    unsigned long cursor = 0;
    RedisModule_DefragCursorGet(context, &cursor);
    defrag_context = context;
    uint64_t segment = cursor;
    struct tw__redis_queue *queue = tw__redis_keys_value(*value);
    if (tw__redis_shared.batch != NULL)
        return 0; /* the open batch and the current delivery keep addresses of tasks */
    while (defrag_segment(queue, &segment))
        if (RedisModule_DefragShouldStop(context) &&
            RedisModule_DefragCursorSet(context, segment) == REDISMODULE_OK)
            return 1;
    return 0;
}

/* ---- registering ----------------------------------------------------------------------------------------- */

int tw__redis_persist_register(RedisModuleCtx *ctx)
{
    RedisModuleTypeMethods methods = {
        .version = REDISMODULE_TYPE_METHOD_VERSION,
        .rdb_load = rdb_load,
        .rdb_save = rdb_save,
        .aof_rewrite = aof_rewrite,
        .digest = digest,
        .free = free_value,
        .mem_usage2 = memory_usage,
        .free_effort2 = free_effort,
        .unlink2 = tw__redis_keys_unlinked,
        .copy2 = copy,
        .defrag = defrag,
    };
    server_thread = pthread_self();
    tw__redis_shared.type = RedisModule_CreateDataType(ctx, "tickwheel", TW__REDIS_FORMAT_NUMBER, &methods);
    return tw__redis_shared.type == NULL ? REDISMODULE_ERR : REDISMODULE_OK;
}
