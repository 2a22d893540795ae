/* SPDX-License-Identifier: MIT
 *
 * Time as the event loops see it. They call clock_gettime() and gettimeofday(), and the linker finds these
 * here first.
 */
#include "clock.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { START_S = 1000, NS_PER_S = 1000000000, NS_PER_TICK = 1000000 };
static struct timespec seen = {.tv_sec = START_S, .tv_nsec = NS_PER_TICK / 2};
static enum bench_clock answered = BENCH_CLOCK_TICKS;
static int64_t ahead_ns; /* the seen time minus the true time, while time passes */

static uint64_t ns_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_nsec;
}

static void set_ns(struct timespec *time, uint64_t ns)
{
    time->tv_sec = (time_t)(ns / NS_PER_S);
    time->tv_nsec = (long)(ns % NS_PER_S);
}

uint64_t bench_tick_ns(uint64_t tick)
{
    return START_S * (uint64_t)NS_PER_S + tick * NS_PER_TICK + NS_PER_TICK / 2;
}

void bench_set_tick(uint64_t tick)
{
    set_ns(&seen, bench_tick_ns(tick));
}

typedef int clock_fn(clockid_t, struct timespec *);

/* The clock_gettime of the C library, which is the next definition after ours. */
static clock_fn *find_real_clock(void)
{
    clock_fn *found;
    void *symbol = dlsym(RTLD_NEXT, "clock_gettime");
    if (symbol == NULL) {
        fprintf(stderr, "bench: no clock_gettime in the C library\n");
        exit(1);
    }
    memcpy(&found, &symbol, sizeof found);
    return found;
}

static int real_clock(clockid_t id, struct timespec *time)
{
    static clock_fn *real;
    if (real == NULL)
        real = find_real_clock();
    return real(id, time);
}

/* The kernel's clocks differ in cost and in resolution, so this reads the clock that the caller asks for. All
 * of them show the same time. */
int clock_gettime(clockid_t id, struct timespec *time)
{
    int error = 0;
    if (answered != BENCH_CLOCK_TICKS)
        error = real_clock(id == CLOCK_REALTIME ? CLOCK_MONOTONIC : id, time);
    if (answered == BENCH_CLOCK_TRUE)
        set_ns(time, ns_of(time) + (uint64_t)ahead_ns);
    else
        *time = seen;
    return error;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    int error = clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return error;
}

uint64_t bench_real_ns(void)
{
    struct timespec now;
    real_clock(CLOCK_MONOTONIC, &now);
    return ns_of(&now);
}

uint64_t bench_seen_ns(void)
{
    return answered == BENCH_CLOCK_TRUE ? bench_real_ns() + (uint64_t)ahead_ns : ns_of(&seen);
}

int64_t bench_ahead_ns(void)
{
    return ahead_ns;
}

void bench_set_clock(enum bench_clock clock)
{
    ahead_ns = (int64_t)(bench_seen_ns() - bench_real_ns());
    answered = clock;
}

size_t bench_heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

void *bench_alloc(size_t size)
{
    void *memory = malloc(size > 0 ? size : 1);
    if (memory == NULL) {
        fprintf(stderr, "bench: no memory for %zu bytes\n", size);
        exit(1);
    }
    return memory;
}
