/* SPDX-License-Identifier: MIT
 *
 * What docs/coming-from.md says about another library, held to that library as Debian has it.
 *
 * A claim of the form "it may happen" is tried some times, because a busy machine can hide it: a timer that is
 * early by the length of a callback is not early if the machine woke it late. One time is enough.
 */
#ifndef TICKWHEEL_TESTS_DOCS_CLAIM_H
#define TICKWHEEL_TESTS_DOCS_CLAIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CLAIM_TRIES = 100, CLAIM_EQUALS = 8 };

static const uint64_t ms = 1000000;

static inline uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A callback that takes long. */
static inline void work_ns(uint64_t ns)
{
    const uint64_t until = clock_ns() + ns;
    while (clock_ns() < until)
        ;
}

static inline void claim(bool holds, const char *sentence)
{
    printf("%s: %s\n", holds ? "ok" : "not so, although docs/coming-from.md says it", sentence);
    if (!holds)
        exit(1);
}

/* Tries until the claim is seen. */
static inline void claim_seen(bool seen(void), const char *sentence)
{
    int tries = 0;
    while (tries < CLAIM_TRIES && !seen())
        tries++;
    claim(tries < CLAIM_TRIES, sentence);
}

/* The order in which timers with equal due times were called. */
struct calls {
    int order[CLAIM_EQUALS];
    int count;
};

static inline void called(struct calls *calls, int number)
{
    calls->order[calls->count++] = number;
}

static inline bool in_filing_order(const struct calls *calls)
{
    for (int i = 0; i < calls->count; i++)
        if (calls->order[i] != i)
            return false;
    return calls->count == CLAIM_EQUALS;
}

/* Whether two points in time are a whole number of periods apart, to the millisecond. */
static inline bool in_phase(uint64_t first_ns, uint64_t second_ns, uint64_t period_ns)
{
    const uint64_t off = (second_ns - first_ns) % period_ns;
    return off < ms || off > period_ns - ms;
}

#endif
