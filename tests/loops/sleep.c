/* SPDX-License-Identifier: MIT
 *
 * Every loop: its own timer is set for the wheel's earliest timer, and the loop sleeps until then.
 */
#include "body.h"
#include "tests/support/eventually.h"

#include <limits.h>

static uint64_t near_ns;

static void add_near(void)
{
    uint64_t taken;
    assert_int_equal(read(wake_fd, &taken, sizeof taken), sizeof taken);
    kind.unwatch(base);
    near_ns = clock_now() + 20 * MS;
    assert_int_equal(tw_loop_add_at(loop, &near, near_ns), 0);
}

static void on_near(void *arg, struct tw_timer *timer)
{
    (void)arg;
    assert_ptr_equal(timer, &near);
    assert_true(clock_now() >= near_ns);
    assert_true(tw_loop_cancel(loop, &far));
    done();
}

void test_an_earlier_timer_comes_first(void **state)
{
    (void)state;
    const uint64_t one = 1;
    memset(&far, 0, sizeof far);
    memset(&near, 0, sizeof near);
    attach(on_near, 0);
    assert_int_equal(tw_loop_add_in(loop, &far, UINT64_C(300000000000)), 0);
    assert_int_equal(write(wake_fd, &one, sizeof one), sizeof one);
    kind.watch(base, wake_fd, add_near);
    kind.run(base);
    assert_int_equal(tw_wheel_count(wheel), 0);
}

/* Takes so long as a busy callback does. */
static void take(uint64_t ns)
{
    for (uint64_t end_ns = clock_now() + ns; clock_now() < end_ns;)
        ;
}

static uint64_t slept_on_ns; /* the most by which a sleep was to end after the timer was due */

/* The loops note the time when an iteration begins. After a long callback, a timer that is counted from the
 * time noted is early, and a sleep that is counted from it ends too late. */
static void after_long(void *arg, struct tw_timer *timer)
{
    (void)arg;
    uint64_t now_ns = clock_now();
    assert_true(now_ns >= near_ns);
    if (calls > 0 && asked_ns > near_ns + slept_on_ns)
        slept_on_ns = asked_ns - near_ns;
    if (++calls == 8) {
        done();
        return;
    }
    take(15 * MS);
    clock_stand(); /* until the loop sleeps: so its sleep says from which time it was counted */
    near_ns = clock_now() + 3 * MS + 700 * US;
    assert_int_equal(tw_loop_add_at(loop, timer, near_ns), 0);
}

void test_after_a_long_callback_nothing_is_early_or_late_or_spins(void **state)
{
    (void)state;
    memset(&near, 0, sizeof near);
    calls = 0;
    attach(after_long, 0);
    near_ns = clock_now();
    assert_int_equal(tw_loop_add_in(loop, &near, 0), 0);
    slept_on_ns = 0;
    waits = 0;
    kind.run(base);
    assert_int_equal(calls, 8);
    assert_in_range(slept_on_ns, 0, 4 * MS); /* a tick, and the loops' milliseconds */
    assert_in_range(waits, 7, 8 + 5);        /* one for each timer, and some for the loop itself */
}

static void stop_watching(void)
{
    uint64_t taken;
    assert_int_equal(read(wake_fd, &taken, sizeof taken), sizeof taken);
    kind.unwatch(base);
    kind.stop(base);
}

static unsigned events_seen;

static void see_event(void)
{
    events_seen += calls > 0;
}

/* A callback that takes longer than its timer's period, and sets the loop's timer again. */
static bool overworked(void)
{
    take(2 * MS);
    tw_loop_cancel(loop, &far);
    assert_int_equal(tw_loop_add_in(loop, &far, UINT64_C(5000000000)), 0);
    if (++calls < 20)
        return true;
    kind.unwatch(base);
    tw_loop_cancel(loop, &far);
    return false;
}

void test_a_timer_of_the_loops_own_that_takes_too_long_lets_events_in(void **state)
{
    (void)state;
    const uint64_t one = 1;
    if (kind.often == NULL)
        return;
    memset(&far, 0, sizeof far);
    calls = events_seen = 0;
    attach(never, 0);
    assert_int_equal(write(wake_fd, &one, sizeof one), sizeof one);
    kind.watch(base, wake_fd, see_event);
    kind.often(base, overworked);
    kind.run(base);
    assert_int_equal(calls, 20);
    assert_true(events_seen >= 10); /* events came between two calls, although a call is always due */
}

static void *wake_sleeper(void *arg)
{
    const uint64_t one = 1;
    (void)arg;
    EVENTUALLY(loop_sleeps);
    EVENTUALLY(write(wake_fd, &one, sizeof one) == sizeof one);
    return NULL;
}

void sleep_in_loop(void)
{
    pthread_t thread;
    kind.watch(base, wake_fd, stop_watching);
    assert_int_equal(pthread_create(&thread, NULL, wake_sleeper, NULL), 0);
    waits = 0;
    shortest_ms = INT_MAX;
    kind.run(base);
    eventually_joined(thread);
    assert_in_range(waits, 1, 6);
    assert_true(shortest_ms >= 30000);
    assert_true(timer_ns >= clock_now() + UINT64_C(30000000000));
}

void test_far_deadlines_let_the_loop_sleep(void **state)
{
    (void)state;
    const uint64_t day_ns = UINT64_C(86400000000000);
    const uint64_t far_ns[] = {UINT64_MAX,  UINT64_MAX / 2, 365 * 100 * day_ns,
                               50 * day_ns, 25 * day_ns,    day_ns / 24};
    static struct tw_timer timers[sizeof far_ns / sizeof far_ns[0]];
    attach(never, 0);
    for (size_t i = 0; i < sizeof far_ns / sizeof far_ns[0]; i++) {
        assert_int_equal(tw_loop_add_in(loop, &timers[i], far_ns[i]), 0);
        if (i == 2 || i == 5)
            sleep_in_loop();
    }
    assert_int_equal(tw_wheel_count(wheel), sizeof far_ns / sizeof far_ns[0]);
}
