/* SPDX-License-Identifier: MIT
 *
 * The time of tickwheel_timed, which is the command with these functions in place of the system's (--wrap). The
 * clocks stand still until a test moves them (clock.py), by a file of 64-bit numbers that both have mapped. A
 * thread that waits for descriptors or for time is a sleeper. It looks about each millisecond, and notes for
 * the test the last round in which it found nothing, and when it is due. Without the file, all time is real.
 */
#include <poll.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { SLEEPERS = 1024, TIMERS = 8, SECOND_NS = 1000000000, MS_NS = 1000000, BOOT_S = 1000 };

/* As clock.py has it. */
struct shared {
    _Atomic int64_t now_ns;  /* since the clock was made */
    _Atomic int64_t wall_ns; /* the date at which it was made */
    _Atomic int64_t round;   /* a number for the sleepers to note */
    _Atomic int64_t events;  /* sleeps that have ended */
    _Atomic int64_t count;
    struct {
        _Atomic int64_t process, round, due_ns;
    } sleeper[SLEEPERS];
};

struct timer {
    int fd;
    clockid_t clock;
    _Atomic int64_t due_ns;
};

static struct shared *shared; /* NULL: real time */
static struct timer timers[TIMERS];
static _Atomic int timer_count;
static _Thread_local int me = -1;

int __real_poll(struct pollfd *fds, nfds_t count, int wait_ms);
int __real_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *wait, const sigset_t *mask);
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __real_nanosleep(const struct timespec *wait, struct timespec *left);
int __real_timerfd_create(clockid_t clock, int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);
int __wrap_poll(struct pollfd *fds, nfds_t count, int wait_ms);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *wait, const sigset_t *mask);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_nanosleep(const struct timespec *wait, struct timespec *left);
int __wrap_timerfd_create(clockid_t clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);

static void require(bool good, const char *text)
{
    if (good)
        return;
    fprintf(stderr, "clock.c: %s\n", text);
    abort();
}

__attribute__((constructor)) static void map_shared(void)
{
    const char *path = getenv("TICKWHEEL_CLOCK");
    if (path == NULL)
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    require(fd >= 0, "TICKWHEEL_CLOCK names no file");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    require(shared != MAP_FAILED, "the file of the clock is not mapped");
    close(fd);
}

/* ---- clocks ---------------------------------------------------------------------------------------------- */

/* The time of a clock at which the test made it. */
static int64_t base_ns(clockid_t clock)
{
    return clock == CLOCK_REALTIME ? shared->wall_ns : (int64_t)BOOT_S * SECOND_NS;
}

static int64_t ns_of(const struct timespec *time)
{
    return time->tv_sec < INT64_MAX / SECOND_NS - 1 ? (int64_t)time->tv_sec * SECOND_NS + time->tv_nsec
                                                    : INT64_MAX;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    if (shared == NULL || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME))
        return __real_clock_gettime(clock, now);
    int64_t ns = base_ns(clock) + shared->now_ns;
    *now = (struct timespec){ns / SECOND_NS, ns % SECOND_NS};
    return 0;
}

/* ---- timers ---------------------------------------------------------------------------------------------- */

int __wrap_timerfd_create(clockid_t clock, int flags)
{
    int fd = __real_timerfd_create(clock, flags);
    if (shared == NULL || fd < 0)
        return fd;
    int i = timer_count++;
    require(i < TIMERS, "there are too many timers");
    timers[i] = (struct timer){fd, clock, INT64_MAX};
    return fd;
}

static struct timer *timer_of(int fd)
{
    for (int i = timer_count - 1; i >= 0; i--)
        if (timers[i].fd == fd)
            return &timers[i];
    return NULL;
}

/* The system's timer is set when a sleeper finds that the time has come. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before)
{
    static const struct itimerspec never;
    if (shared == NULL)
        return __real_timerfd_settime(fd, flags, at, before);
    struct timer *timer = timer_of(fd);
    require(timer != NULL && (flags & TFD_TIMER_ABSTIME) != 0, "a timer is not as the tests know it");
    int64_t ns = ns_of(&at->it_value);
    timer->due_ns = ns == 0 || ns == INT64_MAX ? INT64_MAX : ns - base_ns(timer->clock);
    return __real_timerfd_settime(fd, 0, &never, before);
}

/* Sets off those that are due among the descriptors. Returns when the next one is due: now, if one is. */
static int64_t set_off(const struct pollfd *fds, nfds_t count, int64_t now_ns)
{
    static const struct itimerspec at_once = {.it_value = {0, 1}};
    int64_t next_ns = INT64_MAX;
    for (nfds_t i = 0; i < count; i++) {
        struct timer *timer = fds[i].fd >= 0 ? timer_of(fds[i].fd) : NULL;
        if (timer == NULL)
            continue;
        if (timer->due_ns <= now_ns) {
            timer->due_ns = INT64_MAX;
            __real_timerfd_settime(timer->fd, 0, &at_once, NULL);
            next_ns = now_ns;
        }
        next_ns = timer->due_ns < next_ns ? timer->due_ns : next_ns;
    }
    return next_ns;
}

/* ---- sleepers -------------------------------------------------------------------------------------------- */

static void become_sleeper(void)
{
    if (me >= 0)
        return;
    me = (int)shared->count++;
    require(me < SLEEPERS, "there are too many sleepers");
    shared->sleeper[me].process = getpid();
}

/* Sleeps until `end_ns`, or until a descriptor is ready. */
static int rest_until(struct pollfd *fds, nfds_t count, int64_t end_ns)
{
    become_sleeper();
    for (;;) {
        int64_t round = shared->round, now_ns = shared->now_ns;
        int64_t next_ns = set_off(fds, count, now_ns);
        int ready = __real_poll(fds, count, next_ns <= now_ns ? -1 : now_ns < end_ns);
        if (ready != 0 || now_ns >= end_ns) {
            shared->events++;
            return ready;
        }
        shared->sleeper[me].due_ns = next_ns < end_ns ? next_ns : end_ns;
        shared->sleeper[me].round = round;
    }
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int wait_ms)
{
    if (shared == NULL || wait_ms == 0)
        return __real_poll(fds, count, wait_ms);
    return rest_until(fds, count, wait_ms < 0 ? INT64_MAX : shared->now_ns + (int64_t)wait_ms * MS_NS);
}

static int64_t end_of(const struct timespec *wait)
{
    int64_t ns = ns_of(wait), now_ns = shared->now_ns;
    return ns < INT64_MAX - now_ns ? now_ns + ns : INT64_MAX;
}

int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *wait, const sigset_t *mask)
{
    if (shared == NULL)
        return __real_ppoll(fds, count, wait, mask);
    require(mask == NULL, "ppoll() has a mask");
    return rest_until(fds, count, end_of(wait));
}

/* A sleep of less than a millisecond lets other threads go on, and takes no time. */
int __wrap_nanosleep(const struct timespec *wait, struct timespec *left)
{
    if (shared == NULL || ns_of(wait) < MS_NS)
        return __real_nanosleep(wait, left);
    int64_t end_ns = end_of(wait); /* `left` may be the same as `wait` */
    if (left != NULL)
        *left = (struct timespec){0, 0};
    return rest_until(NULL, 0, end_ns);
}
