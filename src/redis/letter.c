/* SPDX-License-Identifier: MIT
 *
 * A Stream takes at most 2^30 bytes in one entry, fields and values together. The limit of TW.ADD is lower
 * (TW__REDIS_TASK_BYTES_MAX). But a task may come from a file, from RESTORE, or from a version that refused
 * no size. To try such an entry would cost the server seconds, so the sizes are summed instead.
 */
#include "letter.h"

#include <base/assert.h>
#include <stdio.h>
#include <string.h>

#include "schedules/place.h"
#include "strings.h"

#define ENTRY_MAX (UINT64_C(1) << 30)
_Static_assert(TW__REDIS_TASK_BYTES_MAX + 1024 <= ENTRY_MAX, "there is room for the fields of a dead letter");

enum { DIGITS_MAX = 20 };

/* ---- sizes ----------------------------------------------------------------------------------------------- */

static size_t digits(uint64_t number)
{
    size_t count = 1;
    for (; number >= 10; number /= 10)
        count++;
    return count;
}

static uint64_t word_bytes(enum tw__redis_word word)
{
    return strlen(tw__redis_word_text[word]);
}

/* The bytes of the fields that tw__redis_call_add_about() adds. */
static uint64_t about_bytes(const struct tw__redis_task *task)
{
    return word_bytes(TW__REDIS_WORD_ID) + tw__redis_task_id(task).size + word_bytes(TW__REDIS_WORD_DUE) +
           digits(tw__redis_task_due(task)) + word_bytes(TW__REDIS_WORD_ATTEMPT) +
           digits(tw__redis_place_tries(tw__redis_shared.schedules, task) + 1);
}

static uint64_t entry_bytes(const struct tw__redis_task *task)
{
    return about_bytes(task) + tw__redis_payload_bytes(tw__redis_task_payload(task));
}

/* The id and the payload lie in the task's block. So the size of the block alone clears every task that
 * TW.ADD accepted, and its payload is not summed at each delivery. */
bool tw__redis_letter_is_too_big(const struct tw__redis_delivery *delivery)
{
    return tw__redis_shared.schedules->memory.usable(delivery->task) > TW__REDIS_TASK_BYTES_MAX &&
           delivery->plan.kind == TW__REDIS_STREAM && entry_bytes(delivery->task) > ENTRY_MAX;
}

void tw__redis_letter_too_big_error(struct tw__redis_delivery *delivery)
{
    snprintf(delivery->error, sizeof delivery->error,
             "ERR the entry would be %llu bytes: a Stream takes at most %llu",
             (unsigned long long)entry_bytes(delivery->task), (unsigned long long)ENTRY_MAX);
}

enum tw__redis_letter tw__redis_letter_of(const struct tw__redis_delivery *delivery)
{
    struct tw__redis_payload payload = tw__redis_task_payload(delivery->task);
    bool list = delivery->plan.kind == TW__REDIS_LIST;
    uint64_t rest = word_bytes(TW__REDIS_WORD_TARGET) + delivery->plan.target.size +
                    word_bytes(TW__REDIS_WORD_ERROR) + strlen(delivery->error) +
                    (list ? word_bytes(TW__REDIS_WORD_VALUE) : 0);
    if (entry_bytes(delivery->task) + rest <= ENTRY_MAX)
        return TW__REDIS_LETTER_WHOLE;
    rest += word_bytes(TW__REDIS_WORD_BYTES) + DIGITS_MAX + (uint64_t)payload.count * DIGITS_MAX;
    rest += list ? 0 : tw__redis_payload_field_bytes(payload);
    return about_bytes(delivery->task) + rest <= ENTRY_MAX ? TW__REDIS_LETTER_OF_SIZES : TW__REDIS_LETTER_NONE;
}

/* ---- letters --------------------------------------------------------------------------------------------- */

/* Returns whether a name has a hash tag: a longer name then stays in the same slot. Example: {a}:mails and
 * {a}:mails:dead. */
static bool has_tag(const char *name, size_t size)
{
    const char *open = memchr(name, '{', size);
    const char *close = open == NULL ? NULL : memchr(open, '}', size - (size_t)(open - name));
    return close != NULL && close > open + 1;
}

static RedisModuleString *dead_letter_name(const struct tw__redis_delivery *delivery)
{
    size_t size;
    const char *name = RedisModule_StringPtrLen(delivery->schedule->name, &size);
    int flags = RedisModule_GetContextFlags(delivery->batch->ctx);
    bool tag = (flags & REDISMODULE_CTX_FLAGS_CLUSTER) && !has_tag(name, size);
    const char *end = tag ? "}:dead" : ":dead";
    RedisModuleString *dead = RedisModule_CreateString(NULL, "{", tag ? 1 : 0);
    RedisModule_StringAppendBuffer(NULL, dead, name, size);
    RedisModule_StringAppendBuffer(NULL, dead, end, strlen(end));
    return dead;
}

static void add_sizes(struct tw__redis_call *call, const struct tw__redis_task *task, bool list)
{
    struct tw__redis_payload payload = tw__redis_task_payload(task);
    while (payload.count > 0) {
        if (!list)
            tw__redis_call_add_own(call, tw__redis_string_new(tw__redis_payload_next(&payload)));
        tw__redis_call_add_own(call, tw__redis_string_of_number(tw__redis_payload_next(&payload).size));
    }
}

enum tw__redis_meanwhile tw__redis_letter_send(struct tw__redis_delivery *delivery,
                                               enum tw__redis_letter letter)
{
    const struct tw__redis_task *task = delivery->task;
    struct tw__redis_payload payload = tw__redis_task_payload(task);
    struct tw__redis_call call;
    bool list = delivery->plan.kind == TW__REDIS_LIST, sizes = letter == TW__REDIS_LETTER_OF_SIZES;
    TW_ASSERT(letter != TW__REDIS_LETTER_NONE);
    tw__redis_call_init(&call, payload.count + 16);
    tw__redis_call_add_own(&call, dead_letter_name(delivery));
    tw__redis_call_add_word(&call, TW__REDIS_WORD_NEW_ID);
    tw__redis_call_add_about(&call, task);
    tw__redis_call_add_word(&call, TW__REDIS_WORD_TARGET);
    tw__redis_call_add_kept(&call, tw__redis_string_of_target(delivery->route));
    tw__redis_call_add_word(&call, TW__REDIS_WORD_ERROR);
    tw__redis_call_add_own(&call, RedisModule_CreateString(NULL, delivery->error, strlen(delivery->error)));
    if (sizes) {
        tw__redis_call_add_word(&call, TW__REDIS_WORD_BYTES);
        tw__redis_call_add_own(&call, tw__redis_string_of_number(tw__redis_payload_bytes(payload)));
    }
    if (list)
        tw__redis_call_add_word(&call, TW__REDIS_WORD_VALUE);
    if (sizes)
        add_sizes(&call, task, list);
    else
        tw__redis_call_add_payload(&call, task);
    return tw__redis_call_send(&call, "XADD", delivery);
}

void tw__redis_letter_log_none(const struct tw__redis_delivery *delivery)
{
    char name[TW__REDIS_SHOWN_MAX];
    RedisModule_Log(delivery->batch->ctx, "warning",
                    "tickwheel: a task of the schedule '%s' is dropped: its %llu bytes are too many to be "
                    "delivered, and without its values it is still too big for the dead-letter stream",
                    tw__redis_string_shown(delivery->schedule->name, name),
                    (unsigned long long)entry_bytes(delivery->task));
}
