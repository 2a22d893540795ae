/* SPDX-License-Identifier: MIT
 *
 * Changes of the attempt states of tasks, as bytes: the number of the format (format.h), and then changes to
 * the end. All numbers are varints (bytes.h).
 *
 *     attempt: 1, id size, id, time, attempt state
 *     copy:    2, id size, id of the task that goes on, new id size, new id, time of death, attempt state
 *     gone:    3, id size, id
 *     next:    4, id size, id, due, times (0 means for ever)
 *     anew:    5, id size, id, due
 *     back:    6, id size, id, time
 *
 * No change is 0, because a chunk has 0 behind the format (chunk.c). So the log needs no word to tell both
 * apart.
 *
 * The time is the one for which the task is filed: the end of its lease, its next attempt, its death. attempt.c
 * has the bytes of an attempt state. A copy is the dead copy of a period: its series goes on.
 */
#include "change.h"

#include "format.h"
#include "place.h"
#include "queue.h"
#include "route.h"

enum { OF_ATTEMPT = 1, OF_DEAD_COPY, OF_GONE, OF_NEXT, OF_ANEW, OF_BACK };

/* ---- writing --------------------------------------------------------------------------------------------- */

/* Begins a change of the task with an id. The first one has the number of the format before it. Returns false
 * if nobody reads changes. */
static bool put_kind(struct tw__redis_buffer *buffer, const struct tw__redis_memory *memory, uint64_t kind,
                     struct tw__redis_bytes id)
{
    if (buffer == NULL)
        return false;
    if (buffer->size == 0)
        tw__redis_buffer_put_number(buffer, TW__REDIS_FORMAT_NUMBER, memory);
    tw__redis_buffer_put_number(buffer, kind, memory);
    tw__redis_buffer_put_bytes(buffer, id, memory);
    return true;
}

static void put_attempt(struct tw__redis_buffer *buffer, const struct tw__redis_queues *queues,
                        const struct tw__redis_task *task)
{
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    tw__redis_buffer_put_number(buffer, tw__redis_place_due(queues, task), &queues->memory);
    tw__redis_attempt_put(buffer, &attempt, &queues->memory);
}

void tw__redis_change_put(struct tw__redis_buffer *buffer, const struct tw__redis_queues *queues,
                          const struct tw__redis_task *task)
{
    if (!put_kind(buffer, &queues->memory, OF_ATTEMPT, tw__redis_task_id(task)))
        return;
    put_attempt(buffer, queues, task);
}

void tw__redis_change_put_dead_copy(struct tw__redis_buffer *buffer, const struct tw__redis_queues *queues,
                                    struct tw__redis_bytes from, const struct tw__redis_task *dead)
{
    if (!put_kind(buffer, &queues->memory, OF_DEAD_COPY, from))
        return;
    tw__redis_buffer_put_bytes(buffer, tw__redis_task_id(dead), &queues->memory);
    put_attempt(buffer, queues, dead);
}

void tw__redis_change_put_gone(struct tw__redis_buffer *buffer, const struct tw__redis_queues *queues,
                               const struct tw__redis_task *task)
{
    (void)put_kind(buffer, &queues->memory, OF_GONE, tw__redis_task_id(task));
}

void tw__redis_change_put_next(struct tw__redis_buffer *buffer, const struct tw__redis_queues *queues,
                               const struct tw__redis_task *task, uint64_t due_ms)
{
    uint64_t times = tw__redis_task_times(task);
    if (!put_kind(buffer, &queues->memory, OF_NEXT, tw__redis_task_id(task)))
        return;
    tw__redis_buffer_put_number(buffer, due_ms, &queues->memory);
    tw__redis_buffer_put_number(buffer, times == TW_FOREVER ? 0 : times, &queues->memory);
}

void tw__redis_change_put_anew(struct tw__redis_buffer *buffer, const struct tw__redis_queues *queues,
                               const struct tw__redis_task *task, uint64_t due_ms)
{
    if (!put_kind(buffer, &queues->memory, OF_ANEW, tw__redis_task_id(task)))
        return;
    tw__redis_buffer_put_number(buffer, due_ms, &queues->memory);
}

void tw__redis_change_put_back(struct tw__redis_buffer *buffer, const struct tw__redis_queues *queues,
                               const struct tw__redis_task *task)
{
    if (!put_kind(buffer, &queues->memory, OF_BACK, tw__redis_task_id(task)))
        return;
    tw__redis_buffer_put_number(buffer, tw__redis_task_due(task), &queues->memory);
}

/* ---- reading --------------------------------------------------------------------------------------------- */

struct tw__redis_task *tw__redis_change_dead_copy(struct tw__redis_queue *queue,
                                                  const struct tw__redis_task *from, struct tw__redis_bytes id,
                                                  const struct tw__redis_attempt *attempt, uint64_t died_ms)
{
    struct tw__redis_queues *queues = queue->queues;
    struct tw__redis_task_plan plan = {
        .id = id, .due = died_ms, .share = tw__redis_task_share(from), .attempt = attempt};
    TW_ASSERT(from->shares);
    struct tw__redis_task *task = tw__redis_task_new(&plan, &queues->memory);
    uint64_t hash = tw__redis_queue_hash(queues, id);
    tw__redis_queue_put(queue, task, tw__redis_route_of(queues, from), hash,
                        tw__redis_queue_find(queue, hash, id), died_ms);
    return task;
}

/* A change does not fit the task that it names. The changes after it are made all the same. */
static void misfit(struct tw__redis_reader *reader, const struct tw__redis_task *task)
{
    reader->fault.misfit = task == NULL ? "no task has the id of a change" : "a change does not fit its task";
}

static uint64_t take_time(struct tw__redis_reader *reader)
{
    return tw__redis_reader_named(reader, "the time", TW__TASK_TIME_MAX);
}

/* Whether a task goes on waiting for the same time. Then it keeps its place in the order. */
static bool waits_on(const struct tw__redis_task *task, const struct tw__redis_attempt *attempt, uint64_t time)
{
    return attempt->stage == TW__TASK_FILED && tw__redis_task_stage(task) == TW__TASK_FILED &&
           tw__redis_task_due(task) == time;
}

/* Gives a task its new attempt state and time. */
static void take_attempt(struct tw__redis_queue *queue, struct tw__redis_reader *reader, uint64_t now_ms)
{
    struct tw__redis_task *task = tw__redis_queue_named(queue, tw__redis_reader_bytes(reader));
    uint64_t time = take_time(reader);
    struct tw__redis_attempt attempt = tw__redis_attempt_take(reader);
    if (reader->at == NULL)
        return;
    if (task == NULL || !tw__redis_attempt_suits(&attempt, tw__redis_task_every(task)) ||
        !tw__redis_route_allows(tw__redis_route_of(queue->queues, task), &attempt)) {
        misfit(reader, task);
        return;
    }
    if (waits_on(task, &attempt, time)) {
        tw__redis_queue_set_attempt(queue, task, &attempt);
        return;
    }
    tw__redis_place_unfile(queue->queues, task);
    task = tw__redis_queue_set_attempt(queue, task, &attempt);
    tw__redis_place_file(queue->queues, task, time, now_ms);
}

static void take_dead_copy(struct tw__redis_queue *queue, struct tw__redis_reader *reader)
{
    struct tw__redis_task *from = tw__redis_queue_named(queue, tw__redis_reader_bytes(reader));
    struct tw__redis_bytes id = tw__redis_reader_bytes(reader);
    uint64_t died_ms = take_time(reader);
    struct tw__redis_attempt attempt = tw__redis_attempt_take(reader);
    if (attempt.stage != TW__TASK_BURIED)
        reader->at = NULL;
    if (reader->at == NULL)
        return;
    if (from == NULL)
        misfit(reader, from);
    else
        tw__redis_change_dead_copy(queue, tw__redis_queue_share(queue, from), id, &attempt, died_ms);
}

static void take_gone(struct tw__redis_queue *queue, struct tw__redis_reader *reader)
{
    struct tw__redis_bytes id = tw__redis_reader_bytes(reader);
    struct tw__redis_task *task = tw__redis_queue_named(queue, id);
    if (reader->at == NULL)
        return;
    if (task == NULL)
        misfit(reader, task);
    else
        tw__redis_queue_remove(queue, task, tw__redis_queue_hash(queue->queues, id));
}

static void take_period(struct tw__redis_queue *queue, struct tw__redis_reader *reader, uint64_t now_ms)
{
    struct tw__redis_task *task = tw__redis_queue_named(queue, tw__redis_reader_bytes(reader));
    uint64_t due = take_time(reader), times = tw__redis_reader_named(reader, "times", INT64_MAX);
    if (reader->at == NULL)
        return;
    if (task == NULL || tw__redis_task_every(task) == 0) {
        misfit(reader, task);
        return;
    }
    tw__redis_task_set_times(task, times == 0 ? TW_FOREVER : times);
    tw__redis_queue_begin_anew(queue, task, due, now_ms);
}

static void take_anew(struct tw__redis_queue *queue, struct tw__redis_reader *reader, uint64_t now_ms)
{
    struct tw__redis_task *task = tw__redis_queue_named(queue, tw__redis_reader_bytes(reader));
    uint64_t due = take_time(reader);
    if (reader->at == NULL)
        return;
    if (task == NULL)
        misfit(reader, task);
    else
        tw__redis_queue_begin_anew(queue, task, due, now_ms);
}

/* The task keeps its order among those of the same time. */
static void take_unbegun(struct tw__redis_queue *queue, struct tw__redis_reader *reader, uint64_t now_ms)
{
    struct tw__redis_task *task = tw__redis_queue_named(queue, tw__redis_reader_bytes(reader));
    uint64_t time = take_time(reader);
    if (reader->at == NULL)
        return;
    if (task == NULL || tw__redis_task_stage(task) != TW__TASK_TAKEN) {
        misfit(reader, task);
        return;
    }
    uint32_t order = task->order;
    task = tw__redis_queue_unbegin(queue, task, time);
    tw__redis_place_file(queue->queues, task, time, now_ms);
    task->order = order;
}

bool tw__redis_change_read(struct tw__redis_queue *queue, struct tw__redis_bytes bytes, uint64_t now_ms,
                           struct tw__redis_fault *fault)
{
    struct tw__redis_reader reader = tw__redis_format_open(bytes);
    if (reader.at == reader.end)
        reader.at = NULL; /* nothing is logged without a change, so this was cut */
    while (reader.at != NULL && reader.at < reader.end)
        switch (tw__redis_reader_number(&reader, OF_BACK)) {
        case OF_ATTEMPT:
            take_attempt(queue, &reader, now_ms);
            break;
        case OF_DEAD_COPY:
            take_dead_copy(queue, &reader);
            break;
        case OF_GONE:
            take_gone(queue, &reader);
            break;
        case OF_NEXT:
            take_period(queue, &reader, now_ms);
            break;
        case OF_ANEW:
            take_anew(queue, &reader, now_ms);
            break;
        case OF_BACK:
            take_unbegun(queue, &reader, now_ms);
            break;
        default: /* 0, also after a fault */
            reader.at = NULL;
        }
    if (reader.at == NULL)
        reader.fault.misfit = NULL; /* the damage is what counts */
    if (fault != NULL)
        *fault = reader.fault;
    return reader.at != NULL && reader.fault.misfit == NULL;
}
