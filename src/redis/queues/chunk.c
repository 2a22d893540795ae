/* SPDX-License-Identifier: MIT
 *
 * Tasks as bytes. All numbers are varints (bytes.h).
 *
 *     chunk:  the number of the format (format.h), then tasks to the end
 *
 *     task:   route, due - due of the task before (the first task: due), flags, [attempt], [every, times],
 *             id size, id, payload size, payload as it is packed in memory
 *
 *     task that shares the payload of a task before it, in this chunk or in one before: in place of the payload
 *             the id of that task, as a number of bytes at the start of its own id, and size and bytes of the
 *             rest. Example: for the task x@1700000060000, the numbers 10 and 5 and the bytes 00000 name the
 *             task x@1700000000000
 *
 *     task of the log whose payload is beside the chunk, as it is large: nothing in place of the payload
 *
 *     route:  its number in this chunk; a new number is one more than the last number, and the definition of
 *             the route follows it: kind, missed, maxlen, max_late; target size and target, if it has one;
 *             tries, first_ms, factor, max_ms, jitter (101: as the settings say); wait, [next_try]. The first
 *             route of a chunk is 0, and no change is (change.c)
 *     missed: the policy for missed periods; max_late is the limit plus 1, or 0 without one
 *
 *     wait:   the last wait for the target, since it has refused a task; 0 without one. A put's log has none
 *     next_try: when that wait ends or has ended, Unix ms
 *
 *     due:    the time for which the task is filed, such as the end of its lease; its attempt has its due time
 *     flags:  1 if the task repeats, 2 if it has an attempt state, 4 if it shares a payload written
 *             before, 8 if the payload is beside the chunk; from bit 4 on the number of failed tries
 *     times:  0 means for ever
 *
 * Tasks are in the order of their due times, equal due times in the order of filing. So the differences of
 * due times are small, and tasks with equal due times keep their order. A chunk is read after the chunks before
 * it.
 *
 * The bytes may come from a damaged file, or from RESTORE, so the reader checks every size.
 */
#include "chunk.h"

#include <string.h>

#include "format.h"
#include "lease.h"
#include "look.h"
#include "place.h"
#include "queue.h"
#include "route.h"
#include "share.h"
#include "sums.h"

enum { REPEATS = 1, HAS_ATTEMPT = 2, SHARED = 4, BESIDE = 8, TRIES = 16 };
_Static_assert(TW_MISSED_COALESCE == 0 && TW_MISSED_SKIP == 1 && TW_MISSED_BURST == 2,
               "the policies for missed periods are written as these numbers");

/* ---- writing --------------------------------------------------------------------------------------------- */

void tw__redis_chunks_init(struct tw__redis_chunks *chunks, const struct tw__redis_queue *queue)
{
    memset(chunks, 0, sizeof *chunks);
    chunks->queues = queue->queues;
    chunks->task = tw__redis_look_sorted(queue);
    chunks->count = tw__redis_table_count(&queue->tasks);
    chunks->dump = ++chunks->queues->dumps;
}

void tw__redis_chunks_fini(struct tw__redis_chunks *chunks)
{
    chunks->queues->memory.free(chunks->task);
    tw__redis_buffer_free(&chunks->buffer, &chunks->queues->memory);
}

static void put_number(struct tw__redis_chunks *chunks, uint64_t number)
{
    tw__redis_buffer_put_number(&chunks->buffer, number, &chunks->queues->memory);
}

static void put_bytes(struct tw__redis_chunks *chunks, struct tw__redis_bytes bytes)
{
    tw__redis_buffer_put_bytes(&chunks->buffer, bytes, &chunks->queues->memory);
}

/* Writes how long tasks wait for a target that refuses them. */
static void put_wait(struct tw__redis_chunks *chunks, const struct tw__redis_route *route)
{
    put_number(chunks, route->wait_ms);
    if (route->wait_ms > 0)
        put_number(chunks, tw__redis_place_next_try(route));
}

static void put_route(struct tw__redis_chunks *chunks, struct tw__redis_route *route, uint32_t *routes)
{
    if (route->chunk == chunks->queues->chunks) {
        put_number(chunks, route->number);
        return;
    }
    struct tw__redis_plan plan = tw__redis_route_plan(route);
    route->chunk = chunks->queues->chunks;
    route->number = (*routes)++;
    put_number(chunks, route->number);
    put_number(chunks, plan.kind);
    put_number(chunks, plan.missed);
    put_number(chunks, plan.maxlen);
    put_number(chunks, plan.max_late_ms == TW_FOREVER ? 0 : plan.max_late_ms + 1);
    if (plan.kind != TW__REDIS_WORKERS)
        put_bytes(chunks, plan.target);
    put_number(chunks, plan.retry.tries);
    put_number(chunks, plan.retry.first_ms);
    put_number(chunks, plan.retry.factor_percent);
    put_number(chunks, plan.retry.max_ms);
    put_number(chunks, plan.retry.jitter);
    if (chunks->dump > 0)
        put_wait(chunks, route);
}

/* The task with which the payload that this task shares has been written; NULL if the payload is not shared, or
 * is to be written with this task. */
static const struct tw__redis_task *written_before(const struct tw__redis_chunks *chunks,
                                                   const struct tw__redis_task *task)
{
    struct tw__redis_share *share = tw__redis_task_share(task);
    if (share == NULL || share->dump == chunks->dump)
        return share == NULL ? NULL : share->written;
    share->dump = chunks->dump;
    share->written = task;
    return NULL;
}

/* Writes the id of another task in place of the payload. */
static void put_other(struct tw__redis_chunks *chunks, struct tw__redis_bytes own, struct tw__redis_bytes other)
{
    size_t same = 0;
    while (same < own.size && same < other.size && own.at[same] == other.at[same])
        same++;
    put_number(chunks, same);
    put_bytes(chunks, (struct tw__redis_bytes){other.at + same, other.size - same});
}

/* Writes a task without its payload. `payload` is the flag that says where that is. */
static void put_head(struct tw__redis_chunks *chunks, const struct tw__redis_task *task, uint64_t before,
                     unsigned payload)
{
    uint64_t times = tw__redis_task_times(task);
    bool repeats = task->repeats;
    put_number(chunks, tw__redis_place_due(chunks->queues, task) - before);
    put_number(chunks, (uint64_t)(repeats ? REPEATS : 0) + (task->has_attempt ? HAS_ATTEMPT : 0) + payload +
                           (uint64_t)tw__redis_place_tries(chunks->queues, task) * TRIES);
    if (task->has_attempt) {
        struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
        tw__redis_attempt_put(&chunks->buffer, &attempt, &chunks->queues->memory);
    }
    if (repeats) {
        put_number(chunks, tw__redis_task_every(task));
        put_number(chunks, times == TW_FOREVER ? 0 : times);
    }
    put_bytes(chunks, tw__redis_task_id(task));
}

static void put_task(struct tw__redis_chunks *chunks, const struct tw__redis_task *task, uint64_t before,
                     uint32_t *routes)
{
    const struct tw__redis_task *written = written_before(chunks, task);
    put_route(chunks, tw__redis_route_of(chunks->queues, task), routes);
    put_head(chunks, task, before, written != NULL ? SHARED : 0);
    if (written != NULL)
        put_other(chunks, tw__redis_task_id(task), tw__redis_task_id(written));
    else
        put_bytes(chunks, tw__redis_task_packed(task));
}

bool tw__redis_chunks_next(struct tw__redis_chunks *chunks, struct tw__redis_bytes *bytes)
{
    uint64_t before = 0, first = chunks->at;
    uint32_t routes = 0;
    if (chunks->at == chunks->count)
        return false;
    chunks->queues->chunks++;
    chunks->buffer.size = 0;
    put_number(chunks, TW__REDIS_FORMAT_NUMBER);
    while (chunks->at < chunks->count && chunks->at - first < TW__REDIS_CHUNK_TASKS &&
           chunks->buffer.size < TW__REDIS_CHUNK_BYTES) {
        const struct tw__redis_task *task = chunks->task[chunks->at++];
        put_task(chunks, task, before, &routes);
        before = tw__redis_place_due(chunks->queues, task);
    }
    *bytes = (struct tw__redis_bytes){chunks->buffer.at, chunks->buffer.size};
    return true;
}

bool tw__redis_chunk_put(struct tw__redis_buffer *buffer, const struct tw__redis_task *task,
                         struct tw__redis_route *route)
{
    struct tw__redis_chunks chunks = {.queues = route->queue->queues, .buffer = *buffer};
    uint32_t routes = 0;
    chunks.buffer.size = 0;
    struct tw__redis_bytes payload = tw__redis_task_packed(task);
    bool beside = payload.size > TW__REDIS_CHUNK_PAYLOAD;
    chunks.queues->chunks++;
    put_number(&chunks, TW__REDIS_FORMAT_NUMBER);
    put_route(&chunks, route, &routes);
    put_head(&chunks, task, 0, beside ? BESIDE : 0);
    if (!beside)
        put_bytes(&chunks, payload);
    *buffer = chunks.buffer;
    return beside;
}

bool tw__redis_chunk_is(struct tw__redis_bytes bytes)
{
    struct tw__redis_reader reader = {.at = bytes.at, .end = bytes.at + bytes.size};
    tw__redis_reader_number(&reader, UINT64_MAX); /* the format */
    return tw__redis_reader_number(&reader, UINT64_MAX) == 0 && reader.at != NULL;
}

/* ---- reading --------------------------------------------------------------------------------------------- */

struct reader {
    struct tw__redis_reader bytes;
    struct tw__redis_queue *queue;
    struct tw__redis_route **route; /* room for TW__REDIS_CHUNK_TASKS */
    uint32_t routes;
    const struct tw__redis_logged *logged; /* NULL: the chunk is part of a queue */
    uint64_t due, now_ms, monotonic_ms;
};

static uint64_t take_number(struct reader *reader, uint64_t most)
{
    return tw__redis_reader_number(&reader->bytes, most);
}

/* Reads a number of the contract, or 0 if the task has none. */
static uint64_t take_own(struct reader *reader, const char *name, enum tw__task_number number)
{
    return tw__redis_reader_named(&reader->bytes, name, tw__task_range(number).most);
}

static struct tw__redis_retry take_retry(struct reader *reader)
{
    struct tw__redis_retry retry;
    retry.tries = (uint32_t)take_own(reader, "tries", TW__TASK_IN_TRIES);
    retry.first_ms = take_own(reader, "backoff", TW__TASK_IN_BACKOFF);
    retry.factor_percent = (uint32_t)take_own(reader, "factor", TW__TASK_IN_FACTOR);
    retry.max_ms = take_own(reader, "backoff-max", TW__TASK_IN_BACKOFF_MAX);
    retry.jitter = (uint32_t)take_number(reader, TW__REDIS_JITTER_OPEN);
    return retry;
}

/* Reads the wait for a target, and notes it for the tasks to come. */
static void take_wait(struct reader *reader, struct tw__redis_route *route)
{
    uint64_t wait_ms = take_own(reader, "the wait", TW__TASK_IN_BACKOFF_MAX);
    if (wait_ms > 0) {
        uint64_t next_ms = tw__redis_reader_named(&reader->bytes, "next", TW__TASK_TIME_MAX);
        tw__redis_place_set_wait(route, wait_ms, next_ms);
    }
}

static struct tw__redis_route *take_route(struct reader *reader)
{
    uint64_t number = take_number(reader, TW__REDIS_CHUNK_TASKS - 1);
    if (reader->bytes.at == NULL || number < reader->routes)
        return reader->bytes.at == NULL ? NULL : reader->route[number];
    struct tw__redis_plan plan = {.kind = (uint8_t)take_number(reader, TW__REDIS_WORKERS)};
    plan.missed = (uint8_t)take_number(reader, TW_MISSED_BURST);
    plan.maxlen = take_number(reader, INT64_MAX);
    uint64_t late_ms =
        tw__redis_reader_named(&reader->bytes, "max-late", tw__task_range(TW__TASK_IN_MAX_LATE).most + 1);
    plan.max_late_ms = late_ms == 0 ? TW_FOREVER : late_ms - 1;
    if (plan.kind != TW__REDIS_WORKERS)
        plan.target = tw__redis_reader_bytes(&reader->bytes);
    plan.retry = take_retry(reader);
    if (number != reader->routes)
        reader->bytes.at = NULL;
    if (reader->bytes.at == NULL)
        return NULL;
    struct tw__redis_route *route = tw__redis_route_for(reader->queue, &plan);
    if (reader->logged == NULL)
        take_wait(reader, route);
    tw__redis_route_keep(route); /* until the chunk is read */
    return reader->route[reader->routes++] = route;
}

/* Whether a payload fits its target: one value for a List, pairs for a Stream, anything for workers. A payload
 * that is shared was valid as it was read, and may be long. */
static bool payload_fits(const struct tw__redis_route *route, const struct tw__redis_task_plan *plan)
{
    uint64_t count = plan->count; /* of a payload beside the chunk */
    if (plan->packed.at != NULL) {
        if (plan->share == NULL && !tw__redis_payload_valid(plan->packed))
            return false;
        tw__redis_varint_get(plan->packed.at, &count);
    }
    switch (tw__redis_route_plan(route).kind) {
    case TW__REDIS_STREAM:
        return count % 2 == 0;
    case TW__REDIS_WORKERS:
        return true;
    default:
        return count == 1;
    }
}

/* Reads the flags of a task, and its attempt state and its repetition if they announce these. Sets *payload to
 * the flags that say where the payload is. Returns false after a fault. */
static bool take_flags(struct reader *reader, struct tw__redis_task_plan *plan,
                       struct tw__redis_attempt *attempt, unsigned *payload)
{
    uint64_t flags = take_number(reader, TRIES * (TW__REDIS_TRIES_MAX + 1) - 1);
    bool repeats = (flags & REPEATS) != 0;
    *payload = (unsigned)flags & (SHARED | BESIDE);
    if (flags & HAS_ATTEMPT) {
        *attempt = tw__redis_attempt_take(&reader->bytes);
        plan->attempt = attempt;
    }
    plan->tries = (uint32_t)flags / TRIES;
    plan->every = repeats ? take_own(reader, "every", TW__TASK_IN_EVERY) : 0;
    plan->times = repeats ? take_own(reader, "times", TW__TASK_IN_TIMES) : 1;
    return reader->bytes.at != NULL && (!repeats || plan->every > 0) &&
           (plan->attempt == NULL || tw__redis_attempt_suits(attempt, plan->every));
}

/* Whether one more task may share the payload of a task. A full payload would be copied, and no queue is
 * written in this way: so a few bytes that somebody has made up cannot take the memory of many payloads. */
static bool may_share(const struct tw__redis_task *task)
{
    return task != NULL && (!task->shares || tw__redis_task_share(task)->users < TW__REDIS_USERS_MAX);
}

/* Reads the id of another task of the queue, and sets the payload of that task as the one of this task. Returns
 * false after a fault. */
static bool take_other(struct reader *reader, struct tw__redis_task_plan *plan)
{
    struct tw__redis_queue *queue = reader->queue;
    const struct tw__redis_memory *memory = &queue->queues->memory;
    uint64_t same = take_number(reader, plan->id.size);
    struct tw__redis_bytes rest = tw__redis_reader_bytes(&reader->bytes), id = {NULL, same + rest.size};
    if (reader->bytes.at == NULL)
        return false;
    char *name = memory->alloc(id.size + 1);
    memcpy(name, plan->id.at, same);
    memcpy(name + same, rest.at, rest.size);
    id.at = name;
    struct tw__redis_task *other = tw__redis_queue_named(queue, id);
    memory->free(name);
    if (!may_share(other))
        return false;
    other = tw__redis_queue_share(queue, other);
    plan->share = tw__redis_task_share(other);
    plan->packed = tw__redis_task_packed(other);
    return true;
}

/* Reads the payload, or takes it from beside the chunk. Returns false after a fault. */
static bool take_payload(struct reader *reader, struct tw__redis_task_plan *plan, unsigned payload)
{
    uint32_t beside = reader->logged == NULL ? 0 : reader->logged->count;
    if ((payload == BESIDE) != (beside > 0))
        return false;
    if (payload == BESIDE) {
        plan->count = beside;
        plan->string = reader->logged->string;
        plan->arg = reader->logged->arg;
        return true;
    }
    if (payload == SHARED)
        return take_other(reader, plan);
    plan->packed = tw__redis_reader_bytes(&reader->bytes);
    return payload == 0;
}

/* Whether a task of the log is the only one of its chunk, and as a put leaves it: without an attempt, and at
 * most with another time than its due time. Of a task that is renewed, the attempt state does not count. */
static bool is_logged(const struct reader *reader, const struct tw__redis_task_plan *plan)
{
    const struct tw__redis_attempt *attempt = plan->attempt;
    if (reader->bytes.at != reader->bytes.end || plan->share != NULL)
        return false;
    return reader->logged->renews ||
           (plan->tries == 0 && (attempt == NULL || (attempt->stage == TW__TASK_FILED && attempt->number == 0 &&
                                                     attempt->token == 0 && !attempt->has_missed_periods)));
}

/* Why a task of the log does not fit the one with its id, which may be NULL. Returns NULL if it does. */
static const char *misfit_of(const struct reader *reader, const struct tw__redis_task_plan *plan,
                             const struct tw__redis_task *old, const struct tw__redis_route *route)
{
    if (reader->logged->renews)
        return tw__redis_keep_fits(reader->queue, old, route) ? NULL : "no task with its id can be renewed so";
    bool keeps = plan->attempt != NULL;
    return !keeps || (old != NULL && tw__redis_task_stage(old) == TW__TASK_FILED)
               ? NULL
               : "no task with its id has times to keep";
}

/* Files a task of the log as its put did, in the place of `old`, which may be NULL. */
static void file_logged(struct reader *reader, struct tw__redis_task_plan *plan, struct tw__redis_route *route,
                        uint64_t hash, struct tw__redis_task *old)
{
    const struct tw__redis_memory *memory = &reader->queue->queues->memory;
    reader->bytes.fault.misfit = misfit_of(reader, plan, old, route);
    if (reader->bytes.fault.misfit != NULL) {
        reader->bytes.at = NULL;
    } else if (reader->logged->renews) {
        plan->attempt = NULL; /* that of the task in the queue stays */
        tw__redis_keep_put(reader->queue, tw__redis_task_new(plan, memory), route, hash, old,
                           TW__TASK_KEEPDUE_IN_PLACE, reader->now_ms);
    } else {
        tw__redis_lease_put(reader->queue, tw__redis_task_new(plan, memory), route, hash, old, reader->now_ms);
    }
}

static void file_task(struct reader *reader, struct tw__redis_task_plan *plan, struct tw__redis_route *route)
{
    struct tw__redis_queue *queue = reader->queue;
    uint64_t hash = tw__redis_queue_hash(queue->queues, plan->id);
    struct tw__redis_task *old = tw__redis_queue_find(queue, hash, plan->id);
    if (reader->logged != NULL) {
        file_logged(reader, plan, route, hash, old);
        return;
    }
    struct tw__redis_task *task = tw__redis_task_new(plan, &queue->queues->memory);
    tw__redis_queue_put(queue, task, route, hash, old, reader->now_ms);
    tw__redis_place_hold_again(queue->queues, task, reader->now_ms, reader->monotonic_ms);
}

static void take_task(struct reader *reader)
{
    struct tw__redis_route *route = take_route(reader);
    struct tw__redis_task_plan plan = {
        .due = tw__redis_reader_after(&reader->bytes, "the time", reader->due, TW__TASK_TIME_MAX)};
    struct tw__redis_attempt attempt;
    unsigned payload;
    bool good = take_flags(reader, &plan, &attempt, &payload);
    plan.id = tw__redis_reader_bytes(&reader->bytes);
    if (!good || !take_payload(reader, &plan, payload) || reader->bytes.at == NULL ||
        !payload_fits(route, &plan) || !tw__redis_route_allows(route, plan.attempt) ||
        (reader->logged != NULL && !is_logged(reader, &plan))) {
        reader->bytes.at = NULL;
        return;
    }
    reader->due = plan.due;
    if (plan.times == 0)
        plan.times = TW_FOREVER;
    file_task(reader, &plan, route);
}

bool tw__redis_chunk_read(struct tw__redis_queue *queue, struct tw__redis_bytes bytes,
                          const struct tw__redis_logged *logged, uint64_t now_ms, uint64_t monotonic_ms,
                          struct tw__redis_fault *fault)
{
    struct tw__redis_route *route[TW__REDIS_CHUNK_TASKS];
    struct reader reader = {.bytes = tw__redis_format_open(bytes),
                            .queue = queue,
                            .route = route,
                            .logged = logged,
                            .now_ms = now_ms,
                            .monotonic_ms = monotonic_ms};
    if (logged != NULL && reader.bytes.at == reader.bytes.end)
        reader.bytes.at = NULL;
    while (reader.bytes.at != NULL && reader.bytes.at < reader.bytes.end)
        take_task(&reader);
    for (uint32_t i = 0; i < reader.routes; i++)
        tw__redis_route_release(reader.route[i]);
    if (fault != NULL)
        *fault = reader.bytes.fault;
    return reader.bytes.at != NULL;
}
