/* SPDX-License-Identifier: MIT
 *
 * Reads a Redis server with the module: by INFO and TW.TOP or, for one queue, by INFO, TW.FORECAST and
 * TW.INFO. All waits are bounded. After any error the connection is closed, so that the next reading starts
 * with a new one.
 */
#include "clock.h"
#include "feed.h"
#include "info.h"
#include "link/link.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = FEED_PATIENCE_S * 1000 };

struct redis_feed {
    struct feed feed;
    const struct top_options *options;
    struct link *link; /* NULL: not connected */
    redisReply *top;   /* the last reply to TW.TOP, in which the names of the reading are; NULL: none */
};

/* One attempt to read: the feed, the reading to fill, and the text of the error. */
struct attempt {
    struct redis_feed *feed;
    struct reading *reading;
    char *error;
};

static const struct link_target *target_of(const struct attempt *attempt)
{
    return &attempt->feed->options->link.target;
}

__attribute__((format(printf, 2, 3))) static bool fail(const struct attempt *attempt, const char *format, ...)
{
    va_list words;
    int at = snprintf(attempt->error, FEED_ERROR, "%.120s: ", target_of(attempt)->url.text);
    va_start(words, format);
    vsnprintf(attempt->error + at, FEED_ERROR - (size_t)at, format, words);
    va_end(words);
    return false;
}

/* ---- answers --------------------------------------------------------------------------------------------- */

/* Takes the next answer of the pipeline. The time limit is for the whole answer, so parts that arrive slowly
 * do not extend it. Returns NULL, after the error text is set, if there is none or it is an error reply. */
static redisReply *next_answer(const struct attempt *attempt, const char *command)
{
    char error[LINK_ERROR];
    redisReply *reply = link_receive(attempt->feed->link, PATIENCE_MS, error);
    if (reply != NULL && reply->type != REDIS_REPLY_ERROR)
        return reply;
    if (reply != NULL)
        link_explain(target_of(attempt), command, reply->str, error);
    fail(attempt, "%s", error);
    freeReplyObject(reply);
    return NULL;
}

static void send_words(const struct attempt *attempt, int count, const char **words)
{
    link_send(attempt->feed->link, count, words, NULL);
}

static const redisReply *element(const redisReply *reply, size_t i, int type)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || i >= reply->elements)
        return NULL;
    return reply->element[i]->type == type ? reply->element[i] : NULL;
}

/* Returns the value of a name in a map, which RESP2 sends as an array of names and values. */
static const redisReply *value_of(const redisReply *map, const char *name, int type)
{
    for (size_t i = 0; map != NULL && map->type == REDIS_REPLY_ARRAY && i + 1 < map->elements; i += 2)
        if (map->element[i]->type == REDIS_REPLY_STRING && strcmp(map->element[i]->str, name) == 0)
            return element(map, i + 1, type);
    return NULL;
}

static uint64_t number(const redisReply *reply)
{
    return reply != NULL && reply->integer >= 0 ? (uint64_t)reply->integer : ABSENT;
}

static uint64_t number_of(const redisReply *map, const char *name)
{
    return number(value_of(map, name, REDIS_REPLY_INTEGER));
}

/* ---- connecting ------------------------------------------------------------------------------------------ */

static void disconnect(struct redis_feed *feed)
{
    link_close(feed->link);
    feed->link = NULL;
}

static bool open_connection(const struct attempt *attempt)
{
    char error[LINK_ERROR];
    attempt->feed->link = link_open(target_of(attempt), PATIENCE_MS, error);
    return attempt->feed->link != NULL || fail(attempt, "%s", error);
}

/* ---- INFO, TW.TOP, TW.FORECAST, TW.INFO ---------------------------------------------------------------- */

static bool take_info(const struct attempt *attempt)
{
    redisReply *reply = next_answer(attempt, "INFO");
    if (reply == NULL)
        return false;
    bool has_module = info_read(reply->type == REDIS_REPLY_STRING ? reply->str : "", attempt->reading);
    freeReplyObject(reply);
    return has_module ||
           fail(attempt, "the server has not loaded the Tickwheel module (loadmodule tickwheel.so)");
}

static bool take_forecast(const struct attempt *attempt, const redisReply *array)
{
    for (size_t i = 0; i < READING_STEPS; i++) {
        uint64_t count = number(element(array, i, REDIS_REPLY_INTEGER));
        if (count == ABSENT)
            return fail(attempt, "the answer is not a forecast of %d steps", READING_STEPS);
        attempt->reading->forecast[i] = count;
    }
    return true;
}

static void take_recent(const redisReply *map, uint64_t recent[LATE_NUMBERS])
{
    recent[LATE_CALLS] = number_of(map, LATE_NAMES[LATE_CALLS]);
    for (int i = LATE_P50; i < LATE_NUMBERS; i++)
        recent[i] = reading_ns_of_us(number_of(map, LATE_NAMES[i]));
}

/* Reads one queue of the list. Returns false if it has not the form of one. */
static bool take_queue(const redisReply *one, struct queue_seen *seen)
{
    const redisReply *name = element(one, 1, REDIS_REPLY_STRING);
    if (name == NULL || one->elements < 11)
        return false;
    reading_name(seen, (struct tw_bytes){name->str, (size_t)name->len});
    seen->db = number(element(one, 0, REDIS_REPLY_INTEGER));
    seen->tasks = number(element(one, 2, REDIS_REPLY_INTEGER));
    seen->held = number(element(one, 3, REDIS_REPLY_INTEGER));
    seen->delivered = number(element(one, 4, REDIS_REPLY_INTEGER));
    seen->done = number(element(one, 5, REDIS_REPLY_INTEGER));
    seen->died = number(element(one, 6, REDIS_REPLY_INTEGER));
    seen->ready = number(element(one, 7, REDIS_REPLY_INTEGER));
    seen->leased = number(element(one, 8, REDIS_REPLY_INTEGER));
    seen->dead = number(element(one, 9, REDIS_REPLY_INTEGER));
    seen->paused = number(element(one, 10, REDIS_REPLY_INTEGER)) == 1;
    return true;
}

/* Reads a list of queues. Returns how many. */
static size_t take_queues(const redisReply *list, struct queue_seen seen[READING_QUEUES])
{
    const redisReply *one;
    size_t count = 0;
    for (size_t i = 0; i < READING_QUEUES && (one = element(list, i, REDIS_REPLY_ARRAY)) != NULL; i++)
        count += take_queue(one, &seen[count]);
    return count;
}

static bool take_top(const struct attempt *attempt)
{
    struct reading *reading = attempt->reading;
    redisReply *reply = next_answer(attempt, "TW.TOP");
    if (reply == NULL)
        return false;
    freeReplyObject(attempt->feed->top);
    attempt->feed->top = reply;
    const redisReply *paused = value_of(reply, "paused-queues", REDIS_REPLY_ARRAY);
    bool good = take_forecast(attempt, value_of(reply, "forecast", REDIS_REPLY_ARRAY));
    reading->exact = number_of(reply, "exact") == 1;
    take_recent(value_of(reply, "recent", REDIS_REPLY_ARRAY), reading->recent);
    reading->queues = take_queues(value_of(reply, "queues", REDIS_REPLY_ARRAY), reading->seen);
    reading->pauses = take_queues(paused, reading->paused);
    reading->tells_pauses = paused != NULL;
    return good;
}

static bool take_one_forecast(const struct attempt *attempt)
{
    redisReply *reply = next_answer(attempt, "TW.FORECAST");
    bool good = reply != NULL && take_forecast(attempt, reply);
    attempt->reading->exact = true;
    if (reply != NULL)
        freeReplyObject(reply);
    return good;
}

static void take_numbers(const redisReply *map, struct queue_seen *seen)
{
    seen->tasks = number_of(map, "tasks");
    seen->held = number_of(map, "held");
    seen->delivered = number_of(map, "delivered");
    seen->done = number_of(map, "done");
    seen->died = number_of(map, "died");
    seen->ready = number_of(map, "ready");
    seen->leased = number_of(map, "leased");
    seen->dead = number_of(map, "dead");
    seen->paused = number_of(map, "paused") == 1;
}

/* Reads TW.INFO of one queue. A queue that does not exist counts as empty, because it may be made later. */
static bool take_one_info(const struct attempt *attempt)
{
    struct queue_seen *seen = &attempt->reading->seen[0];
    const char *name = attempt->feed->options->queue;
    redisReply *reply = next_answer(attempt, "TW.INFO");
    bool absent = reply == NULL && strstr(attempt->error, "no such key") != NULL;
    if (reply == NULL && !absent)
        return false;
    reading_name(seen, tw_text(name));
    seen->db = (uint64_t)target_of(attempt)->url.db;
    if (!absent)
        take_numbers(reply, seen);
    attempt->reading->queues = 1;
    if (reply != NULL)
        freeReplyObject(reply);
    return true;
}

/* ---- the feed -------------------------------------------------------------------------------------------- */

/* Sends all commands before it waits for the first answer. */
static bool ask(const struct attempt *attempt)
{
    const char *queue = attempt->feed->options->queue;
    send_words(attempt, 5, (const char *[]){"INFO", "server", "replication", "cluster", "tickwheel"});
    if (queue == NULL) {
        send_words(attempt, 3, (const char *[]){"TW.TOP", "QUEUES", "20"});
        return take_info(attempt) && take_top(attempt);
    }
    send_words(attempt, 2, (const char *[]){"TW.FORECAST", queue});
    send_words(attempt, 2, (const char *[]){"TW.INFO", queue});
    return take_info(attempt) && take_one_forecast(attempt) && take_one_info(attempt);
}

static bool try_once(const struct attempt *attempt)
{
    struct redis_feed *feed = attempt->feed;
    reading_init(attempt->reading, "redis", target_of(attempt)->url.text, feed->options->queue);
    return (feed->link != NULL || open_connection(attempt)) && ask(attempt);
}

static bool read_redis(struct feed *base, struct reading *reading, char error[FEED_ERROR])
{
    struct redis_feed *feed = (struct redis_feed *)base;
    const struct attempt attempt = {feed, reading, error};
    bool old = feed->link != NULL, good = try_once(&attempt);
    if (!good && old && link_was_closed(feed->link)) { /* the server was restarted, or we were idle for long */
        disconnect(feed);
        good = try_once(&attempt);
    }
    reading->at_ns = monotonic_ns();
    if (!good)
        disconnect(feed);
    return good;
}

static void free_redis(struct feed *base)
{
    struct redis_feed *feed = (struct redis_feed *)base;
    disconnect(feed);
    freeReplyObject(feed->top);
    free(feed);
}

struct feed *feed_redis(const struct top_options *options)
{
    struct redis_feed *feed = malloc(sizeof *feed);
    if (feed == NULL)
        return NULL;
    *feed = (struct redis_feed){{read_redis, free_redis}, options, NULL, NULL};
    return &feed->feed;
}
