/* SPDX-License-Identifier: MIT
 *
 * The two Linux descriptors that a loop can wait for. A timerfd is readable from a set time on; an eventfd is
 * made readable by another thread. For the loops that watch descriptors: epoll and libevent.
 */
#ifndef TW_LOOPS_DESCRIPTORS_H
#define TW_LOOPS_DESCRIPTORS_H

#include <base/time.h>
#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static inline int tw__loop_timer_new(void)
{
    return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
}

/* Makes a timerfd readable from `at_ns` on; UINT64_MAX: never. *set_ns is the time for which the timerfd is
 * set, UINT64_MAX at first. Setting a timerfd again makes it unreadable, so no caller has to read it. If it
 * is readable already and is to be readable at once, the call leaves it as it is. */
static inline void tw__loop_timer_arm(int fd, uint64_t *set_ns, uint64_t at_ns, uint64_t now_ns)
{
    if (at_ns <= now_ns && *set_ns <= now_ns)
        return;
    *set_ns = at_ns;
    struct itimerspec when = {.it_value = {0, 0}};
    if (at_ns != UINT64_MAX) {
        when.it_value.tv_sec = (time_t)(at_ns / TW__NS_PER_S);
        when.it_value.tv_nsec =
            at_ns == 0 ? 1 : (long)(at_ns % TW__NS_PER_S); /* zero in both would mean never */
    }
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static inline int tw__loop_event_new(void)
{
    return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

/* Makes an eventfd readable, from any thread. It is readable afterwards in any case, so the result of write()
 * does not matter. */
static inline void tw__loop_event_raise(int fd)
{
    uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* Makes an eventfd unreadable. */
static inline void tw__loop_event_lower(int fd)
{
    uint64_t count;
    while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
}

#endif
