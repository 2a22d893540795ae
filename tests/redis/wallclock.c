// SPDX-License-Identifier: MIT
/* Clocks that a test can push or stop, to preload into redis-server.
 *
 * The file named by WALLCLOCK_FILE holds three signed 64-bit numbers: the milliseconds to add to the wall
 * clock, those to add to the monotonic clock, and the time in milliseconds at which the wall clock stands
 * still, or 0. A test writes other numbers while the server runs. Only the wall clock moves when an
 * administrator or NTP sets the time. The processor's time stays true. Valkey has a module look for functions
 * in the C library first. So a function that the module calls by itself, not through the server, returns the
 * true time there.
 *
 * (libfaketime would do the same, but its set-up allocates memory. The allocator of Debian's redis-server
 * asks for the time during its own set-up, so that neither set-up ends.) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { WALL, MONOTONIC, STANDS, NUMBERS };

static int64_t no_offset[NUMBERS];
static volatile int64_t *offset_ms = no_offset;

static void map_offset(void) __attribute__((constructor));

static void map_offset(void)
{
    const char *path = getenv("WALLCLOCK_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *page = mmap(NULL, sizeof no_offset, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED)
        offset_ms = page;
    close(file);
}

static int is_wall(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

static int64_t offset_of(clockid_t clock)
{
    if (is_wall(clock))
        return offset_ms[WALL];
    return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ? offset_ms[MONOTONIC] : 0;
}

/* The system call, not the C library's function, which this function replaces. The system call needs no
 * set-up, so it works during the set-up of any library. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    int64_t stands = is_wall(clock) ? offset_ms[STANDS] : 0; /* the test writes it last: it is read first */
    if (stands != 0) {
        now->tv_sec = stands / 1000, now->tv_nsec = stands % 1000 * 1000000;
        return 0;
    }
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    int64_t offset = result == 0 ? offset_of(clock) : 0;
    now->tv_sec += offset / 1000, now->tv_nsec += offset % 1000 * 1000000;
    if (now->tv_nsec < 0)
        now->tv_sec--, now->tv_nsec += 1000000000;
    if (now->tv_nsec >= 1000000000)
        now->tv_sec++, now->tv_nsec -= 1000000000;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result)
{
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (result)
        *result = exact.tv_sec;
    return exact.tv_sec;
}
