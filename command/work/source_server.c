/* SPDX-License-Identifier: MIT
 *
 * Tasks of a server. One connection waits in TW.TAKE for at most BLOCK_MS, for as many tasks as the worker has
 * free places; answers.c makes all other calls over another one. To end the wait at once, CLIENT UNBLOCK comes
 * over that other connection.
 *
 * A cluster: the queues of one worker lie in one slot, as TW.TAKE names all of them. Both connections follow
 * MOVED to the node that has the slot, and ASK of TW.TAKE to the node that the slot moves to: then no queue is
 * here any more. ASK of another call tells that only of its own queue. A worker of several queues cannot go
 * yet: over there an answer about a queue that is still here would find no task.
 */
#include "source.h"

#include "answers.h"
#include "command.h"
#include "screen.h"
#include "text.h"
#include "trouble.h"
#include "wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_MS = 5000, WORDS_FIXED = 10, UNBLOCK_AGAIN_MS = 20, CALM_MS = 300, REPLY_MAX = 2047 << 20 };
static const char COMMAND[] = "tickwheel work";

/* The connection that takes. */
enum stage {
    AWAY,    /* there is none */
    ASKING,  /* CLIENT ID is under way */
    RESTING, /* no place is free, or an error passes */
    TAKING   /* TW.TAKE is under way */
};

struct server {
    struct source source; /* the first member */
    struct link_target target;
    struct wire wire;
    struct answers answers;
    enum stage stage;
    long long client; /* its id; 0: not known */
    bool told_ready, stopping, failed, following;
    uint64_t wait_ms;
    struct timer rest;        /* while it waits, no TW.TAKE is sent */
    struct timer calm;        /* TW.TAKE has waited for a moment without an error */
    struct timer unblock;     /* asks for an end of the wait again */
    char trouble[LINK_ERROR]; /* the last that was told; empty: there is none now */
    const char **words;
};

/* ---- messages -------------------------------------------------------------------------------------------- */

/* Tells the trouble with a connection, once until there is another trouble or none. */
static void tell_trouble(struct server *server, const char *why)
{
    char text[LINK_ERROR];
    text_clean(text, sizeof text, tw_text(why)); /* it may be a reply of the server, as it came */
    if (server->failed || strcmp(server->trouble, text) == 0)
        return;
    snprintf(server->trouble, sizeof server->trouble, "%s", text);
    screen_hide();
    complain("%s: %s: %s; trying again", COMMAND, server->target.url.text, text);
}

static void tell_ready(struct server *server)
{
    if (!server->told_ready)
        server->source.events.ready(server->source.events.arg, server->target.url.text);
    server->told_ready = true;
}

static void end_trouble(void *arg)
{
    struct server *server = arg;
    tell_ready(server);
    server->wait_ms = 0;
    wire_praise(&server->wire);
    wire_praise(&server->answers.wire);
    if (*server->trouble == '\0')
        return;
    *server->trouble = '\0';
    screen_hide();
    complain("%s: taking tasks again from %s", COMMAND, server->target.url.text);
}

static void fail(struct server *server, const char *why)
{
    char text[LINK_ERROR];
    if (server->failed)
        return;
    server->failed = true;
    text_clean(text, sizeof text, tw_text(why));
    screen_hide();
    complain("%s: %s: %s", COMMAND, server->target.url.text, text);
    server->source.events.failed(server->source.events.arg);
}

/* ---- TW.TAKE --------------------------------------------------------------------------------------------- */

static void send_take(struct server *server, size_t places)
{
    const struct work_options *options = server->source.options;
    char lease[24], count[24], block[24], keys[24];
    int at = 0;
    snprintf(lease, sizeof lease, "%" PRIu64, options->lease_ms);
    snprintf(count, sizeof count, "%zu", places);
    snprintf(block, sizeof block, "%d", BLOCK_MS);
    snprintf(keys, sizeof keys, "%zu", options->queues);
    const char *const tail[] = {"LEASE", lease, "COUNT", count, "BLOCK", block, "NAME", options->name};
    server->words[at++] = "TW.TAKE";
    server->words[at++] = keys;
    for (size_t i = 0; i < options->queues; i++)
        server->words[at++] = options->queue[i];
    for (size_t i = 0; i < sizeof tail / sizeof *tail; i++)
        server->words[at++] = tail[i];
    wire_send(&server->wire, at, server->words, NULL);
    wire_expect(&server->wire, BLOCK_MS + WIRE_PATIENCE_MS);
    timers_set(server->source.timers, &server->calm, CALM_MS);
    server->stage = TAKING;
}

static const char *queue_of(const struct server *server, const redisReply *row)
{
    const struct work_options *options = server->source.options;
    for (size_t i = 0; i < options->queues; i++)
        if (strcmp(options->queue[i], row->element[0]->str) == 0)
            return options->queue[i];
    return NULL;
}

static void take_row(struct server *server, const redisReply *row)
{
    const char *queue = lease_is_row(row) ? queue_of(server, row) : NULL;
    if (queue == NULL) {
        fail(server, "the answer of TW.TAKE is not the one that this command knows");
        return;
    }
    struct lease *lease = lease_new(row, queue);
    if (lease == NULL)
        return; /* without memory for it, the task comes again after its lease */
    if (server->stopping)
        answers_give(&server->answers, lease, RESULT_BACK, NULL);
    else
        server->source.events.taken(server->source.events.arg, &lease->taken);
}

static void rest_a_while(struct server *server, const char *reply)
{
    char why[LINK_ERROR];
    link_explain(&server->target, "TW.TAKE", reply, why);
    tell_trouble(server, why);
    timers_set(server->source.timers, &server->rest, wire_backoff_ms(&server->wait_ms, WIRE_WAIT_MAX_MS));
}

/* Goes on with the node that has the slot. */
static void follow(struct server *server, const char *reply)
{
    char why[LINK_ERROR];
    struct link_target old = server->target;
    if (!trouble_follow(reply, &server->target)) {
        snprintf(why, sizeof why, "the node that has the queues cannot be reached from here: %.200s", reply);
        fail(server, why);
        return;
    }
    if (strcmp(old.url.host, server->target.url.host) == 0 && old.url.port == server->target.url.port &&
        old.asking == server->target.asking)
        return;
    server->following = true;
    wire_break(&server->wire, reply);
    answers_restart(&server->answers, reply);
    server->following = false;
}

static void take_error(struct server *server, const char *reply)
{
    char why[LINK_ERROR];
    switch (trouble_of(reply)) {
    case TROUBLE_PASSES:
        rest_a_while(server, reply);
        break;
    case TROUBLE_ELSEWHERE:
        wire_break(&server->wire, reply);
        break;
    case TROUBLE_MOVED:
        follow(server, reply);
        break;
    default:
        trouble_explain(&server->target, "TW.TAKE", reply, why);
        fail(server, why);
        break;
    }
}

static void take_reply(struct server *server, const redisReply *reply)
{
    server->stage = RESTING;
    timers_cancel(server->source.timers, &server->unblock);
    timers_cancel(server->source.timers, &server->calm);
    if (reply->type == REDIS_REPLY_ERROR) {
        take_error(server, reply->str);
    } else {
        end_trouble(server);
        for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++)
            take_row(server, reply->element[i]);
    }
    if (server->stopping)
        wire_close(&server->wire);
}

/* ---- the connection that takes --------------------------------------------------------------------------- */

static void on_opened(void *arg)
{
    struct server *server = arg;
    server->stage = ASKING;
    wire_send(&server->wire, 2, (const char *[]){"CLIENT", "ID"}, NULL);
    wire_expect(&server->wire, WIRE_PATIENCE_MS);
}

/* Returns whether the server does not let us in, whatever the first command is: it wants a password (which it
 * does not say to TW.TAKE, as that has too many words), is in protected mode, or has too many clients. */
static bool is_refused(const redisReply *reply)
{
    static const char *const KNOWN[] = {"NOAUTH", "DENIED", "ERR max number of clients"};
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
        if (reply->type == REDIS_REPLY_ERROR && text_begins(reply->str, KNOWN[i]))
            return true;
    return false;
}

/* Without the right to CLIENT ID, a wait ends by itself. A server that loads its data, or lacks the module,
 * says so to TW.TAKE. So does a cluster if several queues lie in several slots, and then we are never ready. */
static void take_client(struct server *server, const redisReply *reply)
{
    if (is_refused(reply)) {
        server->stage = RESTING;
        take_error(server, reply->str);
        return;
    }
    server->client = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
    server->stage = RESTING;
    if (server->source.options->queues == 1)
        tell_ready(server);
}

static void on_reply(void *arg, redisReply *reply)
{
    struct server *server = arg;
    wire_expect(&server->wire, 0);
    if (server->stage == ASKING)
        take_client(server, reply);
    else if (server->stage == TAKING)
        take_reply(server, reply);
}

static void on_broken(void *arg, const char *why)
{
    struct server *server = arg;
    server->stage = AWAY;
    timers_cancel(server->source.timers, &server->unblock);
    timers_cancel(server->source.timers, &server->calm);
    if (server->stopping)
        wire_close(&server->wire);
    else if (!server->following)
        tell_trouble(server, why);
}

static void on_refused(void *arg, const char *why)
{
    struct server *server = arg;
    server->stage = AWAY;
    fail(server, why);
}

/* ---- the other connection -------------------------------------------------------------------------------- */

static void ask_to_unblock(void *arg)
{
    struct server *server = arg;
    if (server->stage == TAKING && server->client != 0)
        answers_unblock(&server->answers, server->client);
}

/* If the wait had not begun when CLIENT UNBLOCK came, asks again. */
static void on_unblocked(void *arg, bool good)
{
    struct server *server = arg;
    if (!good && server->stage == TAKING)
        timers_set(server->source.timers, &server->unblock, UNBLOCK_AGAIN_MS);
}

/* A queue has gone ahead. If all have, a new TW.TAKE is told so. */
static bool on_moved(void *arg, const char *reply)
{
    struct server *server = arg;
    if (trouble_is_ask(reply) && server->source.options->queues > 1) {
        ask_to_unblock(server);
        return false;
    }
    follow(server, reply);
    return true;
}

static void on_answers_broken(void *arg, const char *why)
{
    struct server *server = arg;
    if (!server->following)
        tell_trouble(server, why);
}

static void on_failed(void *arg, const char *why)
{
    fail(arg, why);
}

/* ---- the source ------------------------------------------------------------------------------------------ */

static struct server *of(struct source *source)
{
    return (struct server *)source;
}

static size_t watch(struct source *source, struct pollfd *fds)
{
    struct server *server = of(source);
    size_t count = wire_watch(&server->wire, fds);
    return count + wire_watch(&server->answers.wire, fds + count);
}

/* Returns how many tasks to take now. */
static size_t wanted(const struct server *server)
{
    if (server->stage != RESTING || server->stopping || timers_wait(&server->rest))
        return 0;
    return server->source.events.places(server->source.events.arg);
}

/* The answer to one TW.TAKE makes the next one possible. */
static void turn(struct source *source)
{
    struct server *server = of(source);
    wire_turn(&server->wire);
    for (size_t places; (places = wanted(server)) > 0;) {
        send_take(server, places);
        wire_turn(&server->wire);
    }
    answers_turn(&server->answers);
}

static void touch(struct source *source, struct taken *taken)
{
    if (!taken->not_yours)
        answers_touch(&of(source)->answers, (struct lease *)taken);
}

static void answer(struct source *source, struct taken *taken, enum result result, const char *error)
{
    struct server *server = of(source);
    if (!taken->not_yours) {
        answers_give(&server->answers, (struct lease *)taken, result, error);
        return;
    }
    source->events.settled(source->events.arg, taken, OUTCOME_NOT_YOURS, NULL);
    lease_free((struct lease *)taken);
}

static void stop(struct source *source)
{
    struct server *server = of(source);
    server->stopping = true;
    if (server->stage == TAKING) {
        ask_to_unblock(server);
        return;
    }
    server->stage = AWAY;
    wire_close(&server->wire);
}

static bool at_rest(const struct source *source)
{
    const struct server *server = (const struct server *)source;
    return server->stopping && server->wire.closed && answers_empty(&server->answers);
}

static void tell(const struct source *source, char text[SOURCE_STATUS])
{
    const struct server *server = (const struct server *)source;
    if (*server->trouble == '\0')
        snprintf(text, SOURCE_STATUS, "%s %s", server->told_ready ? "connected to" : "connecting to",
                 server->target.url.text);
    else
        snprintf(text, SOURCE_STATUS, "no connection to %s", server->target.url.text);
}

static bool free_server(struct source *source)
{
    struct server *server = of(source);
    bool good = answers_empty(&server->answers);
    if (!good) {
        screen_hide();
        complain("%s: the results of the last tasks could not be reported: they come again after their leases",
                 COMMAND);
    }
    timers_cancel(source->timers, &server->rest);
    timers_cancel(source->timers, &server->unblock);
    timers_cancel(source->timers, &server->calm);
    wire_close(&server->wire);
    answers_fini(&server->answers);
    free(server->words);
    free(server);
    return good;
}

static void connect_both(struct server *server)
{
    const struct wire_events taking = {
        .opened = on_opened, .reply = on_reply, .broken = on_broken, .refused = on_refused, .arg = server};
    const struct answers_events answering = {.unblocked = on_unblocked,
                                             .moved = on_moved,
                                             .broken = on_answers_broken,
                                             .failed = on_failed,
                                             .arg = server,
                                             .source = &server->source.events};
    const struct source *source = &server->source;
    wire_init(&server->wire, &server->target, source->timers, &taking);
    answers_init(&server->answers, &server->target, source->timers, source->options, &answering);
}

struct source *source_server(const struct work_options *options, struct timers *timers,
                             const struct source_events *events)
{
    static const struct source_kind KIND = {.watch = watch,
                                            .turn = turn,
                                            .touch = touch,
                                            .answer = answer,
                                            .stop = stop,
                                            .at_rest = at_rest,
                                            .tell = tell,
                                            .free = free_server};
    struct server *server = malloc(sizeof *server);
    const char **words = malloc((WORDS_FIXED + options->queues) * sizeof *words);
    if (server == NULL || words == NULL) {
        complain("%s: there is no memory", COMMAND);
        free(server);
        free(words);
        return NULL;
    }
    *server = (struct server){.source = {&KIND, options, timers, *events},
                              .target = options->link.target,
                              .words = words,
                              .calm = {.fire = end_trouble, .arg = server},
                              .unblock = {.fire = ask_to_unblock, .arg = server}};
    server->target.reply_max = REPLY_MAX;
    connect_both(server);
    return &server->source;
}
