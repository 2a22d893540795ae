/* SPDX-License-Identifier: MIT
 *
 * Reads the scheduler of a `tickwheel run --stats PATH` by its socket. The answers are checked, because
 * another process may listen at the path.
 */
#include "clock.h"
#include "feed.h"
#include "stats_socket.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANSWER_MAX = 16384 };

struct sched_feed {
    struct feed feed;
    const char *path;
    int fd; /* -1: not connected */
    size_t size;
    char answer[ANSWER_MAX];
};

static bool fail(char *error, const char *path, const char *why)
{
    snprintf(error, FEED_ERROR, "%.120s: %s", path, why);
    return false;
}

/* ---- connecting ------------------------------------------------------------------------------------------ */

static const char *why_not(int error)
{
    switch (error) {
    case ENOENT:
        return "there is no such socket; is `tickwheel run --stats` with this path running?";
    case ECONNREFUSED:
        return "no process listens at this socket any more; start `tickwheel run --stats` with this path again";
    case EACCES:
        return "permission denied: only the owner may open the socket";
    case EAGAIN:
        return "too many clients wait for a connection; try again later";
    default:
        return strerror(error);
    }
}

static void close_socket(struct sched_feed *feed)
{
    if (feed->fd >= 0)
        close(feed->fd);
    feed->fd = -1;
}

static bool open_socket(struct sched_feed *feed, char *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat found;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", feed->path);
    if (stat(feed->path, &found) == 0 && !S_ISSOCK(found.st_mode))
        return fail(error, feed->path, "is not a socket");
    feed->size = 0;
    feed->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (feed->fd >= 0 && connect(feed->fd, (struct sockaddr *)&address, sizeof address) == 0)
        return true;
    int why = errno;
    close_socket(feed);
    return fail(error, feed->path, why_not(why));
}

/* ---- asking ---------------------------------------------------------------------------------------------- */

enum got { GOT_LINE, GOT_END, GOT_NOTHING, GOT_TOO_MUCH };

/* Receives a line. Waits at most FEED_PATIENCE_S seconds. */
static enum got receive(struct sched_feed *feed)
{
    uint64_t end_ns = monotonic_ns() + FEED_PATIENCE_S * UINT64_C(1000000000), now_ns;
    while ((now_ns = monotonic_ns()) < end_ns) {
        struct pollfd fd = {.fd = feed->fd, .events = POLLIN};
        if (poll(&fd, 1, (int)((end_ns - now_ns) / 1000000 + 1)) <= 0)
            continue;
        ssize_t n = recv(feed->fd, feed->answer + feed->size, ANSWER_MAX - feed->size, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return GOT_END;
        feed->size += n > 0 ? (size_t)n : 0;
        if (feed->size > 0 && feed->answer[feed->size - 1] == '\n')
            return GOT_LINE;
        if (feed->size == ANSWER_MAX)
            return GOT_TOO_MUCH;
    }
    return GOT_NOTHING;
}

static enum got ask(struct sched_feed *feed)
{
    feed->size = 0;
    (void)!send(feed->fd, STATS_REQUEST, sizeof STATS_REQUEST - 1, MSG_NOSIGNAL);
    return receive(feed); /* even if sending failed: a client that is not let in receives the reason */
}

/* Asks on the existing connection. If the other side has closed it, which it does to clients that were silent
 * for long, asks on a new connection. */
static bool ask_anyhow(struct sched_feed *feed, char *error)
{
    enum got got = GOT_END;
    if (feed->fd >= 0)
        got = ask(feed);
    if (got == GOT_END) {
        close_socket(feed);
        if (!open_socket(feed, error))
            return false;
        got = ask(feed);
    }
    if (got == GOT_LINE)
        return true;
    close_socket(feed);
    return fail(error, feed->path,
                got == GOT_END ? "the connection was closed without an answer"
                : got == GOT_NOTHING
                    ? "there was no answer for 3 s"
                    : "the process at this path is not `tickwheel run` (its answer is too long)");
}

/* ---- understanding --------------------------------------------------------------------------------------- */

static void take_number(const json_t *object, const char *name, uint64_t *number)
{
    const json_t *value = json_object_get(object, name);
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        *number = (uint64_t)json_integer_value(value);
}

static void take_lateness(const json_t *object, uint64_t late[LATE_NUMBERS])
{
    for (int i = 0; i < LATE_NUMBERS; i++)
        take_number(object, LATE_NAMES[i], &late[i]);
}

/* Takes the forecast. Returns false if it does not have READING_STEPS steps of a second. */
static bool take_forecast(const json_t *root, struct reading *reading)
{
    const json_t *array = json_object_get(root, "forecast");
    uint64_t step_ns = 0;
    take_number(root, "forecast_step_ns", &step_ns);
    if (json_array_size(array) != READING_STEPS || step_ns != STATS_STEP_NS)
        return false;
    for (size_t i = 0; i < READING_STEPS; i++)
        reading->forecast[i] = (uint64_t)json_integer_value(json_array_get(array, i));
    reading->exact = true;
    return true;
}

static void take_all(const json_t *root, struct reading *reading)
{
    uint64_t up_ns = 0, pid = 0;
    const char *version = json_string_value(json_object_get(root, "version"));
    char number[16] = "";
    if (version != NULL)
        text_clean(number, sizeof number, tw_text(version));
    snprintf(reading->version, sizeof reading->version, "tickwheel %s", number);
    take_number(root, "up_ns", &up_ns);
    take_number(root, "pid", &pid);
    reading->instance = pid;
    reading->at_ns = up_ns; /* an answer that is given again has the same time again */
    reading->up_s = up_ns / 1000000000;
    snprintf(reading->state, sizeof reading->state, "process %" PRIu64, pid);
    for (int i = 0; i < COUNTS; i++)
        take_number(json_object_get(root, "counts"), COUNT_NAMES[i], &reading->count[i]);
    take_lateness(json_object_get(root, "late_ns"), reading->all);
    take_lateness(json_object_get(root, "recent_late_ns"), reading->recent);
}

static bool refused(char *error, const char *path, const char *why)
{
    char text[120], clean[100];
    text_clean(clean, sizeof clean, tw_text(why));
    snprintf(text, sizeof text, "it refused: %s", clean);
    return fail(error, path, text);
}

static bool understand(const struct sched_feed *feed, const json_t *root, struct reading *reading, char *error)
{
    const json_t *protocol = json_object_get(root, "tickwheel_stats"), *why = json_object_get(root, "error");
    char text[120];
    if (!json_is_integer(protocol))
        return fail(error, feed->path, "the process at this path is not `tickwheel run`");
    if (json_integer_value(protocol) != STATS_PROTOCOL) {
        snprintf(text, sizeof text, "it uses version %lld of the protocol, but this tickwheel needs version %d",
                 (long long)json_integer_value(protocol), STATS_PROTOCOL);
        return fail(error, feed->path, text);
    }
    if (json_is_string(why))
        return refused(error, feed->path, json_string_value(why));
    take_all(root, reading);
    if (reading->count[COUNT_PENDING] == ABSENT || !take_forecast(root, reading))
        return fail(error, feed->path, "the answer is not complete");
    return true;
}

/* ---- the feed -------------------------------------------------------------------------------------------- */

static bool read_sched(struct feed *base, struct reading *reading, char error[FEED_ERROR])
{
    struct sched_feed *feed = (struct sched_feed *)base;
    reading_init(reading, "scheduler", feed->path, NULL);
    if (!ask_anyhow(feed, error))
        return false;
    json_t *root = json_loadb(feed->answer, feed->size, 0, NULL);
    bool good = understand(feed, root, reading, error);
    json_decref(root);
    if (!good)
        close_socket(feed);
    return good;
}

static void free_sched(struct feed *base)
{
    close_socket((struct sched_feed *)base);
    free(base);
}

struct feed *feed_sched(const struct top_options *options)
{
    struct sched_feed *feed = malloc(sizeof *feed);
    if (feed == NULL)
        return NULL;
    feed->feed = (struct feed){read_sched, free_sched};
    feed->path = options->stats;
    feed->fd = -1;
    return &feed->feed;
}
