/* SPDX-License-Identifier: MIT
 *
 * The bytes of a task. task.h has the picture.
 */
#include "task.h"

#include <string.h>

#include "memory.h"

enum { REPEAT_SIZE = 2 * sizeof(uint64_t) };

/* ---- varints ---------------------------------------------------------------------------------------------- */

size_t tw__varint_size(uint64_t value)
{
    size_t size = 1;
    while (value >>= 7)
        size++;
    return size;
}

char *tw__varint_put(char *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (char)(value | 0x80);
        value >>= 7;
    }
    *at++ = (char)value;
    return at;
}

const char *tw__varint_get(const char *at, uint64_t *value)
{
    uint64_t sum = (uint8_t)*at & 0x7F;
    for (uint32_t shift = 7; (uint8_t)*at++ & 0x80; shift += 7)
        sum |= (uint64_t)((uint8_t)*at & 0x7F) << shift;
    *value = sum;
    return at;
}

const char *tw__varint_take(const char *at, const char *end, uint64_t *value)
{
    uint64_t sum = 0;
    for (uint32_t shift = 0; at < end && shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)*at++;
        if (shift == 63 && byte > 1)
            return NULL;
        sum |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) {
            *value = sum;
            return at;
        }
    }
    return NULL;
}

/* ---- making ------------------------------------------------------------------------------------------------ */

static size_t packed_size(const struct tw__task_plan *plan)
{
    if (plan->packed.at != NULL)
        return plan->packed.size;
    size_t size = tw__varint_size(plan->count);
    for (uint32_t i = 0; i < plan->count; i++) {
        struct tw__bytes string = plan->string(plan->arg, i);
        size += tw__varint_size(string.size) + string.size;
    }
    return size;
}

static char *put_bytes(char *at, struct tw__bytes bytes)
{
    at = tw__varint_put(at, bytes.size);
    if (bytes.size > 0)
        memcpy(at, bytes.at, bytes.size);
    return at + bytes.size;
}

static void put_payload(char *at, const struct tw__task_plan *plan)
{
    if (plan->packed.at != NULL) {
        memcpy(at, plan->packed.at, plan->packed.size);
        return;
    }
    at = tw__varint_put(at, plan->count);
    for (uint32_t i = 0; i < plan->count; i++)
        at = put_bytes(at, plan->string(plan->arg, i));
}

struct tw__task *tw__task_new(const struct tw__task_plan *plan)
{
    bool repeats = plan->every != 0;
    size_t size = offsetof(struct tw__task, rest) + (repeats ? REPEAT_SIZE : 0) +
                  tw__varint_size(plan->id.size) + plan->id.size + packed_size(plan);
    struct tw__task *task = tw__memory.alloc(size > sizeof *task ? size : sizeof *task);
    if (task == NULL)
        return NULL;
    tw_timer_init_at(&task->timer, plan->due);
    task->route = 0;
    task->order = 0;
    task->flags = (uint8_t)((repeats ? TW__TASK_REPEATS : 0) | plan->tries * TW__TASK_TRIES);
    if (repeats) {
        memcpy(task->rest, &plan->every, sizeof plan->every);
        memcpy(task->rest + sizeof plan->every, &plan->times, sizeof plan->times);
    }
    put_payload(put_bytes(task->rest + (repeats ? REPEAT_SIZE : 0), plan->id), plan);
    return task;
}

void tw__task_free(struct tw__task *task)
{
    tw__memory.free(task);
}

/* ---- reading ----------------------------------------------------------------------------------------------- */

static const char *id_at(const struct tw__task *task)
{
    return task->rest + (task->flags & TW__TASK_REPEATS ? REPEAT_SIZE : 0);
}

static struct tw__bytes take_bytes(const char *at)
{
    uint64_t size;
    struct tw__bytes bytes;
    bytes.at = tw__varint_get(at, &size);
    bytes.size = size;
    return bytes;
}

struct tw__bytes tw__task_id(const struct tw__task *task)
{
    return take_bytes(id_at(task));
}

uint64_t tw__task_every(const struct tw__task *task)
{
    uint64_t every = 0;
    if (task->flags & TW__TASK_REPEATS)
        memcpy(&every, task->rest, sizeof every);
    return every;
}

uint64_t tw__task_times(const struct tw__task *task)
{
    uint64_t times = 1;
    if (task->flags & TW__TASK_REPEATS)
        memcpy(&times, task->rest + sizeof times, sizeof times);
    return times;
}

void tw__task_set_times(struct tw__task *task, uint64_t times)
{
    memcpy(task->rest + sizeof times, &times, sizeof times);
}

uint32_t tw__task_tries(const struct tw__task *task)
{
    return task->flags / TW__TASK_TRIES;
}

void tw__task_set_tries(struct tw__task *task, uint32_t tries)
{
    task->flags = (uint8_t)(task->flags % TW__TASK_TRIES + (tries & TW__TRIES_MAX) * TW__TASK_TRIES);
}

struct tw__payload tw__task_payload(const struct tw__task *task)
{
    struct tw__bytes id = tw__task_id(task);
    uint64_t count;
    const char *at = tw__varint_get(id.at + id.size, &count);
    return (struct tw__payload){at, (uint32_t)count};
}

struct tw__bytes tw__payload_next(struct tw__payload *payload)
{
    struct tw__bytes string = take_bytes(payload->at);
    payload->at = string.at + string.size;
    payload->count--;
    return string;
}

uint64_t tw__payload_bytes(struct tw__payload payload)
{
    uint64_t bytes = 0;
    while (payload.count > 0)
        bytes += tw__payload_next(&payload).size;
    return bytes;
}

uint64_t tw__payload_field_bytes(struct tw__payload payload)
{
    uint64_t bytes = 0;
    while (payload.count > 0) {
        bytes += tw__payload_next(&payload).size;
        if (payload.count > 0)
            tw__payload_next(&payload);
    }
    return bytes;
}

struct tw__bytes tw__task_packed(const struct tw__task *task)
{
    struct tw__bytes id = tw__task_id(task);
    struct tw__payload payload = tw__task_payload(task);
    while (payload.count > 0)
        tw__payload_next(&payload);
    return (struct tw__bytes){id.at + id.size, (size_t)(payload.at - (id.at + id.size))};
}

bool tw__packed_valid(struct tw__bytes packed)
{
    const char *end = packed.at + packed.size;
    uint64_t count, size;
    const char *at = tw__varint_take(packed.at, end, &count);
    if (at == NULL || count == 0 || count > UINT32_MAX)
        return false;
    for (; count > 0; count--) {
        at = tw__varint_take(at, end, &size);
        if (at == NULL || size > (size_t)(end - at))
            return false;
        at += size;
    }
    return at == end;
}
