/* SPDX-License-Identifier: MIT
 *
 * Time as the event loops see it. They ask clock_gettime() and gettimeofday(), and these definitions come before the
 * C library's: the loops live in virtual time, tick by tick, without a change to them. Their epoll finds nothing and
 * costs nothing, so no system call is charged to a timer.
 */
#include "bench.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>

enum { START_S = 1000 };
static struct timespec seen = {.tv_sec = START_S, .tv_nsec = 500000};

void bench_set_tick(uint64_t tick)
{
    seen.tv_sec = (time_t)(START_S + tick / 1000);
    seen.tv_nsec = (long)(tick % 1000 * 1000000 + 500000);
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    (void)id;
    *time = seen;
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    (void)zone;
    time->tv_sec = seen.tv_sec;
    time->tv_usec = seen.tv_nsec / 1000;
    return 0;
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
    (void)fd, (void)events, (void)max, (void)timeout;
    return 0;
}

int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
    (void)mask;
    return epoll_wait(fd, events, max, timeout);
}

typedef int clock_fn(clockid_t, struct timespec *);

/* The C library's own clock_gettime, which is the next one after ours. */
static clock_fn *real_clock(void)
{
    clock_fn *found;
    void *symbol = dlsym(RTLD_NEXT, "clock_gettime");
    if (symbol == NULL) {
        fprintf(stderr, "wheel_bench: no clock_gettime in the C library\n");
        exit(1);
    }
    memcpy(&found, &symbol, sizeof found);
    return found;
}

uint64_t bench_real_ns(void)
{
    static clock_fn *real;
    struct timespec now;
    if (real == NULL)
        real = real_clock();
    real(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
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
        fprintf(stderr, "wheel_bench: no memory for %zu bytes\n", size);
        exit(1);
    }
    return memory;
}
