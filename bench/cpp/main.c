/* SPDX-License-Identifier: MIT
 *
 * cpp_bench ROUNDS OPERATIONS TIMERS...: runs every load in C and in C++, one after the other, round after
 * round. Prints a line for each figure: `round engine timers load ns`. If an engine does not fire the same
 * timers as the others, the run is void.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    run_fn *run;
} engines[] = {{"c", run_c}, {"c-again", run_c_again}, {"cpp", run_cpp}, {"cpp-raw", run_cpp_raw}};
enum { ENGINES = sizeof engines / sizeof *engines, TIMERS_MAX = 10000000, OBJECT = 64 };

#define LOAD_NAME(id, name, text) name,
static const char *const names[] = {LOAD_TABLE(LOAD_NAME)};
#undef LOAD_NAME

static void *memory;
static uint32_t *order;

static void *need_memory(size_t size)
{
    void *block = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    if (block != NULL)
        return block;
    fprintf(stderr, "cpp_bench: no memory\n");
    exit(1);
}

void *arena(size_t size)
{
    return memset(memory, 0, size);
}

const uint32_t *order_of(uint32_t timers)
{
    (void)timers;
    return order;
}

/* Shuffles the order with a fixed seed (Fisher and Yates). */
static void prepare(uint32_t timers)
{
    uint64_t state = 88172645463325252u;
    memory = need_memory((size_t)timers * OBJECT);
    order = need_memory((size_t)timers * sizeof *order);
    for (uint32_t i = 0; i < timers; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        uint32_t j = (uint32_t)(state % (i + 1));
        order[i] = order[j];
        order[j] = i;
    }
}

static void compare(const struct outcome *first, const struct outcome *outcome, const char *name)
{
    if (first->fired == outcome->fired && first->sum == outcome->sum)
        return;
    fprintf(stderr, "cpp_bench: %s fired %llu (sum %llu), C fired %llu (%llu): the run is void\n", name,
            (unsigned long long)outcome->fired, (unsigned long long)outcome->sum,
            (unsigned long long)first->fired, (unsigned long long)first->sum);
    exit(1);
}

/* Each round begins with another engine. Round 0 only warms up. */
static void run_round(unsigned round, uint32_t timers, uint32_t operations)
{
    struct outcome outcome[ENGINES];
    for (unsigned i = 0; i < ENGINES; i++) {
        unsigned e = (i + round) % ENGINES;
        engines[e].run(timers, operations, round + 1, &outcome[e]);
    }
    for (unsigned e = 0; e < ENGINES; e++) {
        compare(&outcome[0], &outcome[e], engines[e].name);
        for (unsigned load = 0; round > 0 && load < LOADS; load++)
            printf("%u\t%s\t%u\t%s\t%.5g\n", round, engines[e].name, timers, names[load], outcome[e].ns[load]);
    }
}

static uint32_t number(const char *name, const char *word, uint32_t most)
{
    char *end;
    unsigned long value = strtoul(word, &end, 10);
    if (*end == '\0' && value >= 1 && value <= most)
        return (uint32_t)value;
    fprintf(stderr, "cpp_bench: %s is '%s': expected 1 to %u\n", name, word, most);
    exit(2);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--build") == 0) {
        printf("compiler: gcc and g++ %s\nflags: %s; C++ the same, with -std=c++17\n", __VERSION__,
               BENCH_FLAGS);
        return 0;
    }
    if (argc < 4) {
        fprintf(stderr, "usage: cpp_bench ROUNDS OPERATIONS TIMERS...\n");
        return 2;
    }
    uint32_t rounds = number("ROUNDS", argv[1], 1000), operations = number("OPERATIONS", argv[2], UINT32_MAX);
    printf("round\tengine\ttimers\tload\tns\n");
    for (int i = 3; i < argc; i++) {
        uint32_t timers = number("TIMERS", argv[i], TIMERS_MAX);
        prepare(timers);
        for (unsigned round = 0; round <= rounds; round++)
            run_round(round, timers, operations);
        free(memory);
        free(order);
    }
    return 0;
}
