/* SPDX-License-Identifier: MIT
 *
 * Time for the scheduler: reading a clock, sleeping on it, being woken.
 *
 * Ticks. Tick 0 begins when the scheduler is made. A due time becomes the first tick that does not begin
 * before it (the ceiling). The current time becomes the tick that has begun (the floor). A task runs when
 * floor(now) has reached ceiling(due), so now >= due: never early, and less than a tick late.
 *
 * Example: the tick is 1 ms and the scheduler was made at 5,000.0 ms. A task is due at 5,001.7 ms.
 *
 *     time       5,000.0   5,001.0   5,002.0     due: ceiling(1.7) = 2
 *     tick       |0        |1     ^  |2
 *     due                         5,001.7
 *
 * At 5,001.9 ms the floor is 1, so the task does not run yet. At 5,002.0 ms the floor is 2 and the task runs,
 * 0.3 ms after its due time.
 *
 * Sleeping. The timer thread sleeps in poll() on two descriptors. A timerfd ends the sleep when the tick
 * begins, also on CLOCK_BOOTTIME. An eventfd ends it when another thread calls tw__sched_clock_wake(). The
 * eventfd remembers: if the wake-up comes before the sleep, the sleep ends at once.
 *
 * Rejected: a sleep with a timeout, as in poll() and pthread_cond_timedwait(), because no such timeout counts
 * on CLOCK_BOOTTIME. clock_nanosleep() knows that clock, but only a signal can wake its thread.
 *
 * Systems without timers on CLOCK_BOOTTIME: Linux before 3.15, some emulators and sandboxes. There the default
 * clock is CLOCK_MONOTONIC, on which all other timers of such a system run too.
 */
#include "clock.h"

#include <base/time.h>
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static clockid_t clock_of(const struct tw_sched *sched)
{
    return sched->options.clock == TW_SCHED_CLOCK_BOOTTIME ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
}

uint64_t tw__sched_clock_read(const struct tw_sched *sched)
{
    struct timespec now;
    if (sched->options.clock == TW_SCHED_CLOCK_VIRTUAL)
        return atomic_load_explicit(&sched->virtual_ns, memory_order_relaxed);
    clock_gettime(clock_of(sched), &now);
    return (uint64_t)now.tv_sec * TW__NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t tw__sched_tick_due(const struct tw_sched *sched, uint64_t due_ns)
{
    if (due_ns <= sched->base_ns)
        return 0;
    if (due_ns == UINT64_MAX)
        return TW_NEVER;
    return (due_ns - sched->base_ns - 1) / sched->options.tick_ns + 1;
}

uint64_t tw__sched_tick_now(const struct tw_sched *sched, uint64_t now_ns)
{
    return (now_ns - sched->base_ns) / sched->options.tick_ns;
}

uint64_t tw__sched_tick_start(const struct tw_sched *sched, uint64_t tick)
{
    uint64_t ns;
    if (__builtin_mul_overflow(tick, sched->options.tick_ns, &ns))
        return UINT64_MAX;
    return tw__add_saturating(ns, sched->base_ns);
}

uint64_t tw_sched_now(const struct tw_sched *sched)
{
    TW_ASSERT(tw__sched_usable(sched));
    return tw__sched_clock_read(sched);
}

/* ---- sleeping -------------------------------------------------------------------------------------------- */

/* Makes a timer on a clock, which the scheduler then reads. Returns: 0; TW_ECLOCK: the system has no timers on
 * CLOCK_BOOTTIME, or does not know that clock; TW_ESYSTEM: any other failure. */
static int open_timer(struct tw_sched *sched, enum tw_sched_clock clock)
{
    struct timespec now;
    sched->options.clock = clock;
    if (clock_gettime(clock_of(sched), &now) == 0)
        sched->timer_fd = timerfd_create(clock_of(sched), TFD_NONBLOCK | TFD_CLOEXEC);
    if (sched->timer_fd >= 0)
        return 0;
    bool no_room = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    return clock == TW_SCHED_CLOCK_BOOTTIME && !no_room ? TW_ECLOCK : TW_ESYSTEM;
}

static int open_descriptors(struct tw_sched *sched)
{
    enum tw_sched_clock wanted = sched->options.clock;
    int error = open_timer(sched, wanted == TW_SCHED_CLOCK_AUTO ? TW_SCHED_CLOCK_BOOTTIME : wanted);
    if (error == TW_ECLOCK && wanted == TW_SCHED_CLOCK_AUTO)
        error = open_timer(sched, TW_SCHED_CLOCK_MONOTONIC);
    if (error != 0)
        return error;
    sched->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return sched->event_fd >= 0 ? 0 : TW_ESYSTEM;
}

int tw__sched_clock_open(struct tw_sched *sched)
{
    sched->timer_fd = sched->event_fd = -1;
    int error = sched->options.clock == TW_SCHED_CLOCK_VIRTUAL ? 0 : open_descriptors(sched);
    if (error != 0)
        tw__sched_clock_close(sched);
    else
        sched->base_ns = tw__sched_clock_read(sched);
    return error;
}

void tw__sched_clock_close(struct tw_sched *sched)
{
    if (sched->timer_fd >= 0)
        close(sched->timer_fd);
    if (sched->event_fd >= 0)
        close(sched->event_fd);
    sched->timer_fd = sched->event_fd = -1;
}

/* Sets the timerfd to a time; 0, and any time from INT64_MAX on, mean never. */
static void set_timer(const struct tw_sched *sched, uint64_t at_ns)
{
    struct itimerspec when = {.it_value = {0, 0}};
    if (at_ns < (uint64_t)INT64_MAX) {
        when.it_value.tv_sec = (time_t)(at_ns / TW__NS_PER_S);
        when.it_value.tv_nsec = (long)(at_ns % TW__NS_PER_S);
    }
    timerfd_settime(sched->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Resets the count of a descriptor, so that poll() waits again. The count itself does not matter. */
static void take_count(int fd)
{
    uint64_t count;
    while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
}

void tw__sched_clock_sleep(struct tw_sched *sched, uint64_t tick)
{
    struct pollfd fds[] = {{.fd = sched->timer_fd, .events = POLLIN},
                           {.fd = sched->event_fd, .events = POLLIN}};
    set_timer(sched, tick == TW_NEVER ? UINT64_MAX : tw__sched_tick_start(sched, tick));
    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        ;
    take_count(sched->timer_fd);
    take_count(sched->event_fd);
}

void tw__sched_clock_wake(struct tw_sched *sched)
{
    uint64_t one = 1;
    if (sched->event_fd < 0)
        return;
    while (write(sched->event_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}
