/* SPDX-License-Identifier: MIT
 *
 * The test of every loop, against the loop's real library. `kind` says which loop it is.
 *
 * Time is real here, but where it stands still while a test files timers, or until the loop sleeps. "Never
 * early" is strict, and measured on the clock itself; nothing is too late, for the machine may be busy. The
 * system calls in which a loop sleeps are defined here, ahead of the C library's: a test sees how often it
 * sleeps and until when, and a sleep of a minute from which nothing wakes it ends the test.
 */
#include "body.h"
#include "tests/support/eventually.h"
#include "tests/support/run.h"

#include <dlfcn.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

/* ---- the clock of this program and of the loop's library ------------------------------------------------- */

static _Atomic uint64_t stands_at_ns; /* 0: time passes */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    uint64_t ns = stands_at_ns;
    if (ns == 0 || clock == CLOCK_REALTIME)
        return (int)syscall(SYS_clock_gettime, clock, now);
    *now = (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    return 0;
}

uint64_t clock_now(void)
{
    const clockid_t clock = CLOCK_MONOTONIC;
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void clock_stand(void)
{
    stands_at_ns = clock_now();
}

void clock_go(void)
{
    stands_at_ns = 0;
}

/* ---- sleeping system calls, watched on the loop's thread ------------------------------------------------- */

enum { PATIENCE_MS = 1000 * EVENTUALLY_S, WAITS_MAX = 1000000 };
pthread_t loop_thread;
unsigned waits, sets;
uint64_t asked_ns, timer_ns;
int shortest_ms;
_Atomic bool loop_sleeps;

static void end_test(const char *why)
{
    fprintf(stderr, "%s: %s\n", kind.name, why);
    abort();
}

/* Notes until when the loop wants to sleep, and lets time pass. Returns the timeout, but at most a minute. */
static int begin_wait(int timeout_ms)
{
    if (!pthread_equal(pthread_self(), loop_thread))
        return timeout_ms;
    if (++waits > WAITS_MAX)
        end_test("the loop spins");
    if (timeout_ms == 0)
        return 0;
    asked_ns = timeout_ms < 0 ? UINT64_MAX : clock_now() + (uint64_t)timeout_ms * MS;
    asked_ns = timer_ns < asked_ns ? timer_ns : asked_ns;
    timeout_ms = timeout_ms < 0 || timeout_ms > PATIENCE_MS ? PATIENCE_MS : timeout_ms;
    shortest_ms = timeout_ms < shortest_ms ? timeout_ms : shortest_ms;
    clock_go();
    loop_sleeps = true;
    return timeout_ms;
}

static int end_wait(int ready, int timeout_ms)
{
    if (pthread_equal(pthread_self(), loop_thread)) {
        loop_sleeps = false;
        if (ready == 0 && timeout_ms == PATIENCE_MS)
            end_test("the loop slept for a minute, and nothing woke it");
    }
    return ready;
}

/* In C a function pointer and the result of dlsym() have different types. */
#define REAL(type, name)                                                                                       \
    static type *real;                                                                                         \
    if (real == NULL)                                                                                          \
    *(void **)&real = dlsym(RTLD_NEXT, name)

typedef int epoll_wait_fn(int, struct epoll_event *, int, int);
typedef int epoll_pwait_fn(int, struct epoll_event *, int, int, const sigset_t *);
typedef int poll_fn(struct pollfd *, nfds_t, int);
typedef int ppoll_fn(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

int epoll_wait(int fd, struct epoll_event *events, int room, int timeout_ms)
{
    REAL(epoll_wait_fn, "epoll_wait");
    timeout_ms = begin_wait(timeout_ms);
    return end_wait(real(fd, events, room, timeout_ms), timeout_ms);
}

int epoll_pwait(int fd, struct epoll_event *events, int room, int timeout_ms, const sigset_t *mask)
{
    REAL(epoll_pwait_fn, "epoll_pwait");
    timeout_ms = begin_wait(timeout_ms);
    return end_wait(real(fd, events, room, timeout_ms, mask), timeout_ms);
}

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    REAL(poll_fn, "poll");
    timeout_ms = begin_wait(timeout_ms);
    return end_wait(real(fds, n, timeout_ms), timeout_ms);
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    REAL(ppoll_fn, "ppoll");
    bool has_end = timeout != NULL && timeout->tv_sec < INT_MAX / 1000 - 1;
    int asked_ms = has_end ? (int)(timeout->tv_sec * 1000 + (timeout->tv_nsec + MS - 1) / MS) : -1;
    int timeout_ms = begin_wait(asked_ms);
    struct timespec minute = {EVENTUALLY_S, 0};
    return end_wait(real(fds, n, timeout_ms == asked_ms ? timeout : &minute, mask), timeout_ms);
}

int timerfd_settime(int of, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    static int (*real)(int, int, const struct itimerspec *, struct itimerspec *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "timerfd_settime");
    if (pthread_equal(pthread_self(), loop_thread)) {
        uint64_t at_ns = (uint64_t)value->it_value.tv_sec * NS_PER_S + (uint64_t)value->it_value.tv_nsec;
        sets++;
        if (flags == TFD_TIMER_ABSTIME) /* not a timerfd of the library's own */
            timer_ns = at_ns == 0 ? UINT64_MAX : at_ns;
    }
    return real(of, flags, value, old);
}

/* ---- calls that may fail --------------------------------------------------------------------------------- */

unsigned fail_at;

bool failing(void)
{
    return fail_at > 0 && --fail_at == 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);

void *__wrap_malloc(size_t size)
{
    return failing() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return failing() ? NULL : __real_calloc(n, size);
}

int __wrap_timerfd_create(int clock, int flags)
{
    return failing() ? -1 : __real_timerfd_create(clock, flags);
}

int __wrap_eventfd(unsigned count, int flags)
{
    return failing() ? -1 : __real_eventfd(count, flags);
}

/* ---- a loop with a wheel in it --------------------------------------------------------------------------- */

void *base;
struct tw_wheel *wheel;
struct tw_loop *loop;
int wake_fd;
struct tw_timer far, near;

static int set_up(void **state)
{
    (void)state;
    base = kind.open();
    wheel = wheel_of(NULL, 123456);
    wake_fd = __real_eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    loop_thread = pthread_self();
    timer_ns = UINT64_MAX;
    clock_go();
    return base == NULL || wake_fd < 0;
}

static int tear_down(void **state)
{
    (void)state;
    tw_loop_free(loop);
    loop = NULL;
    assert_null(tw_wheel_check(wheel));
    tw_wheel_free(wheel);
    kind.close(base);
    close(wake_fd);
    return 0;
}

void attach(tw_loop_due_fn *due, uint32_t budget)
{
    struct tw_loop_options options = {.due = due, .budget = budget};
    assert_int_equal(kind.attach(&loop, base, wheel, &options), 0);
    kind.owner(loop, NULL);
}

void done(void)
{
    if (!kind.ends)
        kind.stop(base);
}

void never(void *arg, struct tw_timer *timer)
{
    (void)arg;
    (void)timer;
    fail_msg("%s", "a far timer has fired");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_timers_are_not_early_not_missed_and_in_order),
        TEST(test_a_turn_is_bounded_and_other_events_come_in_between),
        TEST(test_the_rest_follows_at_once_when_nothing_else_happens),
        TEST(test_an_earlier_timer_comes_first),
        TEST(test_after_a_long_callback_nothing_is_early_or_late_or_spins),
        TEST(test_a_timer_of_the_loops_own_that_takes_too_long_lets_events_in),
        TEST(test_far_deadlines_let_the_loop_sleep),
        TEST(test_a_loop_ends_when_nothing_is_pending),
        TEST(test_a_wheel_is_taken_out_in_a_callback_and_put_in_again),
        TEST(test_a_wheel_is_taken_out_with_timers_pending),
        TEST(test_bad_options_are_refused),
        TEST(test_a_wheel_that_cannot_be_attached_leaves_nothing),
        TEST(test_an_executor_that_cannot_be_made_leaves_nothing),
        TEST(test_a_schedulers_callbacks_run_on_the_loops_thread),
        TEST(test_a_schedulers_callbacks_are_bounded_and_in_order),
        TEST(test_an_idle_executor_lets_the_loop_sleep),
        TEST(test_a_child_that_frees_all_takes_nothing),
        TEST(test_a_child_goes_on_with_the_wheel),
        TEST(test_a_child_that_meddles_takes_no_timer),
        TEST(test_the_loop_of_a_daemon_fires),
        TEST(test_a_daemon_without_a_descriptor_is_told),
        TEST(test_a_child_takes_no_wake_up),
        TEST(test_a_child_frees_an_executor),
        TEST(test_a_callback_runs_the_loop), /* the last: only of loops that nest */
    };
    return _cmocka_run_group_tests("loops", tests, sizeof tests / sizeof *tests - !kind.nests, NULL, NULL);
}
