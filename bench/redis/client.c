/* SPDX-License-Identifier: MIT
 *
 * The client for loads that redis-benchmark cannot make:
 *
 *   - ids that are known afterwards
 *   - due times spread over a span
 *   - payloads that do not compress
 *   - a request in each millisecond, also while the server stands still
 *
 *     client PORT send [-c CONNECTIONS] [-P PIPELINE] [-n COUNT] [-f FIRST] [-s SPACE] [-i INDEX] [-d DUE]
 *                      [-w WIDTH] [-b BYTES] [-S SEED] [-z] -- WORD...
 *         sends COUNT commands made of WORDs. Each connection sends PIPELINE commands and waits for their
 *         replies, as redis-benchmark does. -z: sends one command after the other until a reply is 0.
 *         Prints: replies, seconds, the sum of the integers replied, errors. In a WORD
 *         - {id} is a 12-digit id: FIRST, FIRST + 1, and so on. With -s it is one of the SPACE ids from FIRST
 *           on, each of them once, and far from the id before it. With -i it begins INDEX ids later: runs of
 *           1,000 with -i 0 and -i 1000 send the ids of one run of 2,000
 *         - {due} is at least DUE and less than DUE + WIDTH, 13 digits
 *         - {payload} is BYTES letters
 *         - {now} is the Unix time in ms
 *     client PORT probe
 *         sends PING each millisecond, until SIGTERM. Prints for each: Unix time in us, us until the reply.
 *         It does not wait for a reply before it sends the next PING. So while the server stands still, every
 *         PING sees it.
 */
#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "net.h"
#include "words.h"

enum {
    LINE_MAX_KEPT = 200,
    PROBES_MAX = 4000000 /* more than an hour */
};

/* ---- answers --------------------------------------------------------------------------------------------- */

/* The state of a connection that reads replies. */
struct reader {
    uint64_t open; /* elements of arrays that are still to come */
    size_t skip;   /* bytes of a string that are still to come */
    size_t length; /* of line */
    char line[LINE_MAX_KEPT + 1];
};

static uint64_t answers, errors;
static int64_t sum;
static bool zero_seen;

/* Reads a whole line. Returns true if it is the last line of a reply. */
static bool line_read(struct reader *reader)
{
    reader->line[reader->length] = '\0';
    reader->length = 0;
    long long n = atoll(reader->line + 1);
    bool top = reader->open == 0;
    if (!top)
        reader->open--;
    switch (reader->line[0]) {
    case '*':
        reader->open += n > 0 ? (uint64_t)n : 0;
        break;
    case '$':
        reader->skip = n >= 0 ? (size_t)n + 2 : 0;
        break;
    case ':':
        sum += n;
        zero_seen = zero_seen || (top && n == 0);
        break;
    case '-':
        if (errors++ == 0)
            fprintf(stderr, "client: %s\n", reader->line);
        break;
    default:
        break;
    }
    return reader->open == 0;
}

/* Reads the data that has arrived. Returns the number of replies that ended in it. */
static unsigned take(struct reader *reader, const char *data, size_t length)
{
    unsigned ended = 0;
    for (size_t i = 0; i < length;) {
        if (reader->skip > 0) {
            size_t part = reader->skip < length - i ? reader->skip : length - i;
            reader->skip -= part;
            i += part;
            continue;
        }
        char c = data[i++];
        if (c == '\n')
            ended += line_read(reader);
        else if (c != '\r' && reader->length < LINE_MAX_KEPT)
            reader->line[reader->length++] = c;
    }
    answers += ended;
    return ended;
}

/* ---- sending --------------------------------------------------------------------------------------------- */

struct connection {
    struct reader reader;
    int fd;
    unsigned awaited;
    char *out;
};

/* Sends the next commands of this connection. Returns false if none are left. */
static bool send_some(struct connection *connection, uint64_t *sent)
{
    char *end = connection->out;
    while (connection->awaited < asked.pipeline && *sent < asked.count && !(asked.until_zero && zero_seen)) {
        end = write_command(end, asked.index + (*sent)++);
        connection->awaited++;
    }
    write_all(connection->fd, connection->out, (size_t)(end - connection->out));
    return connection->awaited > 0;
}

/* Reads replies and sends on. Returns false if the connection has nothing more to do. */
static bool go_on(struct connection *connection, uint64_t *sent)
{
    static char in[1 << 18];
    ssize_t n = read(connection->fd, in, sizeof in);
    if (n <= 0)
        fail("read");
    connection->awaited -= take(&connection->reader, in, (size_t)n);
    return connection->awaited > 0 || send_some(connection, sent);
}

static int do_send(uint16_t port)
{
    struct connection *all = calloc(asked.connections, sizeof *all);
    struct epoll_event ready[64];
    int set = epoll_create1(0);
    uint64_t sent = 0;
    unsigned busy = 0;
    choose_stride();
    make_parts();
    if (all == NULL || set < 0)
        fail("start");
    for (unsigned i = 0; i < asked.connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        all[i].fd = dial(port);
        all[i].out = malloc(command_room() * asked.pipeline);
        if (all[i].out == NULL || epoll_ctl(set, EPOLL_CTL_ADD, all[i].fd, &event) != 0)
            fail("start");
    }
    uint64_t start = us_of(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < asked.connections; i++)
        busy += send_some(&all[i], &sent);
    while (busy > 0) {
        int n = epoll_wait(set, ready, 64, -1);
        for (int i = 0; i < n; i++)
            busy -= !go_on(ready[i].data.ptr, &sent);
    }
    double seconds = (double)(us_of(CLOCK_MONOTONIC) - start) / US_PER_S;
    printf("%llu %.6f %lld %llu\n", (unsigned long long)answers, seconds, (long long)sum,
           (unsigned long long)errors);
    return errors == 0 ? 0 : 1;
}

/* ---- probing --------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t stopped;

static void on_stop(int signal)
{
    (void)signal;
    stopped = 1;
}

struct probe {
    uint64_t unix_us, sent_us, took_us;
};

/* Reads replies until the time `until`, and stores the time of each in its probe. Returns the replies so
 * far. */
static uint64_t gather(int fd, struct reader *reader, struct probe *probes, uint64_t answered, uint64_t until)
{
    for (;;) {
        uint64_t now = us_of(CLOCK_MONOTONIC);
        int64_t left = now < until ? (int64_t)(until - now) : 0;
        struct timespec wait = {0, left * NS_PER_US};
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (ppoll(&ready, 1, &wait, NULL) <= 0)
            return answered;
        char in[4096];
        ssize_t n = read(fd, in, sizeof in);
        if (n <= 0)
            fail("read");
        uint64_t end = answered + take(reader, in, (size_t)n);
        for (now = us_of(CLOCK_MONOTONIC); answered < end; answered++)
            probes[answered].took_us = now - probes[answered].sent_us;
    }
}

static int do_probe(uint16_t port)
{
    static struct probe probes[PROBES_MAX];
    struct reader reader = {0};
    struct sigaction action = {.sa_handler = on_stop};
    sigaction(SIGTERM, &action, NULL);
    int fd = dial(port);
    uint64_t sent = 0, answered = 0, due = us_of(CLOCK_MONOTONIC);
    while (!stopped && sent < PROBES_MAX) {
        probes[sent++] = (struct probe){us_of(CLOCK_REALTIME), us_of(CLOCK_MONOTONIC), 0};
        write_all(fd, "PING\r\n", 6);
        due += US_PER_MS;
        answered = gather(fd, &reader, probes, answered, due);
    }
    uint64_t patience = us_of(CLOCK_MONOTONIC) + (uint64_t)60 * US_PER_S;
    while (answered < sent && us_of(CLOCK_MONOTONIC) < patience)
        answered = gather(fd, &reader, probes, answered, us_of(CLOCK_MONOTONIC) + US_PER_MS);
    for (uint64_t i = 0; i < answered; i++)
        printf("%llu %llu\n", (unsigned long long)probes[i].unix_us, (unsigned long long)probes[i].took_us);
    return answered == sent ? 0 : 1;
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

static int usage(void)
{
    fprintf(stderr, "usage: client PORT send [-cPnfsidwbS NUMBER] [-z] -- WORD...\n       client PORT probe\n");
    return 2;
}

static bool read_arguments(int argc, char **argv)
{
    int option;
    optind = 3;
    while ((option = getopt(argc, argv, "c:P:n:f:s:i:d:w:b:S:z")) != -1) {
        uint64_t n = optarg != NULL ? strtoull(optarg, NULL, 10) : 0;
        switch (option) {
        case 'c':
            asked.connections = (unsigned)n;
            break;
        case 'P':
            asked.pipeline = (unsigned)n;
            break;
        case 'n':
            asked.count = n;
            break;
        case 'f':
            asked.first = n;
            break;
        case 's':
            asked.space = n;
            break;
        case 'i':
            asked.index = n;
            break;
        case 'd':
            asked.due = n;
            break;
        case 'w':
            asked.width = n;
            break;
        case 'b':
            asked.bytes = n;
            break;
        case 'S':
            asked.seed = n;
            break;
        case 'z':
            asked.until_zero = true;
            break;
        default:
            return false;
        }
    }
    asked.words = argv + optind;
    asked.words_count = (unsigned)(argc - optind);
    return asked.connections > 0 && asked.pipeline > 0 && asked.width > 0 && asked.bytes <= PAYLOAD_MAX &&
           asked.words_count > 0 && asked.words_count <= WORDS_MAX && words_fit() &&
           (asked.until_zero || asked.count != UINT64_MAX);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    uint16_t port = argc >= 3 ? (uint16_t)atoi(argv[1]) : 0;
    if (port != 0 && argc == 3 && strcmp(argv[2], "probe") == 0)
        return do_probe(port);
    if (port != 0 && strcmp(argv[2], "send") == 0 && read_arguments(argc, argv))
        return do_send(port);
    return usage();
}
