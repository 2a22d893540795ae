/* SPDX-License-Identifier: MIT
 *
 * A clock that stands still until the test moves it, for a scheduler with threads. The linker puts it in place
 * of the calls that src/sched makes (see CMakeLists.txt): clock_gettime() tells the test's time, and
 * timerfd_settime() makes the descriptor readable once that time has come. Threads, locks and sleeps are real.
 * As no time passes by itself, a busy machine changes nothing, and a wake-up that is lost is never made up for.
 *
 * One scheduler at a time. Until clock_stand() the real clock is read.
 */
#ifndef TW_TESTS_SCHED_OWN_CLOCK_H
#define TW_TESTS_SCHED_OWN_CLOCK_H

#include "tests/support/cmocka.h"
#include "tests/support/eventually.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <tickwheel/sched.h>

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);

static struct {
    pthread_mutex_t lock;            /* guards the members up to the empty line */
    _Atomic uint64_t now_ns, set_ns; /* the time, and when the alarm of the timer thread comes */
    _Atomic int alarm_fd, event_fd;

    _Atomic bool stands;
    _Atomic int read_kind, alarm_kind; /* the clocks that the scheduler uses */
    _Atomic bool no_boottime;          /* the system does not know CLOCK_BOOTTIME */
    _Atomic bool no_boottime_timers;   /* or knows it, and has no timers on it */
    _Atomic bool asleep;               /* the timer thread sleeps */
    _Atomic long sleeps;               /* how often it has begun to */
    _Atomic long short_sleeps;         /* how many of them had a timeout, and so end though nothing happens */
    _Atomic int waiting; /* threads that wait for others: idle workers, cancel_wait(), stop() and free() */
    _Atomic long waits;  /* how often threads have begun to */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER, .now_ns = 1000000000000, .set_ns = UINT64_MAX};

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    uint64_t ns = own.now_ns;
    own.read_kind = clock;
    if (own.no_boottime && clock == CLOCK_BOOTTIME)
        return errno = EINVAL, -1;
    if (!own.stands)
        return __real_clock_gettime(clock, now);
    now->tv_sec = (time_t)(ns / 1000000000);
    now->tv_nsec = (long)(ns % 1000000000);
    return 0;
}

static inline void ring_if_due(void)
{
    const uint64_t one = 1;
    if (own.set_ns <= own.now_ns && write(own.alarm_fd, &one, sizeof one) != sizeof one)
        abort();
}

/* Lets time pass. Any thread may call it. */
static inline void pass(uint64_t ns)
{
    pthread_mutex_lock(&own.lock);
    own.now_ns += ns;
    ring_if_due();
    pthread_mutex_unlock(&own.lock);
}

int __wrap_timerfd_create(int clock, int flags)
{
    (void)flags;
    own.alarm_kind = clock;
    if (own.no_boottime_timers && clock == CLOCK_BOOTTIME)
        return errno = EINVAL, -1;
    if (!own.stands)
        return __real_timerfd_create(clock, flags);
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    own.alarm_fd = fd;
    return fd;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    uint64_t at_ns = (uint64_t)value->it_value.tv_sec * 1000000000 + (uint64_t)value->it_value.tv_nsec;
    uint64_t rung;
    if (!own.stands)
        return __real_timerfd_settime(fd, flags, value, old);
    pthread_mutex_lock(&own.lock);
    own.set_ns = at_ns == 0 ? UINT64_MAX : at_ns;
    while (read(fd, &rung, sizeof rung) > 0) /* the alarm that was set before comes no more */
        continue;
    ring_if_due();
    pthread_mutex_unlock(&own.lock);
    return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    own.event_fd = fds[1].fd;
    own.short_sleeps += timeout_ms >= 0;
    own.sleeps++;
    own.asleep = true;
    int ready = __real_poll(fds, n, timeout_ms);
    own.asleep = false;
    return ready;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    own.waits++;
    own.waiting++;
    int error = __real_pthread_cond_wait(cond, lock);
    own.waiting--;
    return error;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    own.waiting++;
    int error = __real_pthread_join(thread, result);
    own.waiting--;
    return error;
}

/* Makes a scheduler on this clock, of which no time passes. */
static inline struct tw_sched *still_sched(struct tw_sched_options options)
{
    struct tw_sched *sched = NULL;
    own.stands = true;
    own.set_ns = UINT64_MAX;
    own.asleep = false;
    own.sleeps = 0;
    own.short_sleeps = 0;
    own.waits = 0;
    own.waiting = 0;
    assert_int_equal(tw_sched_new(&sched, &options), 0);
    return sched;
}

/* Whether the timer thread sleeps, and will do so until time passes or somebody wakes it. */
static inline bool sleeps_on(void)
{
    long sleep = own.sleeps;
    struct pollfd fds[] = {{.fd = own.alarm_fd, .events = POLLIN}, {.fd = own.event_fd, .events = POLLIN}};
    return own.asleep && own.set_ns > own.now_ns && __real_poll(fds, 2, 0) == 0 && own.asleep &&
           own.sleeps == sleep;
}

#define settle() EVENTUALLY_TOLD(sleeps_on(), "it has begun %ld sleeps", own.sleeps)

#endif
