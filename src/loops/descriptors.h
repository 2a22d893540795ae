/* SPDX-License-Identifier: MIT
 *
 * The two Linux descriptors that a loop can wait for. A timerfd is readable from a set time on; an eventfd is
 * made readable by another thread. For the loops that watch descriptors: epoll and libevent.
 *
 * fork(). The descriptors of a child are other numbers for the parent's timerfd, eventfd and epoll set. What
 * the child sets, reads or takes out of the set is set, read or taken out for the parent. So a child that has
 * inherited a descriptor only closes it, and a child that sets a timerfd makes one of its own first. It must
 * not do so, but a program that attaches its wheel and then calls daemon() does.
 */
#ifndef TW_LOOPS_DESCRIPTORS_H
#define TW_LOOPS_DESCRIPTORS_H

#include <base/time.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct tw__loop_descriptor {
    int fd;
    pid_t process;   /* which made the descriptor */
    uint64_t set_ns; /* of a timerfd: the time for which it is set */
};

/* `fd` may be negative: the system had no descriptor left. */
static inline struct tw__loop_descriptor tw__loop_descriptor_of(int fd)
{
    return (struct tw__loop_descriptor){fd, getpid(), UINT64_MAX};
}

static inline struct tw__loop_descriptor tw__loop_timer_new(void)
{
    return tw__loop_descriptor_of(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
}

static inline struct tw__loop_descriptor tw__loop_event_new(void)
{
    return tw__loop_descriptor_of(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
}

/* Whether this process is a child of the one that made the descriptor. Cost: a system call. */
static inline bool tw__loop_is_inherited(const struct tw__loop_descriptor *descriptor)
{
    return descriptor->process != getpid();
}

/* Gives a child a timerfd of its own, under the number of the one that it has inherited. Returns false if the
 * system has no descriptor left. */
static inline bool tw__loop_timer_adopt(struct tw__loop_descriptor *timer)
{
    struct tw__loop_descriptor own = tw__loop_timer_new();
    bool made = own.fd >= 0;
    if (made) {
        dup2(own.fd, timer->fd);
        fcntl(timer->fd, F_SETFD, FD_CLOEXEC);
        close(own.fd);
        own.fd = timer->fd;
        *timer = own;
    }
    return made;
}

/* Whether a timerfd is left as it is: it is readable already, and is to be readable at once. */
static inline bool tw__loop_timer_stays(const struct tw__loop_descriptor *timer, uint64_t at_ns,
                                        uint64_t now_ns)
{
    return at_ns <= now_ns && timer->set_ns <= now_ns;
}

/* Makes a timerfd readable from `at_ns` on; UINT64_MAX: never. Setting a timerfd again makes it unreadable, so
 * no caller has to read it. */
static inline void tw__loop_timer_set(struct tw__loop_descriptor *timer, uint64_t at_ns)
{
    timer->set_ns = at_ns;
    struct itimerspec when = {.it_value = {0, 0}};
    if (at_ns != UINT64_MAX) {
        when.it_value.tv_sec = (time_t)(at_ns / TW__NS_PER_S);
        when.it_value.tv_nsec =
            at_ns == 0 ? 1 : (long)(at_ns % TW__NS_PER_S); /* zero in both would mean never */
    }
    timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &when, NULL);
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
