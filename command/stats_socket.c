/* SPDX-License-Identifier: MIT
 *
 * One thread serves all clients.
 *
 * - The scheduler never waits for the thread. Reading the statistics holds the scheduler's lock for
 *   microseconds, and happens no more often than the limits below allow, however many clients ask and however
 *   fast.
 * - No client waits for another client. All descriptors are non-blocking. Each client has a buffer for one
 *   answer, and the thread reads the client's next request only after that answer has been sent.
 * - The thread drops a client that does not take its answer for STUCK_NS, or sends no request for SILENT_NS.
 */
#include "stats_socket.h"

#include "clock.h"
#include "json.h"

#include <base/recent.h>
#include <tickwheel/version.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { CLIENTS = 16, REQUEST_MAX = 64, ANSWER_MAX = 8192, SHARE = 10 };
static const uint64_t ms = 1000000, second_ns = 1000000000;
#define FRESH_NS (50 * ms)         /* the same answer is given again for at least so long */
#define REST_NS (100 * ms)         /* pause after accept4() failed */
#define PAUSE_NS (20 * ms)         /* pause between two answers to the same client */
#define STUCK_NS (10 * second_ns)  /* a client has so long to take an answer */
#define SILENT_NS (60 * second_ns) /* a client may be silent for so long */

struct client {
    int fd; /* -1: free */
    char request[REQUEST_MAX];
    size_t asked;
    char answer[ANSWER_MAX];
    size_t sent, size;
    uint64_t since_ns; /* time of the last answer or, before the first answer, of the connection */
    uint64_t ready_ns; /* time from which the next request is read */
    bool ended;        /* close the connection when the answer is sent */
};

static struct {
    const char *path;
    int listener, quit[2];
    dev_t device;
    ino_t inode;
    bool open;
    _Atomic bool started; /* read by the callbacks' threads */
    pthread_t thread;
    const struct tw_sched *sched;
    uint64_t begun_ns, accept_ns;
    struct client client[CLIENTS];
    char text[ANSWER_MAX];
    size_t size;
    uint64_t fresh_until_ns;
} server;

static pthread_mutex_t recent_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tw__recent recent;

/* ---- the statistics -------------------------------------------------------------------------------------- */

void stats_note(uint64_t late_ns)
{
    if (!server.started)
        return;
    pthread_mutex_lock(&recent_lock);
    tw__recent_add(&recent, monotonic_ns() / second_ns, late_ns);
    pthread_mutex_unlock(&recent_lock);
}

const char *const LATE_NAMES[LATE_NUMBERS] = {"calls", "p50", "p90", "p99", "p999", "max"};

static json_t *pack_lateness(const uint64_t late[LATE_NUMBERS])
{
    json_t *object = json_object();
    for (int i = 0; i < LATE_NUMBERS; i++)
        json_object_set_new(object, LATE_NAMES[i], json_number(late[i]));
    return object;
}

static json_t *recent_lateness(void)
{
    uint64_t sum[TW__HISTOGRAM_BUCKETS], most;
    pthread_mutex_lock(&recent_lock);
    uint64_t calls = tw__recent_sum(&recent, monotonic_ns() / second_ns, sum, &most);
    pthread_mutex_unlock(&recent_lock);
    return pack_lateness((uint64_t[]){
        calls, tw__histogram_percentile(sum, 0.5, most), tw__histogram_percentile(sum, 0.9, most),
        tw__histogram_percentile(sum, 0.99, most), tw__histogram_percentile(sum, 0.999, most), most});
}

/* A percentile is up to 3 % too high, so it could exceed the maximum. */
static uint64_t percentile(const struct tw_sched_info *stats, double share)
{
    uint64_t ns = tw_sched_late_percentile(server.sched, share);
    return ns < stats->late_max_ns ? ns : stats->late_max_ns;
}

static json_t *lateness(const struct tw_sched_info *stats)
{
    return pack_lateness((uint64_t[]){stats->fired, stats->late_p50_ns, percentile(stats, 0.9),
                                      stats->late_p99_ns, percentile(stats, 0.999), stats->late_max_ns});
}

static json_t *forecast(void)
{
    uint64_t counts[STATS_STEPS];
    json_t *array = json_array();
    tw_sched_forecast(server.sched, STATS_STEP_NS, STATS_STEPS, counts);
    for (int i = 0; i < STATS_STEPS; i++)
        json_array_append_new(array, json_number(counts[i]));
    return array;
}

static json_t *counts(const struct tw_sched_info *stats)
{
    const struct {
        const char *name;
        uint64_t value;
    } all[] = {{"pending", stats->pending},     {"keys", stats->keys},       {"running", stats->running},
               {"added", stats->added},         {"again", stats->again},     {"fired", stats->fired},
               {"cancelled", stats->cancelled}, {"moved", stats->moved},     {"handed", stats->handed},
               {"refused", stats->refused},     {"skipped", stats->skipped}, {"coalesced", stats->coalesced},
               {"memory", stats->memory}};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        json_object_set_new(object, all[i].name, json_number(all[i].value));
    return object;
}

static json_t *snapshot(void)
{
    struct tw_sched_info stats;
    tw_sched_stats(server.sched, &stats, sizeof stats);
    return json_pack("{s:i, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "tickwheel_stats", STATS_PROTOCOL,
                     "version", TW_VERSION, "pid", (json_int_t)getpid(), "up_ns",
                     json_number(monotonic_ns() - server.begun_ns), "counts", counts(&stats), "late_ns",
                     lateness(&stats), "recent_late_ns", recent_lateness(), "run_max_ns",
                     json_number(stats.run_max_ns), "forecast_step_ns", json_number(STATS_STEP_NS), "forecast",
                     forecast());
}

/* Renews the answer if it is too old. The pause until the next renewal is at least FRESH_NS and SHARE times
 * the duration of this one, so that renewals take at most a tenth of a core. */
static void refresh(void)
{
    uint64_t begun_ns = monotonic_ns();
    if (begun_ns < server.fresh_until_ns)
        return;
    json_t *json = snapshot();
    server.size = json_dumpb(json, server.text, ANSWER_MAX - 1, JSON_COMPACT);
    json_decref(json);
    if (server.size > 0 && server.size < ANSWER_MAX)
        server.text[server.size++] = '\n';
    else
        server.size = 0; /* no memory: the client is dropped, and may connect again */
    uint64_t ended_ns = monotonic_ns(), took_ns = ended_ns - begun_ns;
    server.fresh_until_ns = ended_ns + (took_ns * SHARE > FRESH_NS ? took_ns * SHARE : FRESH_NS);
}

/* ---- clients --------------------------------------------------------------------------------------------- */

static void drop(struct client *client)
{
    close(client->fd);
    client->fd = -1;
}

/* Sends as much of the answer as the socket takes now. */
static void send_answer(struct client *client)
{
    ssize_t n = send(client->fd, client->answer + client->sent, client->size - client->sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        drop(client);
        return;
    }
    client->sent += n > 0 ? (size_t)n : 0;
    if (client->sent == client->size && client->ended)
        drop(client);
}

static void answer(struct client *client, const char *text, size_t size)
{
    memcpy(client->answer, text, size);
    client->size = size;
    client->sent = 0;
    client->since_ns = monotonic_ns();
    client->ready_ns = client->since_ns + PAUSE_NS;
    send_answer(client);
}

static void refuse(struct client *client, const char *why)
{
    char text[160];
    int size = snprintf(text, sizeof text, "{\"tickwheel_stats\":%d,\"error\":\"%s\"}\n", STATS_PROTOCOL, why);
    client->ended = true;
    answer(client, text, (size_t)size);
}

/* Answers the first request, if a whole line of it has been received. */
static void serve_line(struct client *client)
{
    const char *end = memchr(client->request, '\n', client->asked);
    if (end == NULL && client->asked == REQUEST_MAX)
        refuse(client, "expected a line: stats");
    if (end == NULL)
        return;
    size_t size = (size_t)(end + 1 - client->request);
    bool good = size == sizeof STATS_REQUEST - 1 && memcmp(client->request, STATS_REQUEST, size) == 0;
    memmove(client->request, end + 1, client->asked -= size);
    if (!good) {
        refuse(client, "expected a line: stats");
        return;
    }
    refresh();
    if (server.size == 0)
        drop(client);
    else
        answer(client, server.text, server.size);
}

static void receive(struct client *client)
{
    ssize_t n = recv(client->fd, client->request + client->asked, REQUEST_MAX - client->asked, 0);
    if (n > 0)
        client->asked += (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        drop(client);
}

static struct client *free_client(void)
{
    for (int i = 0; i < CLIENTS; i++)
        if (server.client[i].fd < 0)
            return &server.client[i];
    return NULL;
}

static void take_client(void)
{
    int fd = accept4(server.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            server.accept_ns = monotonic_ns() + REST_NS; /* no free descriptor: poll() would return at once */
        return;
    }
    struct client *client = free_client(), extra;
    if (client == NULL)
        client = &extra;
    client->fd = fd;
    client->asked = client->sent = client->size = 0;
    client->since_ns = client->ready_ns = monotonic_ns();
    client->ended = false;
    if (client != &extra)
        return;
    refuse(client, "too many clients, at most 16");
    if (client->fd >= 0)
        drop(client);
}

/* ---- the thread ------------------------------------------------------------------------------------------ */

static bool sending(const struct client *client)
{
    return client->sent < client->size;
}

static bool has_line(const struct client *client)
{
    return memchr(client->request, '\n', client->asked) != NULL;
}

/* The time at which a client is dropped, because it does not take its answer or is silent. */
static uint64_t limit_ns(const struct client *client)
{
    return client->since_ns + (sending(client) ? STUCK_NS : SILENT_NS);
}

/* The time at which a client needs attention even if it sends nothing. */
static uint64_t next_ns(const struct client *client, uint64_t now_ns)
{
    if (!sending(client) && (client->ready_ns > now_ns || has_line(client)))
        return client->ready_ns;
    return limit_ns(client);
}

static short events_of(const struct client *client, uint64_t now_ns)
{
    if (sending(client))
        return POLLOUT;
    return now_ns >= client->ready_ns && client->asked < REQUEST_MAX ? POLLIN : 0;
}

static void serve_client(struct client *client, short events, uint64_t now_ns)
{
    if (sending(client) && (events & POLLOUT))
        send_answer(client);
    else if (events & POLLIN)
        receive(client);
    else if (events & (POLLHUP | POLLERR | POLLNVAL))
        drop(client);
    if (client->fd >= 0 && !sending(client) && now_ns >= client->ready_ns)
        serve_line(client);
    if (client->fd >= 0 && now_ns >= limit_ns(client))
        drop(client);
}

/* Waits until a client, the listener or a time limit needs attention. Returns false when the thread is to
 * end. */
static bool wait_for_work(struct pollfd *fds)
{
    uint64_t now_ns = monotonic_ns(), wake_ns = UINT64_MAX;
    bool deaf = now_ns < server.accept_ns;
    fds[0] = (struct pollfd){.fd = server.quit[0], .events = POLLIN};
    fds[1] = (struct pollfd){.fd = deaf ? -1 : server.listener, .events = POLLIN};
    if (deaf)
        wake_ns = server.accept_ns;
    for (int i = 0; i < CLIENTS; i++) {
        const struct client *client = &server.client[i];
        fds[2 + i] = (struct pollfd){.fd = client->fd, .events = events_of(client, now_ns)};
        if (client->fd >= 0 && next_ns(client, now_ns) < wake_ns)
            wake_ns = next_ns(client, now_ns);
    }
    int timeout = wake_ns == UINT64_MAX ? -1 : wake_ns <= now_ns ? 0 : (int)((wake_ns - now_ns) / ms + 1);
    poll(fds, 2 + CLIENTS, timeout);
    return fds[0].revents == 0;
}

static void *serve(void *arg)
{
    struct pollfd fds[2 + CLIENTS];
    (void)arg;
    while (wait_for_work(fds)) {
        uint64_t now_ns = monotonic_ns();
        for (int i = 0; i < CLIENTS; i++)
            if (fds[2 + i].fd >= 0)
                serve_client(&server.client[i], fds[2 + i].revents, now_ns);
        if (fds[1].revents != 0)
            take_client();
    }
    return NULL;
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

bool stats_take_path(const struct option_row *row)
{
    const char **path = row->to;
    size_t size = strlen(optarg), most = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    *path = optarg;
    if (size > 0 && size <= most)
        return true;
    complain("%s: %s: expected a path of 1 to %zu bytes, found %zu: \"%s\"", row->command, row->name, most,
             size, optarg);
    return false;
}

static bool fail(const char *path, const char *why)
{
    complain("tickwheel run: --stats: %s: %s", path, why);
    return false;
}

/* Tries to connect. Returns 0 if a process listens at the socket, else an errno. */
static int try_socket(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int result = fd < 0 ? -1 : connect(fd, (const struct sockaddr *)address, sizeof *address);
    int error = result < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return error;
}

/* Removes a socket that an ended process has left behind. Returns false, with an error, if the path is in
 * use. */
static bool clear_path(const char *path, const struct sockaddr_un *address)
{
    struct stat found;
    if (lstat(path, &found) != 0)
        return errno == ENOENT || fail(path, strerror(errno));
    if (!S_ISSOCK(found.st_mode))
        return fail(path, "the path is taken by a file that is not a socket; choose another path");
    int error = try_socket(address);
    if (error == EACCES)
        return fail(path, "the path is taken by a socket of another user; choose another path");
    if (error != ECONNREFUSED && error != ENOENT)
        return fail(path, "another process listens at this path; choose another path");
    return unlink(path) == 0 || errno == ENOENT || fail(path, strerror(errno));
}

/* The umask makes the socket accessible to its owner only, from the moment it appears. */
static bool bind_path(const char *path, const struct sockaddr_un *address)
{
    struct stat made;
    mode_t mask = umask(0177);
    int result = bind(server.listener, (const struct sockaddr *)address, sizeof *address);
    int error = errno;
    umask(mask);
    if (result != 0)
        return fail(path, strerror(error));
    if (listen(server.listener, CLIENTS) != 0 || lstat(path, &made) != 0)
        return fail(path, strerror(errno));
    server.device = made.st_dev;
    server.inode = made.st_ino;
    return true;
}

bool stats_open(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path));
    if (!clear_path(path, &address))
        return false;
    for (int i = 0; i < CLIENTS; i++)
        server.client[i].fd = -1;
    server.path = path;
    server.begun_ns = monotonic_ns();
    server.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server.listener < 0 || pipe2(server.quit, O_CLOEXEC) != 0)
        return fail(path, strerror(errno));
    server.open = bind_path(path, &address);
    return server.open;
}

bool stats_start(const struct tw_sched *sched)
{
    sigset_t all, before;
    server.sched = sched;
    sigfillset(&all); /* the thread that reads lines handles the signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&server.thread, NULL, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    server.started = error == 0;
    return server.started || fail(server.path, strerror(error));
}

/* Removes the path if it is still our socket. Another process may have replaced it. */
static void remove_path(void)
{
    struct stat found;
    if (lstat(server.path, &found) == 0 && found.st_dev == server.device && found.st_ino == server.inode)
        unlink(server.path);
}

void stats_close(void)
{
    if (!server.open)
        return;
    remove_path();
    if (server.started) {
        while (write(server.quit[1], "", 1) < 0 && errno == EINTR)
            ;
        pthread_join(server.thread, NULL);
    }
    for (int i = 0; i < CLIENTS; i++)
        if (server.client[i].fd >= 0)
            drop(&server.client[i]);
    close(server.listener);
    close(server.quit[0]);
    close(server.quit[1]);
    server.open = false;
    server.started = false;
}
