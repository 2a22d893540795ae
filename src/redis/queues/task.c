/* SPDX-License-Identifier: MIT
 *
 * The bytes of a task: how they are written and read. task.h has the picture.
 */
#include "task.h"

#include <base/assert.h>
#include <string.h>
#include <task/periods.h>

#include "bytes.h"

/* ---- payloads -------------------------------------------------------------------------------------------- */

struct tw__redis_bytes tw__redis_payload_next(struct tw__redis_payload *payload)
{
    TW_ASSERT(payload->count > 0);
    struct tw__redis_bytes string = tw__redis_varint_get_bytes(payload->at);
    payload->at = string.at + string.size;
    payload->count--;
    return string;
}

uint64_t tw__redis_payload_bytes(struct tw__redis_payload payload)
{
    uint64_t bytes = 0;
    while (payload.count > 0)
        bytes += tw__redis_payload_next(&payload).size;
    return bytes;
}

uint64_t tw__redis_payload_field_bytes(struct tw__redis_payload payload)
{
    uint64_t bytes = 0;
    while (payload.count > 0) {
        bytes += tw__redis_payload_next(&payload).size;
        if (payload.count > 0)
            tw__redis_payload_next(&payload);
    }
    return bytes;
}

bool tw__redis_payload_valid(struct tw__redis_bytes packed)
{
    const char *end = packed.at + packed.size;
    uint64_t count, size;
    const char *at = tw__redis_varint_take(packed.at, end, &count);
    if (at == NULL || count == 0 || count > UINT32_MAX)
        return false;
    for (; count > 0; count--) {
        at = tw__redis_varint_take(at, end, &size);
        if (at == NULL || size > (size_t)(end - at))
            return false;
        at += size;
    }
    return at == end;
}

/* ---- parts ----------------------------------------------------------------------------------------------- */

enum { REPEAT_SIZE = 2 * sizeof(uint64_t), ADDRESS_SIZE = sizeof(struct tw__redis_share *) };

/* Where the address of a share lies behind an id that ends at `at`: aligned, because LeakSanitizer looks for
 * addresses there alone. */
static const char *address_at(const char *at)
{
    return at + (-(uintptr_t)at & (ADDRESS_SIZE - 1));
}

/* ---- making ---------------------------------------------------------------------------------------------- */

static size_t packed_size(const struct tw__redis_task_plan *plan)
{
    if (plan->share != NULL)
        return 2 * ADDRESS_SIZE - 1;
    if (plan->packed.at != NULL)
        return plan->packed.size;
    size_t size = tw__redis_varint_size(plan->count);
    for (uint32_t i = 0; i < plan->count; i++) {
        struct tw__redis_bytes string = plan->string(plan->arg, i);
        size += tw__redis_varint_size(string.size) + string.size;
    }
    return size;
}

/* Writes the parts of an attempt state that lie behind the payload. */
static void put_rest_of_attempt(char *at, const struct tw__redis_attempt *attempt)
{
    at = tw__redis_varint_put_bytes(tw__redis_varint_put_bytes(at, attempt->worker), attempt->error);
    if (attempt->has_next)
        at = tw__redis_varint_put(at, tw__redis_attempt_away(attempt));
    if (attempt->has_missed_periods)
        tw__redis_varint_put(at, attempt->missed_periods);
}

/* Writes the payload. Returns its end. */
static char *put_payload(char *at, const struct tw__redis_task_plan *plan)
{
    if (plan->share != NULL) {
        at += address_at(at) - at;
        memcpy(at, &plan->share, ADDRESS_SIZE);
        return at + ADDRESS_SIZE;
    }
    if (plan->packed.at != NULL) {
        memcpy(at, plan->packed.at, plan->packed.size);
        return at + plan->packed.size;
    }
    at = tw__redis_varint_put(at, plan->count);
    for (uint32_t i = 0; i < plan->count; i++)
        at = tw__redis_varint_put_bytes(at, plan->string(plan->arg, i));
    return at;
}

static size_t string_size(struct tw__redis_bytes string)
{
    return tw__redis_varint_size(string.size) + string.size;
}

static size_t attempt_size(const struct tw__redis_attempt *attempt)
{
    return TW__REDIS_ATTEMPT_SIZE + string_size(attempt->worker) + string_size(attempt->error) +
           (attempt->has_next ? tw__redis_varint_size(tw__redis_attempt_away(attempt)) : 0) +
           (attempt->has_missed_periods ? tw__redis_varint_size(attempt->missed_periods) : 0);
}

struct tw__redis_task *tw__redis_task_new(const struct tw__redis_task_plan *plan,
                                          const struct tw__redis_memory *memory)
{
    bool repeats = plan->every != 0, has_attempt = plan->attempt != NULL;
    size_t size = offsetof(struct tw__redis_task, rest) + (repeats ? REPEAT_SIZE : 0) +
                  tw__redis_varint_size(plan->id.size) + plan->id.size + packed_size(plan) +
                  (has_attempt ? attempt_size(plan->attempt) : 0);
    struct tw__redis_task *task = memory->alloc(size > sizeof *task ? size : sizeof *task);
    tw_timer_init_at(&task->timer, plan->due);
    task->route = 0;
    task->shares = plan->share != NULL;
    task->has_attempt = has_attempt;
    task->repeats = repeats;
    task->order = 0;
    task->place = TW__REDIS_NOWHERE;
    task->tries = plan->tries & TW__REDIS_TRIES_MAX;
    char *at = task->rest;
    if (has_attempt) {
        tw__redis_attempt_pack(at, plan->attempt);
        at += TW__REDIS_ATTEMPT_SIZE;
    }
    if (repeats) {
        memcpy(at, &plan->every, sizeof plan->every);
        memcpy(at + sizeof plan->every, &plan->times, sizeof plan->times);
        at += REPEAT_SIZE;
    }
    at = put_payload(tw__redis_varint_put_bytes(at, plan->id), plan);
    if (has_attempt)
        put_rest_of_attempt(at, plan->attempt);
    return task;
}

/* ---- reading --------------------------------------------------------------------------------------------- */

static const char *repeat_at(const struct tw__redis_task *task)
{
    return task->rest + (task->has_attempt ? TW__REDIS_ATTEMPT_SIZE : 0);
}

static const char *id_at(const struct tw__redis_task *task)
{
    return repeat_at(task) + (task->repeats ? REPEAT_SIZE : 0);
}

struct tw__redis_bytes tw__redis_task_id(const struct tw__redis_task *task)
{
    return tw__redis_varint_get_bytes(id_at(task));
}

uint64_t tw__redis_task_every(const struct tw__redis_task *task)
{
    uint64_t every = 0;
    if (task->repeats)
        memcpy(&every, repeat_at(task), sizeof every);
    return every;
}

uint64_t tw__redis_task_times(const struct tw__redis_task *task)
{
    uint64_t times = 1;
    if (task->repeats)
        memcpy(&times, repeat_at(task) + sizeof times, sizeof times);
    return times;
}

void tw__redis_task_set_times(struct tw__redis_task *task, uint64_t times)
{
    TW_ASSERT(task->repeats);
    memcpy((char *)(uintptr_t)repeat_at(task) + sizeof times, &times, sizeof times);
}

/* Where the payload lies in the task, or the address of the one that it shares. */
static const char *payload_at(const struct tw__redis_task *task)
{
    struct tw__redis_bytes id = tw__redis_task_id(task);
    return task->shares ? address_at(id.at + id.size) : id.at + id.size;
}

struct tw__redis_share *tw__redis_task_share(const struct tw__redis_task *task)
{
    struct tw__redis_share *share = NULL;
    if (task->shares)
        memcpy(&share, payload_at(task), ADDRESS_SIZE);
    return share;
}

void tw__redis_task_set_share(struct tw__redis_task *task, struct tw__redis_share *share)
{
    TW_ASSERT(task->shares);
    memcpy((char *)(uintptr_t)payload_at(task), &share, ADDRESS_SIZE);
}

size_t tw__redis_task_bytes(const struct tw__redis_task *task, const struct tw__redis_memory *memory)
{
    return memory->usable((void *)(uintptr_t)task) + (task->shares ? tw__redis_task_share(task)->size : 0);
}

struct tw__redis_payload tw__redis_task_payload(const struct tw__redis_task *task)
{
    uint64_t count;
    const char *packed = task->shares ? tw__redis_task_share(task)->packed : payload_at(task);
    const char *at = tw__redis_varint_get(packed, &count);
    return (struct tw__redis_payload){at, (uint32_t)count};
}

struct tw__redis_bytes tw__redis_task_packed(const struct tw__redis_task *task)
{
    if (task->shares) {
        const struct tw__redis_share *share = tw__redis_task_share(task);
        return (struct tw__redis_bytes){share->packed, share->size};
    }
    const char *at = payload_at(task);
    struct tw__redis_payload payload = tw__redis_task_payload(task);
    while (payload.count > 0)
        tw__redis_payload_next(&payload);
    return (struct tw__redis_bytes){at, (size_t)(payload.at - at)};
}

/* ---- attempts -------------------------------------------------------------------------------------------- */

struct tw__redis_attempt tw__redis_task_attempt(const struct tw__redis_task *task)
{
    TW_ASSERT(task->has_attempt);
    return tw__redis_attempt_unpack(task->rest);
}

struct tw__redis_attempt tw__redis_task_whole_attempt(const struct tw__redis_task *task)
{
    struct tw__redis_attempt attempt = tw__redis_task_attempt(task);
    const char *at = payload_at(task) + ADDRESS_SIZE;
    if (!task->shares) {
        struct tw__redis_bytes packed = tw__redis_task_packed(task);
        at = packed.at + packed.size;
    }
    attempt.worker = tw__redis_varint_get_bytes(at);
    attempt.error = tw__redis_varint_get_bytes(attempt.worker.at + attempt.worker.size);
    at = attempt.error.at + attempt.error.size;
    uint64_t away;
    if (attempt.has_next) {
        at = tw__redis_varint_get(at, &away);
        attempt.next = tw__redis_attempt_at(&attempt, away);
    }
    if (attempt.has_missed_periods)
        tw__redis_varint_get(at, &attempt.missed_periods);
    return attempt;
}

struct tw__redis_attempt tw__redis_task_any_attempt(const struct tw__redis_task *task)
{
    if (task->has_attempt)
        return tw__redis_task_whole_attempt(task);
    return (struct tw__redis_attempt){
        .stage = TW__TASK_FILED, .due = tw__redis_task_due(task), .worker = {"", 0}, .error = {"", 0}};
}

uint64_t tw__redis_task_missed_periods(const struct tw__redis_task *task)
{
    return task->has_attempt && tw__redis_task_attempt(task).has_missed_periods
               ? tw__redis_task_whole_attempt(task).missed_periods
               : 0;
}

void tw__redis_task_set_attempt(struct tw__redis_task *task, const struct tw__redis_attempt *attempt)
{
    TW_ASSERT(task->has_attempt);
    tw__redis_attempt_pack(task->rest, attempt);
}

/* Makes a copy of a task, with another attempt state and perhaps another payload. `of` has the payload, if it
 * is not shared, and `every` and `times`. */
static struct tw__redis_task *copy_with(const struct tw__redis_task *task, const struct tw__redis_task *of,
                                        const struct tw__redis_attempt *attempt, struct tw__redis_share *share,
                                        const struct tw__redis_memory *memory)
{
    struct tw__redis_task_plan plan = {.id = tw__redis_task_id(task),
                                       .every = tw__redis_task_every(of),
                                       .times = tw__redis_task_times(of),
                                       .share = share,
                                       .packed = tw__redis_task_packed(of),
                                       .attempt = attempt};
    struct tw__redis_task *copy = tw__redis_task_new(&plan, memory);
    memcpy(copy, task, offsetof(struct tw__redis_task, rest));
    copy->repeats = of->repeats;
    copy->has_attempt = attempt != NULL;
    copy->shares = share != NULL;
    return copy;
}

struct tw__redis_task *tw__redis_task_with_attempt(const struct tw__redis_task *task,
                                                   const struct tw__redis_attempt *attempt,
                                                   const struct tw__redis_memory *memory)
{
    return copy_with(task, task, attempt, tw__redis_task_share(task), memory);
}

/* Makes a copy of a task with its own attempt state. */
static struct tw__redis_task *copy_alive(const struct tw__redis_task *task, const struct tw__redis_task *of,
                                         struct tw__redis_share *share, const struct tw__redis_memory *memory)
{
    struct tw__redis_attempt attempt;
    if (task->has_attempt)
        attempt = tw__redis_task_whole_attempt(task);
    if (task->has_attempt && of != task && attempt.has_missed_periods) {
        uint64_t every = tw__redis_task_every(of);
        attempt.missed_periods =
            tw__task_missed_periods_renewed(attempt.missed_periods, tw__redis_task_every(task), every);
    }
    return copy_with(task, of, task->has_attempt ? &attempt : NULL, share, memory);
}

struct tw__redis_task *tw__redis_task_sharing(const struct tw__redis_task *task, struct tw__redis_share *share,
                                              const struct tw__redis_memory *memory)
{
    return copy_alive(task, task, share, memory);
}

struct tw__redis_task *tw__redis_task_renewed(const struct tw__redis_task *task,
                                              const struct tw__redis_task *other,
                                              const struct tw__redis_memory *memory)
{
    TW_ASSERT(!other->shares);
    return copy_alive(task, other, NULL, memory);
}
