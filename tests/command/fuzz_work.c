/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the replies of a server, as `tickwheel work` reads them (work/source_server.c, work/answers.c,
 * work/lease.c, work/trouble.c, work/wire.c). The input is the server's replies in RESP, one connection after
 * the other, and in each connection one reply to each question (peer.h). The clock is virtual, so that no wait
 * takes time, and each name of a host leads to a peer: the calls of the C library are wrapped.
 *
 * The worker takes tasks, answers them in each way, and stops. It must come to rest, and settle each task once.
 */
#include "peer.h"
#include "work/source.h"

#include "heard.h"
#include "tests/support/fuzz.h"

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { TURNS = 60, TURNS_TO_REST = 4000, TURN_MS = 40, PLACES = 4, ATTEMPTS = 4 };

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result);
void __wrap_freeaddrinfo(struct addrinfo *result);

static uint64_t clock_ms;

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    *time = (struct timespec){(time_t)(clock_ms / 1000), (long)(clock_ms % 1000) * 1000000};
    return 0;
}

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result)
{
    static struct sockaddr_in address = {.sin_family = AF_INET};
    static struct addrinfo one = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    (void)service;
    (void)hints;
    if (*node == '\0' || *node == '!')
        return EAI_NONAME;
    one.ai_addr = (struct sockaddr *)&address;
    one.ai_addrlen = sizeof address;
    *result = &one;
    return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *result)
{
    (void)result; /* it is no block of memory */
}

/* ---- the worker ------------------------------------------------------------------------------------------ */

struct worker {
    struct source *source;
    struct taken *task[PLACES]; /* NULL: a free place */
    uint64_t answered, settled; /* tasks that the worker has given a result, and outcomes */
    bool failed;
};

static size_t places(void *arg)
{
    const struct worker *worker = arg;
    size_t free = 0;
    for (int i = 0; i < PLACES; i++)
        free += worker->task[i] == NULL;
    return free;
}

static unsigned sum_of_bytes(struct tw_bytes bytes)
{
    const unsigned char *byte = bytes.data;
    unsigned sum = 0;
    for (size_t i = 0; i < bytes.size; i++)
        sum += byte[i];
    return sum;
}

static unsigned sum_of(const struct taken *taken)
{
    unsigned sum = (unsigned)strlen(taken->queue) + sum_of_bytes(taken->id);
    for (size_t k = 0; k < taken->values; k++)
        sum += sum_of_bytes(taken->value[k]);
    return sum;
}

/* A server that gives more tasks than it was asked for finds no place; the worker gives them back. */
static void on_taken(void *arg, struct taken *taken)
{
    struct worker *worker = arg;
    for (int i = 0; i < PLACES; i++)
        if (worker->task[i] == NULL) {
            worker->task[i] = taken;
            return;
        }
    worker->answered++;
    worker->source->kind->answer(worker->source, taken, RESULT_BACK, NULL);
}

static void on_ready(void *arg, const char *address)
{
    (void)arg;
    fuzz_require(*address != '\0', "the source names no address");
}

static void on_not_yours(void *arg, struct taken *taken)
{
    (void)arg;
    fuzz_require(taken->not_yours, "a task of this worker is told as not yours");
}

static void on_settled(void *arg, const struct taken *taken, enum outcome outcome, const char *error)
{
    struct worker *worker = arg;
    worker->settled++;
    fuzz_require(outcome < OUTCOMES, "an outcome is none");
    fuzz_require(taken->queue != NULL && taken->id.data != NULL, "an outcome is of no task");
    fuzz_require(error == NULL || outcome != OUTCOME_DONE, "a task that is done has an error");
}

static void on_failed(void *arg)
{
    struct worker *worker = arg;
    fuzz_require(!worker->failed, "the source fails twice");
    worker->failed = true;
}

/* Goes on with the task of a place. The bytes of the task decide how. */
static void work_on(struct worker *worker, int place, bool ends)
{
    struct taken *taken = worker->task[place];
    const struct source_kind *kind = worker->source->kind;
    unsigned how = sum_of(taken) % ATTEMPTS;
    if (how == 3 && !ends) {
        kind->touch(worker->source, taken);
        return;
    }
    worker->task[place] = NULL;
    worker->answered++;
    if (how == 0)
        kind->answer(worker->source, taken, RESULT_DONE, NULL);
    else if (how == 1)
        kind->answer(worker->source, taken, RESULT_FAILED, "it has failed");
    else
        kind->answer(worker->source, taken, RESULT_BACK, NULL);
}

static void turn(struct worker *worker, struct timers *timers)
{
    struct pollfd fds[SOURCE_WATCHES];
    char status[SOURCE_STATUS];
    clock_ms += TURN_MS;
    timers_fire(timers);
    fuzz_require(worker->source->kind->watch(worker->source, fds) <= SOURCE_WATCHES, "too many descriptors");
    worker->source->kind->turn(worker->source);
    worker->source->kind->tell(worker->source, status);
    heard_require_clean(status, strlen(status));
    peers_turn();
}

static void work(struct worker *worker, struct timers *timers)
{
    const struct source_kind *kind = worker->source->kind;
    for (int i = 0; i < TURNS && !worker->failed; i++) {
        turn(worker, timers);
        for (int place = 0; place < PLACES; place++)
            if (worker->task[place] != NULL && (i + place) % 3 == 0)
                work_on(worker, place, false);
    }
    for (int place = 0; place < PLACES; place++)
        if (worker->task[place] != NULL)
            work_on(worker, place, true);
    fuzz_require(worker->settled <= worker->answered, "a task has two outcomes");
    kind->stop(worker->source);
    for (int i = 0; i < TURNS_TO_REST && !worker->failed && !kind->at_rest(worker->source); i++)
        turn(worker, timers);
}

/* A worker whose server is away does not come to rest before the user ends it: its results are not reported. */
static void check_end(const struct worker *worker, bool good)
{
    fuzz_require(!good || worker->settled >= worker->answered, "a result has no outcome");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct work_options options;
    char *queues[] = {"mails", "s"}, error[URL_ERROR];
    struct worker worker = {.source = NULL};
    const struct source_events events = {.ready = on_ready,
                                         .places = places,
                                         .taken = on_taken,
                                         .not_yours = on_not_yours,
                                         .settled = on_settled,
                                         .failed = on_failed,
                                         .arg = &worker};
    struct heard heard;
    options = (struct work_options){.exec = "true", .name = "fuzz", .lease_ms = 3000, .jobs = PLACES};
    options.queue = queues;
    options.queues = 2;
    options.link.target.password_variable = "PASSWORD";
    fuzz_require(url_parse("h:7", &options.link.target.url, error), error);
    clock_ms = 1000000;
    srandom(1);
    heard_begin(&heard);
    peers_begin(data, size, false);
    struct timers *timers = timers_new();
    fuzz_require(timers != NULL, "there is no memory");
    worker.source = source_server(&options, timers, &events);
    fuzz_require(worker.source != NULL, "there is no memory");
    work(&worker, timers);
    bool good = worker.source->kind->free(worker.source);
    timers_free(timers);
    peers_end();
    heard_end(&heard);
    check_end(&worker, good);
    fuzz_require(heard.out_size == 0, "the source prints on standard output");
    heard_require_clean(heard.err, heard.err_size);
    heard_free(&heard);
    return 0;
}
