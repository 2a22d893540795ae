/* SPDX-License-Identifier: MIT */
#include "sentinel.h"

#include "clock.h"
#include "command.h"
#include "text.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_MS = 2400, ONE_MS = 1000, CHUNK = 4096, ANSWER_MAX = 65536, PORT_MAX = 65535, NAMED = 100 };

/* Notes why a sentinel cannot help. */
__attribute__((format(printf, 2, 3))) static int useless(struct sentinels *sentinels, const char *format, ...)
{
    const struct url *place = &sentinels->place;
    bool six = strchr(place->host, ':') != NULL;
    char text[LINK_ERROR - 2 * NAMED];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    snprintf(sentinels->why, sizeof sentinels->why, "the sentinel %s%.*s%s:%d%s", six ? "[" : "", NAMED,
             place->host, six ? "]" : "", place->port, text);
    return -1;
}

/* ---- the answer ------------------------------------------------------------------------------------------ */

/* Takes the address that a sentinel names: host and port. Returns whether it is one. */
static bool take_place(struct url *place, const redisReply *host, const redisReply *port)
{
    uint64_t number;
    if (host->type != REDIS_REPLY_STRING || port->type != REDIS_REPLY_STRING || host->len < 1 ||
        host->len >= URL_HOST || !number_parse(port->str, PORT_MAX, &number) || number == 0)
        return false;
    text_clean(place->host, sizeof place->host, (struct tw_bytes){host->str, (size_t)host->len});
    place->port = (int)number;
    return true;
}

static int take_answer(struct sentinels *sentinels, const redisReply *reply)
{
    char text[160];
    if (reply->type == REDIS_REPLY_ERROR) {
        text_clean(text, sizeof text, tw_text(reply->str));
        return useless(sentinels, ": %s", text);
    }
    if (--sentinels->answers > 0)
        return 0;
    if (reply->type == REDIS_REPLY_NIL)
        return useless(sentinels, " does not know the service");
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
        take_place(&sentinels->place, reply->element[0], reply->element[1]))
        return 1;
    return useless(sentinels, " has not replied with host and port");
}

/* Takes the replies out of the bytes that have come in. Returns as sentinels_step(). */
static int take_answers(struct sentinels *sentinels)
{
    int found = 0;
    void *reply = NULL;
    do {
        if (redisReaderGetReply(sentinels->reader, &reply) != REDIS_OK || sentinels->reader->len > ANSWER_MAX)
            return useless(sentinels, " is not a Redis server");
        if (reply != NULL) {
            found = take_answer(sentinels, reply);
            freeReplyObject(reply);
        }
    } while (reply != NULL && found == 0);
    return found;
}

/* ---- bytes ----------------------------------------------------------------------------------------------- */

static int talk(struct sentinels *sentinels)
{
    char bytes[CHUNK], error[LINK_ERROR];
    for (int moved = 1; moved > 0 && sentinels->out_at < sentinels->out_size;) {
        moved = stream_write(&sentinels->stream, sentinels->out + sentinels->out_at,
                             (int)(sentinels->out_size - sentinels->out_at));
        sentinels->out_at += (size_t)moved;
    }
    for (;;) {
        int size = stream_read(&sentinels->stream, bytes, sizeof bytes, error);
        if (size <= 0)
            return size < 0 ? useless(sentinels, ": %s", error) : 0;
        if (redisReaderFeed(sentinels->reader, bytes, (size_t)size) != REDIS_OK)
            return useless(sentinels, ": no memory");
        int found = take_answers(sentinels);
        if (found != 0)
            return found;
    }
}

/* ---- one sentinel after the other ------------------------------------------------------------------------ */

static void leave(struct sentinels *sentinels)
{
    stream_end(&sentinels->stream);
    if (sentinels->reader != NULL)
        redisReaderFree(sentinels->reader);
    sentinels->reader = NULL;
}

/* Turns to the sentinel at `at`. Returns whether a connection has begun. */
static bool turn_to(struct sentinels *sentinels)
{
    const struct url_place *place = &sentinels->target->url.sentinel[sentinels->at];
    char error[LINK_ERROR];
    snprintf(sentinels->place.host, sizeof sentinels->place.host, "%s", place->host);
    sentinels->place.port = place->port;
    sentinels->since_ms = monotonic_ms();
    sentinels->out_at = 0;
    sentinels->answers = sentinels->target->sentinel_password != NULL ? 2 : 1;
    sentinels->reader = redisReaderCreate();
    if (sentinels->reader == NULL) {
        useless(sentinels, ": no memory");
        return false;
    }
    if (stream_begin(&sentinels->stream, sentinels->target, &sentinels->place, error))
        return true;
    useless(sentinels, ": %s", error);
    return false;
}

/* Turns to the first sentinel from `at` on with which a connection begins. Returns 0, or -1: there is none. */
static int turn_on(struct sentinels *sentinels, char error[LINK_ERROR])
{
    const struct url *url = &sentinels->target->url;
    for (; sentinels->at < url->sentinels; sentinels->at++) {
        if (turn_to(sentinels))
            return 0;
        leave(sentinels);
    }
    snprintf(error, LINK_ERROR, "no primary of the service '%.*s' was found: %.*s", NAMED, url->service,
             LINK_ERROR - 2 * NAMED, sentinels->why);
    return -1;
}

static int ask(struct sentinels *sentinels)
{
    char error[LINK_ERROR];
    uint64_t share_ms = (uint64_t)(ALL_MS / sentinels->target->url.sentinels);
    int found = stream_step(&sentinels->stream, error);
    if (found < 0)
        return useless(sentinels, ": %s", error);
    if (found > 0)
        found = talk(sentinels);
    if (found == 0 && monotonic_ms() - sentinels->since_ms >= (share_ms < ONE_MS ? share_ms : ONE_MS))
        return useless(sentinels, ": there was no answer");
    return found;
}

int sentinels_step(struct sentinels *sentinels, char error[LINK_ERROR])
{
    int found = ask(sentinels);
    if (found >= 0)
        return found;
    leave(sentinels);
    sentinels->at++;
    return turn_on(sentinels, error);
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

/* Writes the question, behind the password that the sentinels may want. Returns false if there is no memory. */
static bool write_question(struct sentinels *sentinels)
{
    const char *password = sentinels->target->sentinel_password, *service = sentinels->target->url.service;
    char *login = NULL, *question = NULL;
    int before = password != NULL ? redisFormatCommand(&login, "AUTH %s", password) : 0;
    int behind = redisFormatCommand(&question, "SENTINEL GET-MASTER-ADDR-BY-NAME %s", service);
    if (before >= 0 && behind > 0) {
        size_t login_size = (size_t)before, size = (size_t)behind;
        sentinels->out = malloc(login_size + size);
        if (sentinels->out != NULL) {
            memcpy(sentinels->out, login != NULL ? login : "", login_size);
            memcpy(sentinels->out + login_size, question, size);
            sentinels->out_size = login_size + size;
        }
    }
    redisFreeCommand(login);
    redisFreeCommand(question);
    return sentinels->out != NULL;
}

bool sentinels_begin(struct sentinels *sentinels, const struct link_target *target, char error[LINK_ERROR])
{
    *sentinels =
        (struct sentinels){.target = target, .stream = {.dial = {.fd = -1}}, .place = {.transport = URL_TCP}};
    if (write_question(sentinels))
        return turn_on(sentinels, error) == 0;
    snprintf(error, LINK_ERROR, "no memory");
    return false;
}

int sentinels_fd(const struct sentinels *sentinels)
{
    return sentinels->stream.dial.fd;
}

short sentinels_events(const struct sentinels *sentinels)
{
    return stream_events(&sentinels->stream, sentinels->out_at < sentinels->out_size);
}

void sentinels_end(struct sentinels *sentinels)
{
    if (sentinels->target == NULL)
        return;
    leave(sentinels);
    free(sentinels->out);
    sentinels->target = NULL;
}
