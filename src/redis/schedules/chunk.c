/* SPDX-License-Identifier: MIT
 *
 * Tasks as bytes. All numbers are varints (varint.h).
 *
 *     chunk:  version 1, then tasks to the end
 *
 *     task:   route, due - due of the task before (the first task: due), flags, [every, times], id size, id,
 *             payload size, payload as it is packed in memory
 *
 *     route:  its number in this chunk; a new number is one more than the last number, and the definition of
 *             the route follows it: kind, late, maxlen, late_ms, target size, target
 *
 *     flags:  1 if the task repeats; from bit 4 on the number of failed tries
 *     times:  0 means for ever
 *
 * Tasks are in the order of their due times, equal due times in the order of filing. So the differences of
 * due times are small, and tasks with equal due times keep their order. A chunk can be read without the
 * chunks before it.
 *
 * The bytes may come from a damaged file, or from RESTORE, so the reader checks every size.
 */
#include "chunk.h"

#include <string.h>

#include "look.h"
#include "place.h"
#include "route.h"
#include "schedule.h"
#include "sums.h"
#include "varint.h"

enum { CHUNK_VERSION = 1 };

/* ---- writing --------------------------------------------------------------------------------------------- */

void tw__redis_chunks_init(struct tw__redis_chunks *chunks, const struct tw__redis_schedule *schedule)
{
    memset(chunks, 0, sizeof *chunks);
    chunks->schedules = schedule->schedules;
    chunks->task = tw__redis_look_sorted(schedule);
    chunks->count = tw__redis_table_count(&schedule->tasks);
}

void tw__redis_chunks_fini(struct tw__redis_chunks *chunks)
{
    chunks->schedules->memory.free(chunks->task);
    chunks->schedules->memory.free(chunks->buffer);
}

static void reserve(struct tw__redis_chunks *chunks, size_t more)
{
    if (chunks->size + more <= chunks->capacity)
        return;
    chunks->capacity = (chunks->size + more) * 2;
    chunks->buffer = chunks->schedules->memory.realloc(chunks->buffer, chunks->capacity);
}

static void put_number(struct tw__redis_chunks *chunks, uint64_t number)
{
    reserve(chunks, TW__REDIS_VARINT_MAX);
    chunks->size = (size_t)(tw__redis_varint_put(chunks->buffer + chunks->size, number) - chunks->buffer);
}

static void put_bytes(struct tw__redis_chunks *chunks, struct tw__redis_bytes bytes)
{
    put_number(chunks, bytes.size);
    reserve(chunks, bytes.size);
    if (bytes.size > 0)
        memcpy(chunks->buffer + chunks->size, bytes.at, bytes.size);
    chunks->size += bytes.size;
}

static void put_route(struct tw__redis_chunks *chunks, struct tw__redis_route *route, uint32_t *routes)
{
    if (route->chunk == chunks->schedules->chunks) {
        put_number(chunks, route->number);
        return;
    }
    struct tw__redis_plan plan = tw__redis_route_plan(route);
    route->chunk = chunks->schedules->chunks;
    route->number = (*routes)++;
    put_number(chunks, route->number);
    put_number(chunks, plan.kind);
    put_number(chunks, plan.late);
    put_number(chunks, plan.maxlen);
    put_number(chunks, plan.late_ms);
    put_bytes(chunks, plan.target);
}

static void put_task(struct tw__redis_chunks *chunks, const struct tw__redis_task *task, uint64_t before,
                     uint32_t *routes)
{
    uint64_t times = tw__redis_task_times(task);
    bool repeats = (task->flags & TW__REDIS_TASK_REPEATS) != 0;
    put_route(chunks, tw__redis_route_of(chunks->schedules, task), routes);
    put_number(chunks, tw__redis_task_due(task) - before);
    put_number(chunks, (repeats ? TW__REDIS_TASK_REPEATS : 0) +
                           tw__redis_place_tries(chunks->schedules, task) * TW__REDIS_TASK_TRIES);
    if (repeats) {
        put_number(chunks, tw__redis_task_every(task));
        put_number(chunks, times == TW__REDIS_FOR_EVER ? 0 : times);
    }
    put_bytes(chunks, tw__redis_task_id(task));
    put_bytes(chunks, tw__redis_task_packed(task));
}

bool tw__redis_chunks_next(struct tw__redis_chunks *chunks, struct tw__redis_bytes *bytes)
{
    uint64_t before = 0, first = chunks->at;
    uint32_t routes = 0;
    if (chunks->at == chunks->count)
        return false;
    chunks->schedules->chunks++;
    chunks->size = 0;
    put_number(chunks, CHUNK_VERSION);
    while (chunks->at < chunks->count && chunks->at - first < TW__REDIS_CHUNK_TASKS &&
           chunks->size < TW__REDIS_CHUNK_BYTES) {
        const struct tw__redis_task *task = chunks->task[chunks->at++];
        put_task(chunks, task, before, &routes);
        before = tw__redis_task_due(task);
    }
    *bytes = (struct tw__redis_bytes){chunks->buffer, chunks->size};
    return true;
}

/* ---- reading --------------------------------------------------------------------------------------------- */

struct reader {
    const char *at, *end; /* at NULL: the bytes are not a chunk */
    struct tw__redis_schedule *schedule;
    struct tw__redis_route *route[TW__REDIS_CHUNK_TASKS];
    uint32_t routes;
    uint64_t due, now_ms;
};

static uint64_t take_number(struct reader *reader, uint64_t most)
{
    uint64_t number = 0;
    if (reader->at != NULL)
        reader->at = tw__redis_varint_take(reader->at, reader->end, &number);
    if (reader->at != NULL && number > most)
        reader->at = NULL;
    return reader->at == NULL ? 0 : number;
}

static struct tw__redis_bytes take_bytes(struct reader *reader)
{
    struct tw__redis_bytes bytes = {NULL, take_number(reader, SIZE_MAX)};
    if (reader->at != NULL && bytes.size > (size_t)(reader->end - reader->at))
        reader->at = NULL;
    if (reader->at == NULL)
        return (struct tw__redis_bytes){"", 0};
    bytes.at = reader->at;
    reader->at += bytes.size;
    return bytes;
}

static struct tw__redis_route *take_route(struct reader *reader)
{
    uint64_t number = take_number(reader, TW__REDIS_CHUNK_TASKS - 1);
    if (reader->at == NULL || number < reader->routes)
        return reader->at == NULL ? NULL : reader->route[number];
    struct tw__redis_plan plan;
    plan.kind = (uint8_t)take_number(reader, TW__REDIS_LIST);
    plan.late = (uint8_t)take_number(reader, TW__REDIS_LATE_COALESCE);
    plan.maxlen = take_number(reader, INT64_MAX);
    plan.late_ms = take_number(reader, INT64_MAX);
    plan.target = take_bytes(reader);
    if (number != reader->routes)
        reader->at = NULL;
    if (reader->at == NULL)
        return NULL;
    struct tw__redis_route *route = tw__redis_route_for(reader->schedule, &plan);
    tw__redis_route_keep(route); /* until the chunk is read */
    return reader->route[reader->routes++] = route;
}

/* Whether a payload fits its target: one value for a List, pairs for a Stream. */
static bool payload_fits(const struct tw__redis_route *route, struct tw__redis_bytes packed)
{
    uint64_t count;
    if (!tw__redis_payload_valid(packed))
        return false;
    tw__redis_varint_get(packed.at, &count);
    return tw__redis_route_plan(route).kind == TW__REDIS_LIST ? count == 1 : count % 2 == 0;
}

static void take_task(struct reader *reader)
{
    struct tw__redis_route *route = take_route(reader);
    struct tw__redis_task_plan plan = {.due = take_number(reader, INT64_MAX)};
    uint64_t flags = take_number(reader, TW__REDIS_TASK_REPEATS + TW__REDIS_TRIES_MAX * TW__REDIS_TASK_TRIES);
    bool repeats = (flags & TW__REDIS_TASK_REPEATS) != 0;
    plan.tries = (uint32_t)flags / TW__REDIS_TASK_TRIES;
    plan.every = repeats ? take_number(reader, INT64_MAX) : 0;
    plan.times = repeats ? take_number(reader, INT64_MAX) : 1;
    plan.id = take_bytes(reader);
    plan.packed = take_bytes(reader);
    if (reader->at == NULL || plan.due > INT64_MAX - reader->due || (repeats && plan.every == 0) ||
        flags % TW__REDIS_TASK_TRIES > TW__REDIS_TASK_REPEATS || !payload_fits(route, plan.packed)) {
        reader->at = NULL;
        return;
    }
    plan.due += reader->due;
    reader->due = plan.due;
    if (plan.times == 0)
        plan.times = TW__REDIS_FOR_EVER;
    uint64_t hash = tw__redis_schedule_hash(reader->schedule->schedules, plan.id);
    struct tw__redis_task *task = tw__redis_task_new(&plan, &reader->schedule->schedules->memory);
    struct tw__redis_task *old = tw__redis_schedule_find(reader->schedule, hash, plan.id);
    tw__redis_schedule_put(reader->schedule, task, route, hash, old, reader->now_ms);
}

bool tw__redis_chunk_read(struct tw__redis_schedule *schedule, struct tw__redis_bytes bytes, uint64_t now_ms)
{
    struct reader reader = {
        .at = bytes.at, .end = bytes.at + bytes.size, .schedule = schedule, .now_ms = now_ms};
    if (take_number(&reader, UINT64_MAX) != CHUNK_VERSION)
        return false;
    while (reader.at != NULL && reader.at < reader.end)
        take_task(&reader);
    for (uint32_t i = 0; i < reader.routes; i++)
        tw__redis_route_release(reader.route[i]);
    return reader.at != NULL;
}
