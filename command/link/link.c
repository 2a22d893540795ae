/* SPDX-License-Identifier: MIT
 *
 * hiredis formats the commands and parses the replies. stream.c moves the bytes between.
 */
#include "link.h"

#include "clock.h"
#include "sentinel.h"
#include "stream.h"
#include "text.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A chunk has room for a record of TLS, so OpenSSL keeps no bytes that poll() does not see. */
enum { CHUNK = 16384, CHUNKS_AT_ONCE = 64, LOOK_MS = 250, LOGINS = 3 };

enum stage { FINDING, OPENING, TALKING, BROKEN };

struct link {
    const struct link_target *target;
    enum stage stage;
    struct sentinels sentinels; /* FINDING: of URL_SENTINEL, which of its servers is the primary */
    struct stream stream;
    const char *login[LOGINS]; /* AUTH, SELECT and ROLE, as far as their replies are to come */
    size_t logins, login_size; /* the buffer's bytes up to login_size may go before these replies */
    char *out;                 /* output: the bytes from out_at to out_size are to be sent */
    size_t out_at, out_size, out_room;
    redisReader *reader;
    size_t reply_size; /* bytes of the reply that comes in */
    bool asked, heard; /* we, and the server, have sent a byte */
    bool refused;
    char why[LINK_ERROR]; /* of a broken link */
};

/* ---- errors ---------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static int broken(struct link *link, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    vsnprintf(link->why, sizeof link->why, format, words);
    va_end(words);
    link->stage = BROKEN;
    return -1;
}

/* Nothing can be read any more. */
static int broken_off(struct link *link, const char *why)
{
    bool plain = link->target->url.transport == URL_TCP && !link->target->url.tls;
    bool early = link->stream.closed && plain && link->asked && !link->heard;
    return broken(link, "%s%s", why,
                  early ? " before its first answer: if this port has TLS, use rediss://" : "");
}

void link_explain(const struct link_target *target, const char *command, const char *reply,
                  char error[LINK_ERROR])
{
    const char *user = *target->url.user != '\0' ? target->url.user : "default";
    char text[160], name[61];
    text_clean(text, sizeof text, tw_text(reply));
    text_clean(name, sizeof name, tw_text(user));
    if (text_begins(reply, "NOAUTH"))
        snprintf(error, LINK_ERROR,
                 "the server needs a password: set %s (and --user, unless it is the default user)",
                 target->password_variable);
    else if (text_begins(reply, "WRONGPASS") || text_begins(reply, "ERR invalid password"))
        snprintf(error, LINK_ERROR, "the password of user %s is wrong, or there is no such user", name);
    else if (text_begins(reply, "NOPERM"))
        snprintf(error, LINK_ERROR, "user %s has no permission for %s: %s", name, command, text);
    else if (text_begins(reply, "ERR unknown command"))
        snprintf(error, LINK_ERROR,
                 "the server has no %s: its Tickwheel module is older than this command, or not loaded",
                 command);
    else
        snprintf(error, LINK_ERROR, "%s: %s", command, text);
}

/* ---- bytes ----------------------------------------------------------------------------------------------- */

static void flush(struct link *link)
{
    size_t end = link->logins > 0 ? link->login_size : link->out_size;
    int moved = 1;
    while (moved > 0 && link->out_at < end) {
        size_t size = end - link->out_at < CHUNK ? end - link->out_at : CHUNK;
        moved = stream_write(&link->stream, link->out + link->out_at, (int)size);
        link->out_at += (size_t)moved;
        link->asked |= moved > 0;
    }
    if (link->logins == 0 && link->out_at == link->out_size)
        link->out_at = link->out_size = 0;
}

/* Makes room for `size` bytes more. Returns false if there is no memory. */
static bool make_room(struct link *link, size_t size)
{
    if (link->out != NULL && link->out_room - link->out_size >= size)
        return true;
    if (link->out != NULL && link->logins == 0 && link->out_at > 0) {
        memmove(link->out, link->out + link->out_at, link->out_size - link->out_at);
        link->out_size -= link->out_at;
        link->out_at = 0;
    }
    size_t room = (link->out_size + size) * 2;
    char *out = realloc(link->out, room);
    if (out == NULL)
        return false;
    link->out = out;
    link->out_room = room;
    return true;
}

void link_send(struct link *link, int count, const char **words, const size_t *sizes)
{
    char *bytes;
    long long size = redisFormatCommandArgv(&bytes, count, words, sizes);
    if (size < 0 || !make_room(link, (size_t)size)) {
        broken(link, "no memory");
    } else {
        memcpy(link->out + link->out_size, bytes, (size_t)size);
        link->out_size += (size_t)size;
    }
    if (size >= 0)
        redisFreeCommand(bytes);
}

/* ---- replies --------------------------------------------------------------------------------------------- */

/* Takes a reply out of the bytes that have come in. Returns 1 with a reply, 0: it is not whole, -1: broken. */
static int parse(struct link *link, redisReply **reply)
{
    size_t most = link->target->reply_max > 0 ? link->target->reply_max : LINK_REPLY_MAX;
    void *found = NULL;
    if (redisReaderGetReply(link->reader, &found) != REDIS_OK)
        return link->reader->err == REDIS_ERR_OOM
                   ? broken(link, "no memory")
                   : broken(link, "the process at this address is not a Redis server");
    if (found == NULL && link->reply_size > most)
        return broken(link, "the process at this address is not a Redis server (its answer is too long)");
    if (found == NULL)
        return 0;
    link->reply_size = link->reader->len - link->reader->pos; /* bytes of the next one */
    *reply = found;
    return 1;
}

/* Reads until there is a whole reply, or no byte. Returns like parse(). A server that sends without end gets no
 * more than its share: the caller has other things to do. */
static int next_reply(struct link *link, redisReply **reply)
{
    char bytes[CHUNK], error[LINK_ERROR];
    for (int chunks = 0;; chunks++) {
        int found = parse(link, reply);
        if (found != 0)
            return found;
        if (chunks >= CHUNKS_AT_ONCE)
            return 0;
        int size = stream_read(&link->stream, bytes, sizeof bytes, error);
        if (size <= 0)
            return size < 0 ? broken_off(link, error) : 0;
        link->heard = true;
        link->reply_size += (size_t)size;
        if (redisReaderFeed(link->reader, bytes, (size_t)size) != REDIS_OK)
            return broken(link, "no memory");
    }
}

/* ---- opening --------------------------------------------------------------------------------------------- */

static void login(struct link *link, int count, const char **words)
{
    link_send(link, count, words, NULL);
    link->login[link->logins++] = words[0];
    link->login_size = link->out_size;
}

static const char ROLE[] = "ROLE";

static void file_logins(struct link *link)
{
    const struct url *url = &link->target->url;
    char db[16];
    snprintf(db, sizeof db, "%d", url->db);
    if (url->has_password && *url->user != '\0')
        login(link, 3, (const char *[]){"AUTH", url->user, url->password});
    else if (url->has_password)
        login(link, 2, (const char *[]){"AUTH", url->password});
    if (url->db != 0)
        login(link, 2, (const char *[]){"SELECT", db});
    if (url->transport == URL_SENTINEL)
        login(link, 1, (const char *[]){ROLE});
}

static bool begin(struct link *link, char error[LINK_ERROR])
{
    if (link->target->url.transport != URL_SENTINEL)
        return stream_begin(&link->stream, link->target, &link->target->url, error);
    link->stage = FINDING;
    return sentinels_begin(&link->sentinels, link->target, error);
}

struct link *link_begin(const struct link_target *target, char error[LINK_ERROR])
{
    struct link *link = malloc(sizeof *link);
    snprintf(error, LINK_ERROR, "no memory");
    if (link == NULL)
        return NULL;
    *link = (struct link){
        .target = target, .stage = OPENING, .stream = {.dial = {.fd = -1}}, .reader = redisReaderCreate()};
    file_logins(link);
    if (link->reader != NULL && link->stage != BROKEN && begin(link, error))
        return link;
    link_close(link);
    return NULL;
}

void link_close(struct link *link)
{
    if (link == NULL)
        return;
    sentinels_end(&link->sentinels);
    stream_end(&link->stream);
    if (link->reader != NULL)
        redisReaderFree(link->reader);
    free(link->out);
    free(link);
}

/* The server cannot be reached. A user does not know the address that a sentinel has named. */
static int not_connected(struct link *link, const char *error)
{
    const struct url *place = &link->sentinels.place;
    if (link->target->url.transport != URL_SENTINEL)
        return broken(link, "%s", error);
    return broken(link, "%s:%d, which a sentinel names: %s", place->host, place->port, error);
}

static int find_on(struct link *link)
{
    char error[LINK_ERROR];
    int found = sentinels_step(&link->sentinels, error);
    if (found < 0)
        return broken(link, "%s", error);
    if (found > 0 && !stream_begin(&link->stream, link->target, &link->sentinels.place, error))
        return not_connected(link, error);
    if (found > 0)
        link->stage = OPENING;
    return found;
}

static int open_stream(struct link *link)
{
    char error[LINK_ERROR];
    int found = stream_step(&link->stream, error);
    if (found < 0)
        return not_connected(link, error);
    if (found > 0)
        link->stage = TALKING;
    return found;
}

/* Returns whether the server may accept the same login some time later. */
static bool for_a_while(const char *reply)
{
    return text_begins(reply, "LOADING") || text_begins(reply, "BUSY") ||
           text_begins(reply, "ERR max number of clients");
}

/* Returns whether a reply of ROLE is that of a primary. */
static bool is_primary(const redisReply *reply, char error[LINK_ERROR])
{
    const redisReply *role =
        reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 ? reply->element[0] : reply;
    char name[40] = "";
    if (role->type == REDIS_REPLY_STRING)
        text_clean(name, sizeof name, tw_text(role->str));
    snprintf(error, LINK_ERROR, "the server is no primary: its role is '%s'", name);
    return strcmp(name, "master") == 0;
}

/* Takes the reply of AUTH, SELECT or ROLE. Returns 1: we may go on, -1: the server has refused us, or is not
 * the right one. */
static int take_login(struct link *link, redisReply *reply)
{
    char error[LINK_ERROR];
    bool good = reply->type != REDIS_REPLY_ERROR;
    if (!good) {
        link->refused = !for_a_while(reply->str);
        link_explain(link->target, link->login[0], reply->str, error);
    } else if (link->login[0] == ROLE) {
        good = is_primary(reply, error);
    }
    freeReplyObject(reply);
    link->logins--;
    memmove(link->login, link->login + 1, link->logins * sizeof link->login[0]);
    return good ? 1 : broken(link, "%s", error);
}

/* Goes on with opening the link. Returns 1: it is open, 0: not yet, -1: broken. */
static int open_on(struct link *link)
{
    int found = 1;
    redisReply *reply = NULL;
    if (link->stage == FINDING)
        found = find_on(link);
    if (found > 0 && link->stage == OPENING)
        found = open_stream(link);
    while (found > 0 && link->stage == TALKING && link->logins > 0) {
        flush(link);
        found = next_reply(link, &reply);
        if (found > 0 && reply != NULL)
            found = take_login(link, reply);
    }
    return link->stage == BROKEN ? -1 : found;
}

int link_pump(struct link *link, redisReply **reply, char error[LINK_ERROR])
{
    int found = open_on(link);
    *reply = NULL;
    if (found > 0) {
        flush(link);
        found = next_reply(link, reply);
    }
    if (found < 0)
        memcpy(error, link->why, LINK_ERROR);
    return found;
}

/* ---- waiting --------------------------------------------------------------------------------------------- */

bool link_is_open(const struct link *link)
{
    return link->stage == TALKING && link->logins == 0;
}

bool link_was_closed(const struct link *link)
{
    return link->stream.closed;
}

bool link_was_refused(const struct link *link)
{
    return link->refused;
}

int link_fd(const struct link *link)
{
    return link->stage == FINDING ? sentinels_fd(&link->sentinels) : link->stream.dial.fd;
}

short link_events(const struct link *link)
{
    size_t end = link->logins > 0 ? link->login_size : link->out_size;
    if (link->stage == FINDING)
        return sentinels_events(&link->sentinels);
    return stream_events(&link->stream, link->out_at < end);
}

/* It may have to turn to another address or sentinel. */
static bool is_connecting(const struct link *link)
{
    return link->stage <= OPENING && !link->stream.connected;
}

/* The wait has ended. */
static int waited_in_vain(struct link *link, int patience_ms)
{
    const char *of = is_connecting(link)      ? "cannot connect: there was no answer"
                     : link->stage == OPENING ? "there was no TLS handshake (has this port TLS?)"
                                              : "there was no answer";
    if (patience_ms % 1000 == 0)
        return broken(link, "%s for %d s", of, patience_ms / 1000);
    return broken(link, "%s for %d ms", of, patience_ms);
}

/* Waits until the link can move bytes. While it connects, it looks from time to time whether to try another
 * address, or sentinel. Returns false if the time is up; the link is then broken. */
static bool wait_until(struct link *link, uint64_t end_ms, int patience_ms)
{
    uint64_t now_ms = monotonic_ms();
    if (now_ms >= end_ms) {
        waited_in_vain(link, patience_ms);
        return false;
    }
    int left_ms = (int)(end_ms - now_ms);
    struct pollfd waiting = {.fd = link_fd(link), .events = link_events(link)};
    poll(&waiting, 1, is_connecting(link) && left_ms > LOOK_MS ? LOOK_MS : left_ms);
    return true;
}

struct link *link_open(const struct link_target *target, int patience_ms, char error[LINK_ERROR])
{
    uint64_t end_ms = monotonic_ms() + (uint64_t)patience_ms;
    struct link *link = link_begin(target, error);
    if (link == NULL)
        return NULL;
    while (open_on(link) == 0 && wait_until(link, end_ms, patience_ms))
        ;
    if (link_is_open(link))
        return link;
    memcpy(error, link->why, LINK_ERROR);
    link_close(link);
    return NULL;
}

redisReply *link_receive(struct link *link, int patience_ms, char error[LINK_ERROR])
{
    uint64_t end_ms = monotonic_ms() + (uint64_t)patience_ms;
    redisReply *reply = NULL;
    while (link_pump(link, &reply, error) == 0)
        if (!wait_until(link, end_ms, patience_ms))
            memcpy(error, link->why, LINK_ERROR); /* the next step ends it */
    return reply;
}
