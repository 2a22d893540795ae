/* SPDX-License-Identifier: MIT
 *
 * The server's own XADD and RPUSH do the work, called with the flags `!` (replicate), `S` (refuse as in a
 * script: too few replicas, disk errors) and `E` (errors as replies): so slots, types, blocked consumers and
 * events are right by themselves.
 *
 * `M` (refuse when memory is short) is not asked for: it goes by what the last command of a client found, which
 * on a quiet server may be long ago. The memory itself is looked at before each batch.
 *
 * Whatever the server does for us, it may tell other modules of it, and these may call commands of ours. They
 * come to schedules by keys.c, which settles the batch: so its count tells whether anybody came, and
 * `delivering`, which is cleared when that task is changed or removed, whether the task is the same.
 */
#include "call.h"

#include <base/assert.h>
#include <stdio.h>
#include <string.h>

#include "keys.h"
#include "schedules/place.h"
#include "schedules/route.h"
#include "strings.h"

const char *const tw__word_text[TW__WORDS] = {
    [TW__WORD_MAXLEN] = "MAXLEN",  [TW__WORD_ABOUT] = "~",        [TW__WORD_NEW_ID] = "*",
    [TW__WORD_ID] = "tw.id",       [TW__WORD_DUE] = "tw.due",     [TW__WORD_ATTEMPT] = "tw.attempt",
    [TW__WORD_FIRST] = "1",        [TW__WORD_ERROR] = "tw.error", [TW__WORD_TARGET] = "tw.target",
    [TW__WORD_BYTES] = "tw.bytes", [TW__WORD_VALUE] = "value",
};

/* Strings that calls have in common. */
struct tw__calls {
    RedisModuleString *word[TW__WORDS];
    RedisModuleString *due; /* `due_ms`: tasks that come due together have the same time to say */
    uint64_t due_ms;
};

void tw__call_start(void)
{
    struct tw__calls *calls = RedisModule_Alloc(sizeof *calls);
    for (int i = 0; i < TW__WORDS; i++)
        calls->word[i] = RedisModule_CreateString(NULL, tw__word_text[i], strlen(tw__word_text[i]));
    calls->due_ms = 0;
    calls->due = tw__string_of_number(0);
    tw__shared.calls = calls;
}

static RedisModuleString *due_string(struct tw__calls *calls, uint64_t due_ms)
{
    if (calls->due_ms == due_ms)
        return calls->due;
    RedisModule_FreeString(NULL, calls->due);
    calls->due_ms = due_ms;
    return calls->due = tw__string_of_number(due_ms);
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

void tw__call_init(struct tw__call *call, size_t most)
{
    call->count = 0;
    call->room = TW__CALL_SMALL;
    call->at = call->small;
    call->is_own = call->small_own;
    if (most > TW__CALL_SMALL) {
        call->room = most;
        call->at = RedisModule_Alloc(most * sizeof(RedisModuleString *));
        call->is_own = RedisModule_Alloc(most * sizeof *call->is_own);
    }
}

static void call_fini(struct tw__call *call)
{
    for (size_t i = 0; i < call->count; i++)
        if (call->is_own[i])
            RedisModule_FreeString(NULL, call->at[i]);
    if (call->at != call->small) {
        RedisModule_Free(call->at);
        RedisModule_Free(call->is_own);
    }
}

void tw__call_add_kept(struct tw__call *call, RedisModuleString *string)
{
    TW_ASSERT(call->count < call->room);
    call->is_own[call->count] = false;
    call->at[call->count++] = string;
}

void tw__call_add_own(struct tw__call *call, RedisModuleString *string)
{
    TW_ASSERT(call->count < call->room);
    call->is_own[call->count] = true;
    call->at[call->count++] = string;
}

void tw__call_add_word(struct tw__call *call, enum tw__word word)
{
    tw__call_add_kept(call, tw__shared.calls->word[word]);
}

void tw__call_add_about(struct tw__call *call, const struct tw__task *task)
{
    tw__call_add_word(call, TW__WORD_ID);
    tw__call_add_own(call, tw__string_new(tw__task_id(task)));
    tw__call_add_word(call, TW__WORD_DUE);
    tw__call_add_kept(call, due_string(tw__shared.calls, tw__task_due(task)));
    tw__call_add_word(call, TW__WORD_ATTEMPT);
    if (tw__place_tries(tw__shared.schedules, task) == 0)
        tw__call_add_word(call, TW__WORD_FIRST);
    else
        tw__call_add_own(call, tw__string_of_number(tw__place_tries(tw__shared.schedules, task) + 1));
}

void tw__call_add_payload(struct tw__call *call, const struct tw__task *task)
{
    struct tw__payload payload = tw__task_payload(task);
    while (payload.count > 0)
        tw__call_add_own(call, tw__string_new(tw__payload_next(&payload)));
}

/* ---- answers --------------------------------------------------------------------------------------------- */

/* Notes the server's answer: TW__DEFER_NONE, or why not, and the text of the error. */
static void note_answer(struct tw__delivery *delivery, RedisModuleCallReply *reply)
{
    static const struct {
        const char *text;
        enum tw__defer why;
    } refusals[] = {
        {"OOM ", TW__DEFER_OOM},
        {"NOREPLICAS", TW__DEFER_REPLICAS},
        {"MISCONF", TW__DEFER_DISK},
        {"READONLY", TW__DEFER_ROLE},
        {"MASTERDOWN", TW__DEFER_ROLE},
        {"non local key", TW__DEFER_SLOT},
        {"cluster is down", TW__DEFER_SLOT},
        {"CLUSTERDOWN", TW__DEFER_SLOT},
    };
    delivery->why = TW__DEFER_NONE;
    delivery->error[0] = '\0';
    if (reply != NULL && RedisModule_CallReplyType(reply) != REDISMODULE_REPLY_ERROR)
        return;
    struct tw__bytes text = {"the command is not there", strlen("the command is not there")}, given = {NULL, 0};
    if (reply != NULL)
        given.at = RedisModule_CallReplyStringPtr(reply, &given.size);
    if (given.at != NULL)
        text = given;
    while (text.size > 0 && (text.at[text.size - 1] == '\r' || text.at[text.size - 1] == '\n'))
        text.size--;
    if (text.size >= TW__ERROR_MAX)
        text.size = TW__ERROR_MAX - 1;
    snprintf(delivery->error, TW__ERROR_MAX, "%.*s", (int)text.size, text.at);
    delivery->why = TW__DEFER_REFUSED;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (strstr(delivery->error, refusals[i].text) != NULL) {
            delivery->why = refusals[i].why;
            return;
        }
}

/* ---- other modules --------------------------------------------------------------------------------------- */

void tw__delivery_init(struct tw__delivery *delivery, struct tw__batch *batch, struct tw__task *task,
                       uint64_t now_ms)
{
    delivery->batch = batch;
    delivery->task = task;
    delivery->route = tw__route_of(tw__shared.schedules, task);
    delivery->schedule = delivery->route->schedule;
    delivery->plan = tw__route_plan(delivery->route);
    delivery->now_ms = now_ms;
}

/* From here on, until meanwhile(), whatever happens to the task is noted. Returns what meanwhile() wants. */
static uint32_t watch(const struct tw__delivery *delivery)
{
    TW_ASSERT(tw__shared.batch == delivery->batch && tw__shared.schedules->delivering == NULL);
    tw__shared.schedules->delivering = delivery->task;
    return delivery->batch->settled;
}

static enum tw__meanwhile meanwhile(const struct tw__delivery *delivery, uint32_t settled)
{
    bool same = tw__shared.schedules->delivering == delivery->task && delivery->schedule->attached;
    tw__shared.schedules->delivering = NULL;
    TW_ASSERT(same || delivery->batch->settled != settled);
    if (!same)
        return TW__GONE;
    return delivery->batch->settled == settled ? TW__UNSEEN : TW__SEEN;
}

enum tw__meanwhile tw__call_key(struct tw__delivery *delivery)
{
    uint32_t settled = watch(delivery);
    bool there = tw__keys_has(delivery->batch->ctx, delivery->schedule);
    enum tw__meanwhile others = meanwhile(delivery, settled);
    return there ? others : TW__GONE;
}

enum tw__meanwhile tw__call_send(struct tw__call *call, const char *command, struct tw__delivery *delivery)
{
    uint32_t settled = watch(delivery);
    RedisModuleCallReply *reply =
        RedisModule_Call(delivery->batch->ctx, command, "!ESv", call->at, call->count);
    note_answer(delivery, reply);
    enum tw__meanwhile others = meanwhile(delivery, settled);
    if (reply != NULL)
        RedisModule_FreeCallReply(reply);
    call_fini(call);
    return others;
}
