/* SPDX-License-Identifier: MIT
 *
 * The server's own XADD and RPUSH do the work. So slots, types, blocked consumers and keyspace notifications
 * are handled as for any client. RedisModule_Call() gets these flags:
 *
 *     !   replicate the command
 *     S   refuse the command where a script is refused: too few replicas, disk errors
 *     E   return errors as replies
 *
 * The flag `M` (refuse when memory is short) is not used. It goes by the state that the last command of a
 * client found, which on a quiet server may be long ago. Instead the tick looks at the memory itself before
 * each batch.
 *
 * While the server runs a call for us, it may notify other modules, and these modules may call our commands.
 * All commands reach the queues through keys.c, which settles the batch. So `settled` of the batch tells
 * whether any caller came. `delivering` follows the block of the task, and is cleared when the task is removed,
 * replaced or filed anew: it waits as its new self. A put with KEEPDUE renews its block, its route and its
 * options; the delivery goes on with these.
 */
#include "delivery.h"

#include <base/assert.h>
#include <base/error_text.h>
#include <stdio.h>
#include <string.h>

#include "keyspace/keys.h"
#include "queues/place.h"
#include "queues/route.h"
#include "server/strings.h"

static const char *const word_text[TW__REDIS_WORDS] = {
    [TW__REDIS_WORD_MAXLEN] = "MAXLEN", [TW__REDIS_WORD_ABOUT] = "~",
    [TW__REDIS_WORD_NEW_ID] = "*",      [TW__REDIS_WORD_ID] = "tw.id",
    [TW__REDIS_WORD_DUE] = "tw.due",    [TW__REDIS_WORD_ATTEMPT] = "tw.attempt",
    [TW__REDIS_WORD_FIRST] = "1",       [TW__REDIS_WORD_MISSED_PERIODS] = "tw.missed-periods",
};

/* Strings that many calls contain. */
struct tw__redis_calls {
    RedisModuleString *word[TW__REDIS_WORDS];
    RedisModuleString *due; /* `due_ms` as a string: tasks that are due together share it */
    uint64_t due_ms;
};

size_t tw__redis_call_word_size(enum tw__redis_word word)
{
    return strlen(word_text[word]);
}

void tw__redis_call_start(void)
{
    struct tw__redis_calls *calls = RedisModule_Alloc(sizeof *calls);
    for (int i = 0; i < TW__REDIS_WORDS; i++)
        calls->word[i] = RedisModule_CreateString(NULL, word_text[i], strlen(word_text[i]));
    calls->due_ms = 0;
    calls->due = tw__redis_string_of_number(0);
    tw__redis_shared.calls = calls;
}

static RedisModuleString *due_string(struct tw__redis_calls *calls, uint64_t due_ms)
{
    if (calls->due_ms == due_ms)
        return calls->due;
    RedisModule_FreeString(NULL, calls->due);
    calls->due_ms = due_ms;
    return calls->due = tw__redis_string_of_number(due_ms);
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

void tw__redis_call_init(struct tw__redis_call *call, size_t most)
{
    call->count = 0;
    call->room = TW__REDIS_CALL_SMALL;
    call->at = call->small;
    call->is_own = call->small_own;
    if (most > TW__REDIS_CALL_SMALL) {
        call->room = most;
        call->at = RedisModule_Alloc(most * sizeof(RedisModuleString *));
        call->is_own = RedisModule_Alloc(most * sizeof *call->is_own);
    }
}

static void call_fini(struct tw__redis_call *call)
{
    for (size_t i = 0; i < call->count; i++)
        if (call->is_own[i])
            RedisModule_FreeString(NULL, call->at[i]);
    if (call->at != call->small) {
        RedisModule_Free(call->at);
        RedisModule_Free(call->is_own);
    }
}

void tw__redis_call_add_kept(struct tw__redis_call *call, RedisModuleString *string)
{
    TW_ASSERT(call->count < call->room);
    call->is_own[call->count] = false;
    call->at[call->count++] = string;
}

void tw__redis_call_add_own(struct tw__redis_call *call, RedisModuleString *string)
{
    TW_ASSERT(call->count < call->room);
    call->is_own[call->count] = true;
    call->at[call->count++] = string;
}

void tw__redis_call_add_word(struct tw__redis_call *call, enum tw__redis_word word)
{
    tw__redis_call_add_kept(call, tw__redis_shared.calls->word[word]);
}

void tw__redis_call_add_about(struct tw__redis_call *call, const struct tw__redis_delivery *delivery)
{
    const struct tw__redis_task *task = delivery->task;
    tw__redis_call_add_word(call, TW__REDIS_WORD_ID);
    tw__redis_call_add_own(call, tw__redis_string_new(tw__redis_task_id(task)));
    tw__redis_call_add_word(call, TW__REDIS_WORD_DUE);
    tw__redis_call_add_kept(call, due_string(tw__redis_shared.calls, tw__redis_task_first_due(task)));
    tw__redis_call_add_word(call, TW__REDIS_WORD_ATTEMPT);
    if (tw__redis_place_tries(tw__redis_shared.queues, task) == 0)
        tw__redis_call_add_word(call, TW__REDIS_WORD_FIRST);
    else
        tw__redis_call_add_own(
            call, tw__redis_string_of_number(tw__redis_place_tries(tw__redis_shared.queues, task) + 1));
    if (delivery->missed_periods == 0)
        return;
    tw__redis_call_add_word(call, TW__REDIS_WORD_MISSED_PERIODS);
    tw__redis_call_add_own(call, tw__redis_string_of_number(delivery->missed_periods));
}

void tw__redis_call_add_payload(struct tw__redis_call *call, const struct tw__redis_task *task)
{
    struct tw__redis_payload payload = tw__redis_task_payload(task);
    while (payload.count > 0)
        tw__redis_call_add_own(call, tw__redis_string_new(tw__redis_payload_next(&payload)));
}

/* ---- replies --------------------------------------------------------------------------------------------- */

/* Stores the server's reply in the delivery: TW__REDIS_DEFER_NONE, or why the server refused, and the text of
 * the error. */
static void note_answer(struct tw__redis_delivery *delivery, RedisModuleCallReply *reply)
{
    delivery->why = TW__REDIS_DEFER_NONE;
    delivery->error[0] = '\0';
    if (reply != NULL && RedisModule_CallReplyType(reply) != REDISMODULE_REPLY_ERROR)
        return;
    struct tw__redis_bytes text = {"the server has no such command", strlen("the server has no such command")},
                           given = {NULL, 0};
    if (reply != NULL)
        given.at = RedisModule_CallReplyStringPtr(reply, &given.size);
    if (given.at != NULL)
        text = given;
    while (text.size > 0 && (text.at[text.size - 1] == '\r' || text.at[text.size - 1] == '\n'))
        text.size--;
    text.size = tw__text_size(text.at, text.size, TW__REDIS_ERROR_MAX - 1);
    snprintf(delivery->error, TW__REDIS_ERROR_MAX, "%.*s", (int)text.size, text.at);
    delivery->why = tw__redis_gate_refusal(text);
}

/* ---- other modules --------------------------------------------------------------------------------------- */

static void set_task(struct tw__redis_delivery *delivery, struct tw__redis_task *task)
{
    delivery->task = task;
    delivery->route = tw__redis_route_of(tw__redis_shared.queues, task);
    delivery->queue = delivery->route->queue;
    delivery->plan = tw__redis_route_plan(delivery->route);
}

void tw__redis_delivery_init(struct tw__redis_delivery *delivery, struct tw__redis_batch *batch,
                             struct tw__redis_task *task, uint64_t now_ms)
{
    delivery->batch = batch;
    delivery->now_ms = now_ms;
    delivery->missed_periods = delivery->every = delivery->late_since_ms = 0;
    set_task(delivery, task);
}

/* Begins to watch the task, until meanwhile(). Returns the count of settles, which the caller passes to it. */
static uint32_t watch(struct tw__redis_delivery *delivery)
{
    TW_ASSERT(tw__redis_shared.batch == delivery->batch && tw__redis_shared.queues->delivering == NULL);
    tw__redis_shared.queues->delivering = delivery->task;
    return delivery->batch->settled;
}

/* Ends watch(). Returns how other modules may have changed the queues since. */
static enum tw__redis_meanwhile meanwhile(struct tw__redis_delivery *delivery, uint32_t settled)
{
    struct tw__redis_task *task = tw__redis_shared.queues->delivering;
    bool same = task != NULL && delivery->queue->attached;
    tw__redis_shared.queues->delivering = NULL;
    TW_ASSERT(same || delivery->batch->settled != settled);
    if (!same)
        return TW__REDIS_GONE;
    set_task(delivery, task);
    return delivery->batch->settled == settled ? TW__REDIS_UNSEEN : TW__REDIS_SEEN;
}

enum tw__redis_meanwhile tw__redis_call_key(struct tw__redis_delivery *delivery)
{
    uint32_t settled = watch(delivery);
    bool there = tw__redis_keys_has(delivery->batch->ctx, delivery->queue);
    enum tw__redis_meanwhile others = meanwhile(delivery, settled);
    return there ? others : TW__REDIS_GONE;
}

enum tw__redis_meanwhile tw__redis_call_send(struct tw__redis_call *call, const char *command,
                                             struct tw__redis_delivery *delivery)
{
    uint32_t settled = watch(delivery);
    tw__redis_asked_note(delivery->plan.kind == TW__REDIS_STREAM ? TW__REDIS_ASKED_STREAM
                                                                 : TW__REDIS_ASKED_LIST,
                         delivery->queue->db, call->at[0]);
    RedisModuleCallReply *reply =
        RedisModule_Call(delivery->batch->ctx, command, "!ESv", call->at, call->count);
    note_answer(delivery, reply);
    enum tw__redis_meanwhile others = meanwhile(delivery, settled);
    if (reply != NULL)
        RedisModule_FreeCallReply(reply);
    call_fini(call);
    return others;
}

/* TW.FIRED NOTHING is a write that writes nothing. So the server refuses it where it would refuse any write.
 * */
enum tw__redis_meanwhile tw__redis_call_may_write(struct tw__redis_delivery *delivery)
{
    uint32_t settled = watch(delivery);
    RedisModuleCallReply *reply =
        RedisModule_Call(delivery->batch->ctx, "TW.FIRED", "ESsc", delivery->queue->name, "NOTHING");
    note_answer(delivery, reply);
    enum tw__redis_meanwhile others = meanwhile(delivery, settled);
    if (reply != NULL)
        RedisModule_FreeCallReply(reply);
    return others;
}
