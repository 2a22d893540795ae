/* SPDX-License-Identifier: MIT
 *
 * Each thread counts on a cache line of its own, so that workers do not wait for each other's counts. The
 * sum of the lines is taken rarely until it comes near the expected number, and then after every firing, so
 * that the last firing is seen at once.
 *
 * Example: two workers, 1,000,000 firings. Each worker takes the sum after every 256th firing of its own.
 * The sum is at least 1,000,000 - 2 * 256 before the last firing, because no thread makes more than 255
 * firings between two looks. From there on both threads look after every firing.
 */
#include "tally.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LINES = 256, LOOK_EVERY = 256, NS_PER_S = 1000000000 };

struct line {
    _Alignas(64) _Atomic size_t count;
    uint64_t first_ns; /* the time of this thread's first firing */
};

static struct line lines[LINES];
static _Atomic size_t threads; /* lines in use */
static size_t expected;
static atomic_bool near_end;
static uint64_t last_ns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t complete = PTHREAD_COND_INITIALIZER;

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static struct line *my_line(void)
{
    static _Thread_local struct line *mine;
    if (mine != NULL)
        return mine;
    size_t number = atomic_fetch_add(&threads, 1);
    if (number >= LINES) {
        fprintf(stderr, "sched_bench: more than %d threads have fired tasks\n", LINES);
        exit(1);
    }
    return mine = &lines[number];
}

static size_t sum(void)
{
    size_t all = 0, count = atomic_load(&threads);
    for (size_t i = 0; i < count; i++)
        all += atomic_load(&lines[i].count);
    return all;
}

void tally_begin(size_t firings)
{
    for (size_t i = 0; i < LINES; i++)
        atomic_store(&lines[i].count, 0);
    expected = firings;
    last_ns = 0;
    atomic_store(&near_end, firings <= LINES * (size_t)LOOK_EVERY);
}

/* Looks at the sum, and ends the wait if this firing was the last. */
static void look(void)
{
    size_t all = sum();
    if (all + atomic_load(&threads) * LOOK_EVERY >= expected)
        atomic_store(&near_end, true);
    if (all < expected)
        return;
    pthread_mutex_lock(&lock);
    if (last_ns == 0)
        last_ns = now_ns();
    pthread_cond_signal(&complete);
    pthread_mutex_unlock(&lock);
}

void tally_count(void)
{
    struct line *mine = my_line();
    size_t before = atomic_load_explicit(&mine->count, memory_order_relaxed);
    if (before == 0)
        mine->first_ns = now_ns();
    bool often = atomic_load_explicit(&near_end, memory_order_relaxed);
    if (!often && (before + 1) % LOOK_EVERY != 0) {
        atomic_store_explicit(&mine->count, before + 1, memory_order_relaxed);
        return;
    }
    atomic_store(&mine->count, before + 1);
    look();
}

size_t tally_wait(void)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 60;
    pthread_mutex_lock(&lock);
    while (last_ns == 0 && pthread_cond_timedwait(&complete, &lock, &limit) == 0)
        ;
    pthread_mutex_unlock(&lock);
    return sum();
}

uint64_t tally_span_ns(void)
{
    uint64_t first_ns = UINT64_MAX;
    for (size_t i = 0; i < atomic_load(&threads); i++)
        if (atomic_load(&lines[i].count) > 0 && lines[i].first_ns < first_ns)
            first_ns = lines[i].first_ns;
    return last_ns - first_ns;
}
