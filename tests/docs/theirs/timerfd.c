/* SPDX-License-Identifier: MIT
 *
 * docs/coming-from.md, the section on timerfd and epoll: its statements, on this kernel.
 */
#include "claim.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int set(int fd, int flags, uint64_t at_ns, uint64_t period_ns)
{
    const struct itimerspec spec = {
        .it_value = {.tv_sec = (time_t)(at_ns / 1000000000), .tv_nsec = (long)(at_ns % 1000000000)},
        .it_interval = {.tv_nsec = (long)period_ns},
    };
    return timerfd_settime(fd, flags, &spec, NULL);
}

static bool readable(int fd, int timeout_ms)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    return poll(&wanted, 1, timeout_ms) == 1;
}

static uint64_t expirations(int fd)
{
    uint64_t count = 0;
    return read(fd, &count, sizeof count) == sizeof count ? count : 0;
}

static bool delay_of_zero_disarms(int fd)
{
    return set(fd, 0, 0, 0) == 0 && !readable(fd, 20);
}

static bool past_is_at_once(int fd)
{
    return set(fd, TFD_TIMER_ABSTIME, 1, 0) == 0 && readable(fd, 0) && expirations(fd) == 1;
}

static bool one_read_counts_all(int fd)
{
    set(fd, 0, 2 * ms, 2 * ms);
    work_ns(11 * ms);
    const uint64_t count = expirations(fd);
    set(fd, 0, 0, 0);
    return count >= 5;
}

/* epoll_wait() has reported both; the handler of the first disarms the second. */
static bool reported_event_survives_disarming(int epoll_fd, const int fds[2])
{
    struct epoll_event events[2];
    for (int i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fds[i]};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fds[i], &event);
        set(fds[i], TFD_TIMER_ABSTIME, 1, 0);
    }
    const int found = epoll_wait(epoll_fd, events, 2, 1000);
    set(events[1].data.fd, 0, 0, 0);
    uint64_t count;
    return found == 2 && read(events[1].data.fd, &count, sizeof count) == -1 && errno == EAGAIN;
}

static bool bad_values_are_refused(int fd)
{
    const struct itimerspec whole_second = {.it_value.tv_nsec = 1000000000};
    const struct itimerspec negative = {.it_value.tv_sec = -1};
    return timerfd_settime(fd, 0, &whole_second, NULL) == -1 && errno == EINVAL &&
           timerfd_settime(fd, 0, &negative, NULL) == -1 && errno == EINVAL;
}

/* Closes them again: LeakSanitizer opens files when the program ends. */
static bool descriptors_run_out(void)
{
    enum { LIMIT = 32 };
    const struct rlimit limit = {.rlim_cur = LIMIT, .rlim_max = LIMIT};
    int fds[LIMIT], count = 0;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (count < LIMIT && (fds[count] = timerfd_create(CLOCK_MONOTONIC, 0)) != -1)
        count++;
    const bool out = count < LIMIT && errno == EMFILE;
    for (int i = 0; i < count; i++)
        close(fds[i]);
    return out;
}

int main(void)
{
    const int fds[2] = {timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK),
                        timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)};
    const int fd = fds[0];
    claim(delay_of_zero_disarms(fd), "a delay of 0 disarms: the timer never fires");
    claim(past_is_at_once(fd), "a time that has passed fires at once");
    claim(one_read_counts_all(fd), "one read() receives the number of all expirations since the last read()");
    claim(reported_event_survives_disarming(epoll_create1(0), fds),
          "an event that epoll_wait() has reported stays, though its timer is disarmed: read() fails with "
          "EAGAIN");
    claim(bad_values_are_refused(fd), "a negative delay, or a tv_nsec of a second, is EINVAL");
    claim(descriptors_run_out(), "each timer takes a descriptor: EMFILE");
    return 0;
}
