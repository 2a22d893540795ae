/* SPDX-License-Identifier: MIT
 *
 * Every loop: the loop ends when no timer is pending, a wheel can be taken out of it, and a callback can run
 * it.
 */
#include "body.h"

static void cancel_far(void *arg, struct tw_timer *timer)
{
    (void)arg;
    (void)timer;
    assert_true(tw_loop_cancel(loop, &far));
    done();
}

void test_a_loop_ends_when_nothing_is_pending(void **state)
{
    (void)state;
    memset(&far, 0, sizeof far);
    memset(&near, 0, sizeof near);
    attach(cancel_far, 0);
    assert_int_equal(tw_loop_add_in(loop, &far, UINT64_C(300000000000)), 0);
    assert_int_equal(tw_loop_add_in(loop, &near, 10 * MS), 0);
    kind.run(base);
    assert_int_equal(tw_wheel_count(wheel), 0);
    if (!kind.ends)
        return;
    kind.run(base);
    assert_int_equal(tw_loop_add_in(loop, &far, UINT64_C(300000000000)), 0);
    assert_true(tw_loop_cancel(loop, &far));
    kind.run(base); /* the timer was cancelled outside of the loop */
    assert_int_equal(tw_loop_add_in(loop, &near, MS), 0);
    assert_int_equal(tw_loop_add_in(loop, &far, UINT64_C(300000000000)), 0);
    kind.run(base); /* and the loop starts again */
    assert_false(tw_timer_pending(&near));
}

static void detach_at_third(void *arg, struct tw_timer *timer)
{
    (void)arg;
    assert_ptr_equal(timer, &crowd[calls]);
    if (++calls != 3)
        return;
    tw_loop_free(loop);
    loop = NULL;
    kind.owner(NULL, NULL);
    done();
}

static void go_on(void *arg, struct tw_timer *timer)
{
    (void)arg;
    assert_ptr_equal(timer, &crowd[calls]);
    if (++calls == 10)
        done();
}

void test_a_wheel_is_taken_out_in_a_callback_and_put_in_again(void **state)
{
    (void)state;
    memset(crowd, 0, sizeof crowd);
    calls = 0;
    attach(detach_at_third, 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(tw_loop_add_in(loop, &crowd[i], 2 * MS), 0);
    kind.run(base);
    assert_int_equal(calls, 3);
    assert_int_equal(tw_wheel_count(wheel), 7);
    assert_true(tw_timer_pending(&crowd[9]));
    assert_null(tw_wheel_check(wheel));
    attach(go_on, 0);
    kind.run(base);
    assert_int_equal(calls, 10);
}

void test_a_wheel_is_taken_out_with_timers_pending(void **state)
{
    (void)state;
    memset(&far, 0, sizeof far);
    attach(never, 0);
    assert_int_equal(tw_loop_add_in(loop, &far, UINT64_C(300000000000)), 0);
    tw_loop_free(loop);
    loop = NULL;
    kind.owner(NULL, NULL);
    assert_true(tw_timer_pending(&far));
    if (kind.ends)
        kind.run(base);
}

/* The first callback runs the loop until the second callback stops it; the third stops the outer run. */
static void run_inside(void *arg, struct tw_timer *timer)
{
    (void)arg;
    assert_ptr_equal(timer, &crowd[calls]);
    if (++calls > 1) {
        kind.stop(base);
        return;
    }
    kind.run(base);
    assert_int_equal(calls, 2);
    assert_int_equal(tw_loop_add_in(loop, &crowd[2], 5 * MS), 0);
}

void test_a_callback_runs_the_loop(void **state)
{
    (void)state;
    memset(crowd, 0, sizeof crowd);
    calls = 0;
    attach(run_inside, 0);
    assert_int_equal(tw_loop_add_in(loop, &crowd[0], 5 * MS), 0);
    assert_int_equal(tw_loop_add_in(loop, &crowd[1], 25 * MS), 0);
    kind.run(base);
    assert_int_equal(calls, 3);
}
