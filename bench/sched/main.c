/* SPDX-License-Identifier: MIT
 *
 * sched_bench PEER PENDING PRODUCERS SEED: runs every load on one scheduler, once, and prints a line `load
 * metric value` for each figure. SchedBench.java and main.go do the same in their languages.
 * docs/benchmark-sched.md describes the loads.
 */
#include "peer.h"
#include "tally.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    OPERATIONS = 2000000, /* operations of churn, in_flight and key_move, by all producers together */
    WINDOW = 1000,        /* in_flight: requests of one producer that have no answer yet */
    PROBES = 1000,        /* tasks whose lateness is measured */
    PROBE_EVERY_US = 2000,
    PRODUCERS_MAX = 64,
    NS_PER_US = 1000,
    NS_PER_S = 1000000000
};
static const uint64_t hour_ns = 3600 * (uint64_t)NS_PER_S;

static const struct peer *peer;
static size_t pending;
size_t producers;
static uint64_t seed;

/* ---- small things ---------------------------------------------------------------------------------------- */

void *need(size_t count, size_t size)
{
    void *block = calloc(count, size);
    if (block != NULL)
        return block;
    fprintf(stderr, "sched_bench: no memory\n");
    exit(1);
}

static void sleep_until(uint64_t ns)
{
    struct timespec at = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        ;
}

/* The processor time of this process, on all processors together. */
static uint64_t cpu_ns(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    uint64_t s = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
    return s * NS_PER_S + (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * NS_PER_US;
}

static double resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void print(const char *load, const char *metric, double value)
{
    printf("%s\t%s\t%.6g\n", load, metric, value);
}

/* xorshift64*: Marsaglia, 2003; Vigna, 2016 */
static uint64_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* An hour or two, so that no task with this delay is due while we measure. */
static uint64_t far_ns(uint64_t *state)
{
    return hour_ns + draw(state) % hour_ns;
}

static char (*keys)[KEY_SIZE];

const char *key_of(size_t job)
{
    return keys[job];
}

static void make_keys(void)
{
    keys = need(pending, sizeof *keys);
    for (size_t job = 0; job < pending; job++) {
        char text[32];
        snprintf(text, sizeof text, "order:%010zu", job);
        memcpy(keys[job], text, KEY_SIZE);
    }
}

/* ---- producers ------------------------------------------------------------------------------------------- */

struct producer {
    pthread_t thread;
    void *self;
    void (*work)(struct producer *);
    size_t number, first, count; /* the producer's share of the jobs */
    size_t operations;
    uint64_t random;
    uint64_t begun_ns, ended_ns;
};
static struct producer producer[PRODUCERS_MAX];
static pthread_barrier_t start;

static void *produce(void *arg)
{
    struct producer *p = arg;
    pthread_barrier_wait(&start);
    p->begun_ns = now_ns();
    p->work(p);
    p->ended_ns = now_ns();
    return NULL;
}

static void begin(void *self, void (*work)(struct producer *), size_t operations)
{
    pthread_barrier_init(&start, NULL, (unsigned)producers);
    for (size_t i = 0; i < producers; i++) {
        struct producer *p = &producer[i];
        size_t first = pending / producers * i;
        *p = (struct producer){
            .self = self, .work = work, .number = i, .first = first, .count = pending / producers};
        p->operations = operations / producers;
        p->random = (seed * PRODUCERS_MAX + i + 1) * UINT64_C(0x9E3779B97F4A7C15);
        if (pthread_create(&p->thread, NULL, produce, p) != 0) {
            fprintf(stderr, "sched_bench: no thread\n");
            exit(1);
        }
    }
}

/* Waits for the producers. Returns the time from the first start to the last end. */
static uint64_t join(void)
{
    uint64_t begun_ns = UINT64_MAX, ended_ns = 0;
    for (size_t i = 0; i < producers; i++) {
        pthread_join(producer[i].thread, NULL);
        begun_ns = producer[i].begun_ns < begun_ns ? producer[i].begun_ns : begun_ns;
        ended_ns = producer[i].ended_ns > ended_ns ? producer[i].ended_ns : ended_ns;
    }
    pthread_barrier_destroy(&start);
    return ended_ns - begun_ns;
}

/* Runs a load and prints two times of an operation: the time on the clock, and the time of all processors
 * until the scheduler has settled. */
static void measure(const char *load, void *self, void (*work)(struct producer *), size_t operations)
{
    uint64_t cpu = cpu_ns();
    begin(self, work, operations);
    uint64_t wall = join();
    peer->settle(self);
    cpu = cpu_ns() - cpu;
    print(load, "ns", (double)wall / (double)operations);
    print(load, "cpu_ns", (double)cpu / (double)operations);
}

/* ---- loads ----------------------------------------------------------------------------------------------- */

static void add_all(struct producer *p)
{
    for (size_t i = 0; i < p->count; i++)
        peer->add(p->self, p->first + i, far_ns(&p->random));
}

static void churn_one(struct producer *p)
{
    size_t job = p->first + draw(&p->random) % p->count;
    peer->cancel(p->self, job);
    peer->add(p->self, job, far_ns(&p->random));
}

static void churn(struct producer *p)
{
    for (size_t i = 0; i < p->operations; i++)
        churn_one(p);
}

static atomic_bool enough;

static void churn_until_enough(struct producer *p)
{
    while (!atomic_load_explicit(&enough, memory_order_relaxed))
        churn_one(p);
}

static void in_flight(struct producer *p)
{
    size_t first = pending + p->number * WINDOW;
    for (size_t i = 0; i < WINDOW; i++)
        peer->add(p->self, first + i, far_ns(&p->random));
    for (size_t i = 0; i < p->operations; i++) {
        size_t job = first + i % WINDOW;
        peer->cancel(p->self, job);
        peer->add(p->self, job, far_ns(&p->random));
    }
    for (size_t i = 0; i < WINDOW; i++)
        peer->cancel(p->self, first + i);
}

static void key_add_all(struct producer *p)
{
    for (size_t i = 0; i < p->count; i++)
        peer->key_add(p->self, p->first + i, far_ns(&p->random));
}

static void key_move(struct producer *p)
{
    for (size_t i = 0; i < p->operations; i++)
        peer->key_move(p->self, p->first + draw(&p->random) % p->count, far_ns(&p->random));
}

/* ---- firing and lateness --------------------------------------------------------------------------------- */

static uint64_t probe_due_ns[PROBES], probe_late_ns[PROBES];
static size_t probe_first; /* the job of the first probe; 0: jobs are counted */
static size_t expected;

static void note_lateness(size_t job)
{
    uint64_t now = now_ns(), due = probe_due_ns[job - probe_first];
    if (now < due) {
        fprintf(stderr, "%s: a task ran %llu ns early\n", peer->name, (unsigned long long)(due - now));
        exit(1);
    }
    probe_late_ns[job - probe_first] = now - due;
}

void fired(size_t job)
{
    if (probe_first != 0)
        note_lateness(job);
    tally_count();
}

static void expect(size_t count, size_t first_probe)
{
    expected = count;
    probe_first = first_probe;
    tally_begin(count);
}

static void wait_for_all(void)
{
    size_t seen = tally_wait();
    if (seen == expected)
        return;
    fprintf(stderr, "%s: %zu of %zu tasks ran within a minute\n", peer->name, seen, expected);
    exit(1);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Files a task every two milliseconds, due in 5 to 100 ms, to the nanosecond. Prints the lateness of these
 * tasks. */
static void probe(const char *load, void *self)
{
    uint64_t random = seed + 77, next_ns = now_ns();
    expect(PROBES, pending + producers * WINDOW);
    for (size_t i = 0; i < PROBES; i++) {
        sleep_until(next_ns += (uint64_t)PROBE_EVERY_US * NS_PER_US);
        uint64_t delay_ns = 5000000 + draw(&random) % 95000000;
        probe_due_ns[i] = now_ns() + delay_ns;
        /* the peer reads its clock after we did, so it cannot seem early */
        peer->add(self, probe_first + i, delay_ns);
    }
    wait_for_all();
    qsort(probe_late_ns, PROBES, sizeof *probe_late_ns, compare);
    print(load, "p50_us", (double)probe_late_ns[PROBES / 2] / NS_PER_US);
    print(load, "p99_us", (double)probe_late_ns[PROBES * 99 / 100] / NS_PER_US);
    print(load, "max_us", (double)probe_late_ns[PROBES - 1] / NS_PER_US);
}

static void probe_twice(void *self)
{
    probe("idle", self);
    atomic_store(&enough, false);
    begin(self, churn_until_enough, 0);
    probe("load", self);
    atomic_store(&enough, true);
    join();
}

static uint64_t target_ns;

/* Files tasks that are due 10 ns apart on average: faster than any scheduler can fire them. */
static void add_for_firing(struct producer *p)
{
    for (size_t i = 0; i < p->count; i++) {
        uint64_t due_ns = target_ns + draw(&p->random) % (pending * 10), now = now_ns();
        if (now >= target_ns) {
            fprintf(stderr, "%s: adding took too long for the firing load\n", peer->name);
            exit(1);
        }
        peer->add(p->self, p->first + i, due_ns - now);
    }
}

static void firing(void)
{
    void *self = peer->open(pending);
    expect(pending, 0);
    target_ns = now_ns() + NS_PER_S / 2 + pending * 2500;
    uint64_t cpu = cpu_ns();
    begin(self, add_for_firing, pending);
    join();
    peer->settle(self);
    cpu = cpu_ns();
    wait_for_all();
    cpu = cpu_ns() - cpu;
    print("firing", "ns", (double)tally_span_ns() / (double)pending);
    print("firing", "cpu_ns", (double)cpu / (double)pending);
    peer->close(self);
}

/* ---- all of it ------------------------------------------------------------------------------------------- */

static void without_keys(void)
{
    void *self = peer->open(pending + producers * WINDOW + PROBES);
    double before = resident_bytes();
    measure("add", self, add_all, pending);
    print("memory", "bytes", (resident_bytes() - before) / (double)pending);
    measure("churn", self, churn, OPERATIONS);
    measure("in_flight", self, in_flight, OPERATIONS);
    if (peer->fires)
        probe_twice(self);
    peer->close(self);
}

static void with_keys(void)
{
    void *self = peer->open(pending);
    make_keys();
    double before = resident_bytes();
    measure("key_add", self, key_add_all, pending);
    print("key_memory", "bytes", (resident_bytes() - before) / (double)pending);
    measure("key_move", self, key_move, OPERATIONS);
    peer->close(self);
}

static size_t number(const char *name, const char *word, size_t most)
{
    char *end;
    unsigned long value = strtoul(word, &end, 10);
    if (*end == '\0' && value >= 1 && value <= most)
        return value;
    fprintf(stderr, "sched_bench: %s is '%s': expected 1 to %zu\n", name, word, most);
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct peer *const peers[] = {&tickwheel_peer, &single_peer, &workers1_peer, &workers2_peer,
                                               &workers4_peer,  &libuv_peer,  &bare_peer};
    if (argc == 2 && strcmp(argv[1], "--build") == 0) {
        printf("compiler: gcc %s\nflags: %s\n", __VERSION__, BENCH_FLAGS);
        return 0;
    }
    for (size_t i = 0; argc == 5 && i < sizeof peers / sizeof *peers; i++)
        if (strcmp(argv[1], peers[i]->name) == 0)
            peer = peers[i];
    if (peer == NULL) {
        fprintf(stderr, "usage: sched_bench tickwheel|single|workers_1|workers_2|workers_4|libuv|bare "
                        "PENDING PRODUCERS SEED\n");
        return 2;
    }
    pending = number("PENDING", argv[2], 10000000);
    producers = number("PRODUCERS", argv[3], PRODUCERS_MAX);
    seed = number("SEED", argv[4], 1000000);
    pending = pending / producers * producers;
    if (pending == 0) {
        fprintf(stderr, "sched_bench: fewer tasks than producers\n");
        return 2;
    }
    if (peer->calls) {
        without_keys();
        with_keys();
    }
    if (peer->fires)
        firing();
    return 0;
}
