/* SPDX-License-Identifier: MIT
 *
 * A TCP server that sends back each byte it receives, and closes connections that have been idle for too
 * long: epoll, one thread, one timer in each connection.
 *
 *     echo-server [--listen ADDRESS] [--port N] [--idle SECONDS] [--max N] [--quiet]
 *
 * Bytes that arrive push the connection's timer back, with two stores and no system call. The server reads
 * the clock once in each event-loop iteration, after it has read all sockets. So no timer counts from
 * before its bytes arrived.
 *
 * The server reads a connection only when it has sent back all of the connection's bytes. So a peer that does
 * not take its output stops its own input, and in the end is idle. At the end of input no byte is left to
 * send.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <tickwheel/loop_epoll.h>
#include <unistd.h>

enum { BUFFER = 16384, EVENTS = 256, ACCEPTS = 64 };
static const double ns_per_s = 1e9;
static const uint64_t retry_ns = TW_MS(100); /* after there were no descriptors left */

struct connection {
    struct tw_timer idle;
    int fd;
    uint64_t heard_ns; /* the time of the latest bytes; only to check the timer */
    unsigned long long number, bytes;
    size_t begin, end; /* the bytes in between are still to be sent back */
    char buffer[BUFFER];
};

static struct {
    const char *address;
    char port[8];
    uint64_t idle_ns;
    size_t most;
    bool quiet;
} options = {"127.0.0.1", "7007", TW_SEC(30), 1000000, false};

static int epoll_fd, listen_fd, signal_fd;
static struct tw_wheel *wheel;
static struct tw_loop *loop;
static struct tw_timer retry; /* pending while there are no descriptors left */
static bool accepting, ending;
static size_t count;
static struct connection *heard[EVENTS]; /* bytes of these came in this event-loop iteration */
static int heard_count;
static unsigned long long accepted, heartbeats, reaped, early;
static uint64_t longest_ns;

/* Sets the events of a descriptor that the epoll set reports. Returns 0, or -1 with errno. */
static int watch(int operation, int fd, uint32_t events, void *owner)
{
    struct epoll_event event = {.events = events, .data.ptr = owner};
    return epoll_ctl(epoll_fd, operation, fd, &event);
}

/* ---- connections ----------------------------------------------------------------------------------------- */

static void accept_more(bool more)
{
    if (more != accepting && watch(EPOLL_CTL_MOD, listen_fd, more ? EPOLLIN : 0, &listen_fd) != 0)
        err(1, "epoll_ctl");
    accepting = more;
}

static void finish(struct connection *connection)
{
    tw_loop_cancel(loop, &connection->idle);
    close(connection->fd); /* this takes it out of the epoll set */
    free(connection);
    count--;
    accept_more(!ending);
}

/* Pushes the timers back of all connections whose bytes came in this iteration. */
static void push_back(void)
{
    uint64_t now_ns = heard_count > 0 ? tw_loop_now(loop) : 0;
    for (int i = 0; i < heard_count; i++) {
        heard[i]->heard_ns = now_ns;
        tw_loop_move_at(loop, &heard[i]->idle, now_ns + options.idle_ns);
    }
    heard_count = 0;
}

/* Sends as many bytes as the socket takes now. Returns false when the connection was closed and freed. */
static bool send_back(struct connection *connection)
{
    ssize_t sent = send(connection->fd, connection->buffer + connection->begin,
                        connection->end - connection->begin, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        finish(connection);
        return false;
    }
    connection->begin += sent > 0 ? (size_t)sent : 0;
    return true;
}

static void on_readable(struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->buffer, BUFFER, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) { /* the end of input, or an error; all bytes before it have been sent back */
        finish(connection);
        return;
    }
    heartbeats++;
    connection->bytes += (size_t)got;
    connection->begin = 0;
    connection->end = (size_t)got;
    if (!send_back(connection))
        return;
    heard[heard_count++] = connection;
    if (connection->begin < connection->end)
        watch(EPOLL_CTL_MOD, connection->fd, EPOLLOUT, connection);
}

static void on_writable(struct connection *connection)
{
    if (send_back(connection) && connection->begin == connection->end)
        watch(EPOLL_CTL_MOD, connection->fd, EPOLLIN, connection);
}

/* ---- accepting ------------------------------------------------------------------------------------------- */

static void welcome(int fd)
{
    struct connection *connection = malloc(sizeof *connection);
    if (connection == NULL || watch(EPOLL_CTL_ADD, fd, EPOLLIN, connection) != 0) {
        free(connection);
        close(fd);
        return;
    }
    connection->fd = fd;
    connection->number = ++accepted;
    connection->bytes = 0;
    connection->begin = connection->end = 0;
    connection->heard_ns = tw_loop_now(loop);
    count++;
    tw_timer_init(&connection->idle);
    tw_loop_add_at(loop, &connection->idle, connection->heard_ns + options.idle_ns);
}

/* When no descriptors are left, the listener stays readable, and the loop would spin. So the server ignores
 * the listener until a connection ends, or for retry_ns. Peers wait in the backlog. */
static void on_listener(void)
{
    for (int i = 0; i < ACCEPTS && count < options.most; i++) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            welcome(fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            accept_more(false);
            tw_loop_move_in(loop, &retry, retry_ns);
            return;
        } else if (errno == EAGAIN) {
            return;
        } /* else the peer has gone while it waited */
    }
    accept_more(count < options.most);
}

/* ---- timers ---------------------------------------------------------------------------------------------- */

static void reap(struct connection *connection)
{
    uint64_t idle_ns = tw_loop_now(loop) - connection->heard_ns;
    reaped++;
    early += idle_ns < options.idle_ns;
    longest_ns = idle_ns > longest_ns ? idle_ns : longest_ns;
    if (!options.quiet)
        printf("connection %llu reaped: %.3f s without a byte, %llu bytes before\n", connection->number,
               (double)idle_ns / ns_per_s, connection->bytes);
    finish(connection);
}

/* Whether bytes wait to be read. After a standstill of the server they may have arrived in time. */
static bool has_input(const struct connection *connection)
{
    char byte;
    return connection->begin == connection->end && recv(connection->fd, &byte, 1, MSG_PEEK) > 0;
}

static void on_idle(struct connection *connection)
{
    if (has_input(connection))
        tw_loop_add_in(loop, &connection->idle, options.idle_ns);
    else
        reap(connection);
}

static void on_due(void *arg, struct tw_timer *timer)
{
    (void)arg;
    if (timer == &retry)
        accept_more(count < options.most);
    else
        on_idle(TW_CONTAINER(timer, struct connection, idle));
}

/* ---- the loop -------------------------------------------------------------------------------------------- */

/* The epoll set watches a connection either for reading or for writing, so there is one event for each
 * connection in an iteration. The recv() or send() that follows finds an error. */
static void on_event(void *owner)
{
    struct connection *connection = owner;
    if (owner == &listen_fd)
        on_listener();
    else if (owner == &signal_fd)
        ending = true;
    else if (connection->begin < connection->end)
        on_writable(connection);
    else
        on_readable(connection);
}

/* One event-loop iteration. Idle connections are reaped inside the wait, never between two events. So no
 * event is left for a reaped connection, whose memory is gone. */
static void turn(void)
{
    struct epoll_event events[EVENTS];
    int found = tw_loop_epoll_wait(loop, events, EVENTS, -1);
    if (found < 0 && errno != EINTR)
        err(1, "epoll_wait");
    for (int i = 0; i < found; i++)
        on_event(events[i].data.ptr);
    push_back();
}

static void make_loop(void)
{
    struct tw_loop_options loop_options = {.due = on_due};
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        err(1, "epoll_create1");
    int error = tw_wheel_new(&wheel, NULL, 0);
    if (error == 0)
        error = tw_loop_epoll_wait_new(&loop, epoll_fd, wheel, &loop_options);
    if (error != 0)
        errx(1, "%s", tw_strerror(error));
}

/* Makes the signals that end the server arrive as events. */
static void watch_signals(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    signal_fd = signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signal_fd < 0 || watch(EPOLL_CTL_ADD, signal_fd, EPOLLIN, &signal_fd) != 0)
        err(1, "signalfd");
}

static void start_listening(void)
{
    struct addrinfo *at, hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    int yes = 1;
    if (getaddrinfo(options.address, options.port, &hints, &at) != 0)
        errx(2, "--listen is '%s': expected an address in numbers, such as 127.0.0.1 or ::1", options.address);
    listen_fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listen_fd < 0 || setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(listen_fd, at->ai_addr, at->ai_addrlen) != 0 || listen(listen_fd, SOMAXCONN) != 0 ||
        getsockname(listen_fd, at->ai_addr, &at->ai_addrlen) != 0 || /* the system's choice, if the port is 0 */
        getnameinfo(at->ai_addr, at->ai_addrlen, NULL, 0, options.port, sizeof options.port, NI_NUMERICSERV) !=
            0)
        err(1, "cannot listen on %s port %s", options.address, options.port);
    freeaddrinfo(at);
    if (watch(EPOLL_CTL_ADD, listen_fd, EPOLLIN, &listen_fd) != 0)
        err(1, "epoll_ctl");
    accepting = true;
    printf("listening on %s port %s, idle connections are closed after %g s\n", options.address, options.port,
           (double)options.idle_ns / ns_per_s);
}

/* ---- arguments and end ----------------------------------------------------------------------------------- */

static double number(const char *name, const char *word, double least, double most, bool whole)
{
    char *end;
    double value = strtod(word, &end);
    if (end == word || *end != '\0' || !(value >= least && value <= most) || (whole && value != floor(value)))
        errx(2, "%s is '%s': expected %s%.10g to %.10g", name, word, whole ? "a whole number, " : "seconds, ",
             least, most);
    return value;
}

/* Asks for as many descriptors as the system grants. on_listener() deals with having none left. */
static void raise_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void take(int option, char *value)
{
    if (option == 'l')
        options.address = value;
    else if (option == 'p')
        snprintf(options.port, sizeof options.port, "%.0f", number("--port", value, 0, 65535, true));
    else if (option == 'i')
        options.idle_ns = (uint64_t)(ns_per_s * number("--idle", value, 0.001, 31536000, false));
    else if (option == 'm')
        options.most = (size_t)number("--max", value, 1, 1000000, true);
    else if (option == 'q')
        options.quiet = true;
    else
        exit(2); /* getopt_long() has said why */
}

static void parse(int words, char **word)
{
    static const struct option known[] = {{"listen", 1, NULL, 'l'}, {"port", 1, NULL, 'p'},
                                          {"idle", 1, NULL, 'i'},   {"max", 1, NULL, 'm'},
                                          {"quiet", 0, NULL, 'q'},  {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(words, word, "", known, NULL)) != -1)
        take(option, optarg);
    if (optind < words)
        errx(2, "argument is '%s': expected --listen, --port, --idle, --max or --quiet", word[optind]);
}

static void end(void)
{
    struct tw_timer *timer;
    tw_loop_cancel(loop, &retry);
    while ((timer = tw_wheel_drain(wheel)) != NULL) /* each connection has its timer in the wheel */
        finish(TW_CONTAINER(timer, struct connection, idle));
    tw_loop_free(loop);
    tw_wheel_free(wheel);
    printf("%llu connections, %llu heartbeats, %llu reaped, %llu early; idle for %.3f s at most\n", accepted,
           heartbeats, reaped, early, (double)longest_ns / ns_per_s);
}

int main(int words, char **word)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    parse(words, word);
    raise_limit();
    make_loop();
    watch_signals();
    start_listening();
    while (!ending)
        turn();
    end();
    return early == 0 ? 0 : 1;
}
