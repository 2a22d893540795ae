/* SPDX-License-Identifier: MIT
 *
 * Virtual time for loops that really wait. A descriptor that is always readable keeps a loop running, and
 * between two iterations the clock moves on. A timer descriptor knows nothing of that time. So
 * timerfd_settime() is found here first, and passes the call on with a time that never comes. When the
 * virtual time has come, it sets the descriptor to ring at once. So a loop pays the real cost of arming, and
 * one more system call when the descriptor rings.
 */
#include "beats.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static const uint64_t ns_per_ms = 1000000, ns_per_s = 1000000000, never = UINT64_MAX;
static uint64_t ms; /* virtual time */
static bool live;
static int ready_fd = -1, pace_fd = -1;
static int ring_fd = -1;              /* the loop's own timer descriptor, if it has one */
static uint64_t ring_ns = UINT64_MAX; /* when the descriptor rings, in the time that the loop sees */
static bool rung;                     /* it has rung, and the loop has not set it since */
static uint64_t arms;

typedef int settime_fn(int, int, const struct itimerspec *, struct itimerspec *);

/* The timerfd_settime of the C library, which is the next definition after ours. */
static settime_fn *real_settime(void)
{
    static settime_fn *real;
    void *symbol = real == NULL ? dlsym(RTLD_NEXT, "timerfd_settime") : NULL;
    if (symbol != NULL)
        memcpy(&real, &symbol, sizeof real);
    if (real == NULL)
        bench_fail("no timerfd_settime in the C library");
    return real;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / ns_per_s), (long)(ns % ns_per_s)};
}

static uint64_t ns_of(struct timespec time)
{
    return (uint64_t)time.tv_sec * ns_per_s + (uint64_t)time.tv_nsec;
}

/* Sets the kernel's timer to the time at which the descriptor must ring now. Live time is the kernel's time
 * plus a constant distance. */
static int pass_on(void)
{
    struct itimerspec at = {.it_value = {0, 0}};
    if (ring_ns != never && live)
        at.it_value = timespec_of(ring_ns - (uint64_t)bench_ahead_ns());
    else if (ring_ns != never)
        at.it_value = ring_ns <= bench_seen_ns() ? timespec_of(1) : timespec_of(UINT32_MAX * ns_per_s);
    return real_settime()(ring_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    if ((ring_fd >= 0 && fd != ring_fd) || old != NULL || ns_of(value->it_interval) != 0)
        bench_fail("a loop uses timer descriptors in a way that is not provided for");
    arms++;
    rung = false;
    ring_fd = fd;
    ring_ns = ns_of(value->it_value);
    if (ring_ns == 0)
        ring_ns = never;
    else if ((flags & TFD_TIMER_ABSTIME) == 0)
        ring_ns += bench_seen_ns();
    return pass_on();
}

void steer_on(uint64_t more)
{
    ms += more;
    bench_set_tick(ms);
    if (rung || ring_ns > bench_seen_ns())
        return;
    pass_on();
    rung = true;
}

uint64_t steer_ms(void)
{
    return ms;
}

uint64_t steer_arms(void)
{
    return arms;
}

/* ---- the network ----------------------------------------------------------------------------------------- */

static void set_ready(bool ready)
{
    uint64_t one = 1;
    ssize_t done = ready ? write(ready_fd, &one, sizeof one) : read(ready_fd, &one, sizeof one);
    if (done != sizeof one)
        bench_fail("an eventfd is not what it was");
}

static void set_pace(uint64_t pace_ms)
{
    struct itimerspec every = {.it_value = timespec_of(pace_ms * ns_per_ms)};
    every.it_interval = every.it_value;
    if (real_settime()(pace_fd, 0, &every, NULL) != 0)
        bench_fail("a timer descriptor cannot be set");
}

void steer_open(void)
{
    ready_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pace_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (ready_fd < 0 || pace_fd < 0)
        bench_fail("no descriptors");
    bench_set_tick(ms);
    bench_set_clock(BENCH_CLOCK_PAID);
    set_ready(true);
}

void steer_close(void)
{
    close(ready_fd);
    close(pace_fd);
    ring_fd = -1;
    ring_ns = never;
    rung = false;
}

int steer_ready_fd(void)
{
    return ready_fd;
}

int steer_pace_fd(void)
{
    return pace_fd;
}

uint64_t steer_paces(void)
{
    uint64_t paces;
    return read(pace_fd, &paces, sizeof paces) == sizeof paces ? paces : 0;
}

/* Switches the kind of time, and sets the loop's descriptor anew for it, unless the descriptor has rung. */
void steer_live(bool now_live)
{
    rung = rung || ring_ns <= bench_seen_ns();
    if (!now_live)
        while (bench_tick_ns(ms) < bench_seen_ns())
            ms++;
    bench_set_tick(ms);
    bench_set_clock(now_live ? BENCH_CLOCK_TRUE : BENCH_CLOCK_PAID);
    live = now_live;
    if (ring_fd >= 0 && !rung)
        pass_on();
    set_ready(!live);
    set_pace(live ? PACE_MS : 0);
}
