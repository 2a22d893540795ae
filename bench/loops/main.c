/* SPDX-License-Identifier: MIT
 *
 * loops_bench [--quick] ENGINE CONNECTIONS SEED: measures the cost of a heartbeat in one event loop, once,
 * and prints lines `load metric value`. Start it with `run`. docs/benchmark-loops.md describes the loads. If
 * the timers of an engine do not expire when they must, the program ends with an error.
 */
#include "beats.h"

#include "../random.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    LEAST_CONNECTIONS = 1000,
    MOST_CONNECTIONS = 100000, /* with more, one iteration of ours could not fire all of a millisecond */
    LEAST_PER_TURN = 100,      /* reads: about as many as a server finds in one epoll_wait() under load */
    SILENT_PART = 100,         /* every hundredth connection falls silent while others are read */
    TIMED_READS = 3000000,
    TIMED_READS_QUICK = 1000000,
    LIVE_MS = 4000,
    LIVE_MS_QUICK = 1000
};

#define ENGINE_POINTER(symbol) &engine_##symbol,
static const struct engine *const engines[] = {ENGINE_TABLE(ENGINE_POINTER)};
#undef ENGINE_POINTER

_Noreturn void bench_fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fputs("loops_bench: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(1);
}

/* ---- the plan -------------------------------------------------------------------------------------------- */

static uint32_t *permutation(uint32_t n)
{
    uint32_t *p = bench_alloc(n * sizeof *p);
    random_order(p, n);
    return p;
}

/* Draws reads of the connections accepted so far, while others are still being accepted. */
static uint32_t *draw_accepting(const struct plan *plan, uint32_t *order)
{
    uint64_t accepted = 0;
    for (uint64_t i = 0; i < plan->accept_reads; i++) {
        if (i % plan->per_turn == 0)
            accepted += plan->accepts;
        accepted = accepted < plan->connections ? accepted : plan->connections;
        *order++ = plan->visit[random_below((uint32_t)accepted)];
    }
    return order;
}

/* Draws reads of the connections that have not fallen silent yet. The last one falls silent when nine tenths
 * of the warm part are over, and all silent connections expire in the timed part. */
static void draw_reads(const struct plan *plan, uint32_t *order)
{
    uint32_t left = plan->connections, silent = 0;
    uint64_t each = plan->warm_reads / 10 * 9 / plan->silent;
    for (uint64_t i = 0; i < plan->warm_reads + plan->timed_reads; i++) {
        if (silent < plan->silent && i >= each * (silent + 1)) {
            silent++;
            plan->left[random_below(left)] = plan->left[left - 1];
            left--;
        }
        *order++ = plan->left[random_below(left)];
    }
}

/* Each connection is read once in PERIOD_MS on average, in iterations that are whole milliseconds apart. */
static struct plan make_plan(uint32_t connections, uint64_t seed, bool quick)
{
    struct plan plan = {.connections = connections, .live_ms = quick ? LIVE_MS_QUICK : LIVE_MS};
    random_state = seed;
    plan.turn_ms = (LEAST_PER_TURN * PERIOD_MS + connections - 1) / connections;
    plan.per_turn = (uint32_t)(connections * plan.turn_ms / PERIOD_MS);
    plan.accepts = (uint32_t)(connections * plan.turn_ms / IDLE_MS + 1);
    plan.silent = connections / SILENT_PART;
    plan.accept_reads = IDLE_MS / plan.turn_ms * plan.per_turn;
    plan.warm_reads = WARM_MS / plan.turn_ms * plan.per_turn;
    plan.timed_reads = quick ? TIMED_READS_QUICK : TIMED_READS;
    if (plan.timed_reads < plan.accept_reads)
        plan.timed_reads = plan.accept_reads;
    plan.visit = permutation(connections);
    plan.left = permutation(connections);
    plan.order = bench_alloc((plan.accept_reads + plan.warm_reads + plan.timed_reads) * sizeof *plan.order);
    draw_reads(&plan, draw_accepting(&plan, plan.order));
    return plan;
}

/* Makes one piece of memory for the connections of both runs, on 4 KiB pages, as malloc gives them. */
static void *make_arena(uint32_t connections)
{
    size_t size = (size_t)connections * CONNECTION_BYTES;
    void *arena = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED)
        bench_fail("no memory for %u connections", connections);
    madvise(arena, size, MADV_NOHUGEPAGE);
    return arena;
}

/* ---- results --------------------------------------------------------------------------------------------- */

static void print(const char *load, const char *metric, double value)
{
    printf("%s\t%s\t%.6g\n", load, metric, value);
}

static void report(const struct outcome *bare, const struct outcome *with)
{
    print("read", "ns", bare->ns);
    print("beat", "ns", with->ns);
    print("beat", "more_ns", with->ns - bare->ns);
    print("memory", "bytes", with->bytes);
    print("live", "bare_cpu_ms", bare->cpu_ms_per_s);
    print("live", "cpu_ms", with->cpu_ms_per_s);
    print("live", "more_cpu_ms", with->cpu_ms_per_s - bare->cpu_ms_per_s);
    print("live", "wakeups", with->wakeups_per_s);
    print("live", "arms", with->arms_per_s);
    print("reaped", "late_turns", (double)with->late_turns_most);
}

static uint64_t number(const char *name, const char *word, uint64_t least, uint64_t most)
{
    char *end;
    unsigned long long value = strtoull(word, &end, 10);
    if (*word >= '0' && *word <= '9' && *end == '\0' && value >= least && value <= most)
        return value;
    fprintf(stderr, "loops_bench: %s is '%s': expected %llu to %llu\n", name, word, (unsigned long long)least,
            (unsigned long long)most);
    exit(2);
}

static const struct engine *find_engine(const char *name)
{
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
        if (strcmp(engines[i]->name, name) == 0)
            return engines[i];
    fprintf(stderr, "loops_bench: ENGINE is '%s': expected", name);
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
        fprintf(stderr, " %s", engines[i]->name);
    fputc('\n', stderr);
    exit(2);
}

int main(int count, char **words)
{
    bool quick = count > 1 && strcmp(words[1], "--quick") == 0;
    if (count == 2 && strcmp(words[1], "--build") == 0) {
        printf("compiler: gcc %s\nflags: %s\n", __VERSION__, BENCH_FLAGS);
        return 0;
    }
    if (count != 4 + quick) {
        fprintf(stderr, "usage: loops_bench [--quick] ENGINE CONNECTIONS SEED\n");
        return 2;
    }
    words += quick;
    const struct engine *engine = find_engine(words[1]);
    uint32_t connections = (uint32_t)number("CONNECTIONS", words[2], LEAST_CONNECTIONS, MOST_CONNECTIONS);
    struct plan plan = make_plan(connections, number("SEED", words[3], 0, UINT32_MAX), quick);
    struct outcome bare, with;
    mallopt(M_TRIM_THRESHOLD, INT32_MAX); /* malloc keeps freed memory, so only its first use has page faults */
    void *arena = make_arena(connections);
    engine->run(&plan, arena, true, &bare);
    engine->run(&plan, arena, false, &with);
    report(&bare, &with);
    return 0;
}
