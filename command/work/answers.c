/* SPDX-License-Identifier: MIT
 *
 * The calls are in a list. First come the calls that were sent, in the order of their replies, then the calls
 * that are to be sent.
 */
#include "answers.h"

#include "trouble.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT_MAX = 256, WORDS = 8, WAIT_LEAST_MS = 10 };

/* ---- the list -------------------------------------------------------------------------------------------- */

static void append(struct answers *answers, struct call *call)
{
    call->listed = true;
    call->sent = false;
    call->next = NULL;
    *answers->end = call;
    answers->end = &call->next;
}

static struct call *take_first(struct answers *answers)
{
    struct call *call = answers->first;
    answers->first = call->next;
    if (answers->first == NULL)
        answers->end = &answers->first;
    call->listed = false;
    answers->in_flight--;
    return call;
}

/* Takes the calls out that are not worth sending any more: the touches of tasks that have a result. */
static void tidy(struct answers *answers)
{
    for (struct call **at = &answers->first; *at != NULL;) {
        struct call *call = *at;
        if (call->verb == VERB_TOUCH && !call->sent && call->lease->answer.listed) {
            call->listed = false;
            *at = call->next;
        } else {
            at = &call->next;
        }
        answers->end = at;
    }
    if (answers->first == NULL)
        answers->end = &answers->first;
}

/* ---- sending --------------------------------------------------------------------------------------------- */

struct words {
    const char *word[WORDS];
    size_t size[WORDS];
    int count;
};

static void add(struct words *words, struct tw_bytes word)
{
    words->word[words->count] = word.data;
    words->size[words->count++] = word.size;
}

static void add_text(struct words *words, const char *text)
{
    add(words, tw_text(text));
}

static void add_task(struct words *words, const char *command, const struct lease *lease)
{
    add_text(words, command);
    add_text(words, lease->taken.queue);
    add(words, lease->taken.id);
    add(words, lease->taken.token);
}

static const char *name_of(enum verb verb)
{
    static const char *const NAMES[] = {
        [VERB_TOUCH] = "TW.TOUCH", [VERB_ACK] = "TW.ACK",      [VERB_NACK] = "TW.NACK",
        [VERB_BACK] = "TW.NACK",   [VERB_NOT_YET] = "TW.NACK", [VERB_UNBLOCK] = "CLIENT"};
    return NAMES[verb];
}

static void send_call(struct answers *answers, struct call *call)
{
    struct words words = {.count = 0};
    if (call->verb == VERB_UNBLOCK) {
        add_text(&words, "CLIENT");
        add_text(&words, "UNBLOCK");
        add_text(&words, answers->client);
    } else {
        add_task(&words, name_of(call->verb), call->lease);
    }
    if (call->verb == VERB_TOUCH) {
        add_text(&words, "LEASE");
        add_text(&words, answers->lease_ms);
    } else if (call->verb == VERB_BACK) {
        add_text(&words, "BACK");
    } else if (call->verb == VERB_NOT_YET) {
        add_text(&words, "BACK");
        add_text(&words, "IN");
        add_text(&words, answers->back_ms);
    } else if (call->verb == VERB_NACK && call->lease->error != NULL) {
        add_text(&words, "ERROR");
        add_text(&words, call->lease->error);
    }
    wire_send(&answers->wire, words.count, words.word, words.size);
    call->sent = true;
    call->times++;
    answers->in_flight++;
}

/* Returns whether it has sent a call. */
static bool send_calls(struct answers *answers)
{
    size_t before = answers->in_flight;
    if (!answers->wire.open || timers_wait(&answers->hold))
        return false;
    for (struct call *call = answers->first; call != NULL && answers->in_flight < IN_FLIGHT_MAX;
         call = call->next)
        if (!call->sent)
            send_call(answers, call);
    if (before == 0 && answers->in_flight > 0)
        wire_expect(&answers->wire, WIRE_PATIENCE_MS);
    return answers->in_flight > before;
}

/* ---- answers --------------------------------------------------------------------------------------------- */

static bool is_result(const struct call *call)
{
    return call->verb != VERB_TOUCH && call->verb != VERB_UNBLOCK;
}

static void settle(struct answers *answers, struct call *call, enum outcome outcome)
{
    struct lease *lease = call->lease;
    const struct source_events *source = answers->events.source;
    source->settled(source->arg, &lease->taken, outcome, lease->error);
    lease_free(lease);
}

/* A reply of nil to TW.TOUCH, or an end of the lease that TW.ACK shows. */
static void take_touch(struct answers *answers, struct lease *lease, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_NIL || lease->answer.listed || lease->taken.not_yours)
        return;
    lease->taken.not_yours = true;
    answers->events.source->not_yours(answers->events.source->arg, &lease->taken);
}

/* The first reply may have been lost, and then the second one finds the work done already. So a call that was
 * sent twice counts as if it had had its effect. */
static enum outcome outcome_of(const struct call *call, const redisReply *reply)
{
    bool again = call->times > 1, number = reply->type == REDIS_REPLY_INTEGER;
    if (call->verb == VERB_ACK)
        return (number && reply->integer > 0) || again ? OUTCOME_DONE : OUTCOME_NOT_YOURS;
    if (!number && !again)
        return OUTCOME_NOT_YOURS;
    if (call->verb == VERB_BACK || call->verb == VERB_NOT_YET)
        return OUTCOME_BACK;
    return number && reply->integer == 0 ? OUTCOME_DEAD : OUTCOME_FAILED;
}

static void take_answer(struct answers *answers, struct call *call, const redisReply *reply)
{
    answers->wait_ms = 0;
    wire_praise(&answers->wire);
    if (call->verb == VERB_UNBLOCK)
        answers->events.unblocked(answers->events.arg,
                                  reply->type == REDIS_REPLY_INTEGER && reply->integer == 1);
    else if (call->verb == VERB_TOUCH)
        take_touch(answers, call->lease, reply);
    else
        settle(answers, call, outcome_of(call, reply));
}

/* Files a call again whose error passes. */
static void call_again(struct answers *answers, struct call *call)
{
    if (call->verb == VERB_UNBLOCK || (call->verb == VERB_TOUCH && call->lease->answer.listed))
        return;
    call->times--; /* it has had no effect */
    append(answers, call);
}

static void give_up(struct answers *answers, struct call *call, const char *reply)
{
    char why[LINK_ERROR];
    trouble_explain(answers->wire.target, name_of(call->verb), reply, why);
    if (call->verb != VERB_TOUCH)
        settle(answers, call, OUTCOME_NOT_YOURS);
    answers->events.failed(answers->events.arg, why);
}

static void take_error(struct answers *answers, struct call *call, const char *reply)
{
    enum trouble trouble = trouble_of(reply);
    if (call->verb == VERB_UNBLOCK) { /* without the right to it, the wait ends by itself */
        answers->events.unblocked(answers->events.arg, true);
        return;
    }
    if (trouble == TROUBLE_STAYS) {
        give_up(answers, call, reply);
        return;
    }
    call_again(answers, call);
    if (trouble == TROUBLE_MOVED && answers->events.moved(answers->events.arg, reply))
        return;
    if (trouble == TROUBLE_ELSEWHERE)
        wire_break(&answers->wire, reply);
    else if (!timers_wait(&answers->hold))
        timers_set(answers->wire.timers, &answers->hold,
                   wire_backoff_ms(&answers->wait_ms, answers->wire.wait_max_ms));
}

static void on_reply(void *arg, redisReply *reply)
{
    struct answers *answers = arg;
    if (answers->in_flight == 0) { /* only a server that refuses the connection speaks first */
        if (reply->type == REDIS_REPLY_ERROR && trouble_of(reply->str) == TROUBLE_ELSEWHERE)
            wire_break(&answers->wire, reply->str);
        return;
    }
    struct call *call = take_first(answers);
    wire_expect(&answers->wire, answers->in_flight > 0 ? WIRE_PATIENCE_MS : 0);
    if (reply->type == REDIS_REPLY_ERROR)
        take_error(answers, call, reply->str);
    else
        take_answer(answers, call, reply);
}

/* No answer will come to the calls in flight: they are sent again. */
static void on_broken(void *arg, const char *why)
{
    struct answers *answers = arg;
    for (struct call *call = answers->first; call != NULL; call = call->next)
        call->sent = false;
    answers->in_flight = 0;
    tidy(answers);
    answers->events.broken(answers->events.arg, why);
}

/* The server has refused us: no result can be reported any more. */
static void on_refused(void *arg, const char *why)
{
    struct answers *answers = arg;
    while (answers->first != NULL) {
        struct call *call = take_first(answers);
        if (is_result(call))
            settle(answers, call, OUTCOME_NOT_YOURS);
    }
    answers->in_flight = 0;
    answers->events.failed(answers->events.arg, why);
}

/* ---- the calls ------------------------------------------------------------------------------------------- */

void answers_touch(struct answers *answers, struct lease *lease)
{
    if (lease->touch.listed || answers->wire.closed)
        return;
    lease->touch.times = 0;
    append(answers, &lease->touch);
}

void answers_give(struct answers *answers, struct lease *lease, enum result result, const char *error)
{
    static const enum verb VERBS[] = {[RESULT_DONE] = VERB_ACK,
                                      [RESULT_FAILED] = VERB_NACK,
                                      [RESULT_BACK] = VERB_BACK,
                                      [RESULT_NOT_YET] = VERB_NOT_YET};
    lease->answer.verb = VERBS[result];
    if (answers->wire.closed) {
        settle(answers, &lease->answer, OUTCOME_NOT_YOURS);
        return;
    }
    lease->error = error != NULL ? strdup(error) : NULL;
    append(answers, &lease->answer);
    tidy(answers);
}

void answers_unblock(struct answers *answers, long long client)
{
    if (answers->unblock.listed || answers->wire.closed)
        return;
    snprintf(answers->client, sizeof answers->client, "%lld", client);
    answers->unblock = (struct call){.verb = VERB_UNBLOCK};
    append(answers, &answers->unblock);
}

bool answers_empty(const struct answers *answers)
{
    for (const struct call *call = answers->first; call != NULL; call = call->next)
        if (is_result(call))
            return false;
    return true;
}

void answers_restart(struct answers *answers, const char *why)
{
    wire_break(&answers->wire, why);
}

void answers_turn(struct answers *answers)
{
    do
        wire_turn(&answers->wire);
    while (send_calls(answers));
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

/* A lease that ended while the server was down begins anew, once: the next call comes before its end. */
static uint64_t longest_wait_ms(uint64_t lease_ms)
{
    uint64_t wait = lease_ms / 10;
    return wait < WAIT_LEAST_MS ? WAIT_LEAST_MS : wait < WIRE_WAIT_MAX_MS ? wait : WIRE_WAIT_MAX_MS;
}

void answers_init(struct answers *answers, const struct link_target *target, struct timers *timers,
                  const struct work_options *options, const struct answers_events *events)
{
    const struct wire_events wire = {
        .reply = on_reply, .broken = on_broken, .refused = on_refused, .arg = answers};
    *answers = (struct answers){.events = *events};
    answers->end = &answers->first;
    snprintf(answers->lease_ms, sizeof answers->lease_ms, "%" PRIu64, options->lease_ms);
    snprintf(answers->back_ms, sizeof answers->back_ms, "%" PRIu64, options->back_ms);
    wire_init(&answers->wire, target, timers, &wire);
    answers->wire.wait_max_ms = longest_wait_ms(options->lease_ms);
}

void answers_fini(struct answers *answers)
{
    timers_cancel(answers->wire.timers, &answers->hold);
    wire_close(&answers->wire);
    for (struct call *call = answers->first, *next; call != NULL; call = next) {
        next = call->next;
        if (is_result(call))
            lease_free(call->lease);
    }
}
