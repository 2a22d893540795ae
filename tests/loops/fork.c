/* SPDX-License-Identifier: MIT
 *
 * Every loop: a child of fork() has its parent's descriptors, and takes no timer and no wake-up from it. The
 * parent waits for the end of the child, and then runs the loop.
 */
#include "body.h"
#include "tests/support/dies.h"

enum { MARK = 3 };
static uint64_t near_ns;
static unsigned fired;

static void on_near(void *arg, struct tw_timer *timer)
{
    (void)arg;
    fired += timer == &near && clock_now() >= near_ns;
    done();
}

static bool file_near(void)
{
    near_ns = clock_now() + 5 * MS;
    return tw_loop_add_at(loop, &near, near_ns) == 0;
}

static void attach_near(void)
{
    memset(&near, 0, sizeof near);
    memset(&far, 0, sizeof far);
    fired = 0;
    attach(on_near, 0);
    assert_true(file_near());
}

static bool has_mark(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == MARK;
}

/* A child did what it must not do: it went well, or an assertion ended the child. */
static void went_well_or_died(const struct dying *dying)
{
    int status = dying_status(dying);
    assert_true(WIFSIGNALED(status) || has_mark(status));
}

static void near_fires(void)
{
    kind.run(base);
    assert_int_equal(fired, 1);
    assert_int_equal(tw_wheel_count(wheel), 0);
}

void test_a_child_that_frees_all_takes_nothing(void **state)
{
    struct dying dying;
    (void)state;
    attach_near();
    if (dying_fork(&dying)) {
        tw_loop_free(loop);
        tw_wheel_free(wheel);
        kind.close(base);
        dying_exit(0);
    }
    assert_int_equal(dying_status(&dying), 0);
    near_fires();
}

/* In the child as in the parent the timer fires once, and not before its time. */
void test_a_child_goes_on_with_the_wheel(void **state)
{
    struct dying dying;
    (void)state;
    attach_near();
    if (dying_fork(&dying)) {
        struct tw_loop_options options = {.due = on_near};
        tw_loop_free(loop);
        base = kind.forked(base);
        if (kind.attach(&loop, base, wheel, &options) != 0)
            dying_exit(1);
        kind.owner(loop, NULL);
        kind.run(base);
        dying_exit(fired == 1 ? MARK : 2);
    }
    assert_true(has_mark(dying_status(&dying)));
    near_fires();
}

/* A child must not do this, and with assertions it ends here. */
void test_a_child_that_meddles_takes_no_timer(void **state)
{
    struct dying dying;
    (void)state;
    attach_near();
    if (dying_fork(&dying)) {
        base = kind.forked(base);
        tw_loop_add_in(loop, &far, 0);
        tw_loop_cancel(loop, &far);
        tw_loop_cancel(loop, &near);
        tw_loop_update(loop);
        tw_loop_turn(loop);
        dying_exit(0);
    }
    dying_status(&dying);
    near_fires();
}

/* A server that attaches its wheel, and then calls daemon(). It must not do this either. */
void test_the_loop_of_a_daemon_fires(void **state)
{
    struct dying dying;
    (void)state;
    attach_near();
    if (dying_fork(&dying)) {
        kind.run(base);
        if (!file_near())
            dying_exit(1);
        kind.run(base);
        dying_exit(fired == 2 ? MARK : 2);
    }
    went_well_or_died(&dying);
    near_fires();
}

/* A child whose loop needs a descriptor of its own, and gets none, or cannot watch it. */
static bool a_filing_fails_as_a_whole(unsigned call)
{
    fail_at = call;
    int error = tw_loop_add_in(loop, &near, MS);
    fail_at = 0;
    return error == 0 || (error == TW_ESYSTEM && !tw_timer_pending(&near));
}

void test_a_daemon_without_a_descriptor_is_told(void **state)
{
    (void)state;
    for (unsigned call = 1; call <= 2; call++) {
        struct dying dying;
        memset(&near, 0, sizeof near);
        attach(on_near, 0);
        if (dying_fork(&dying))
            dying_exit(a_filing_fails_as_a_whole(call) ? MARK : 2);
        went_well_or_died(&dying);
        tw_loop_free(loop);
        loop = NULL;
        if (kind.ends)
            kind.run(base);
    }
}

static void stop_after_some(void)
{
    if (++calls < 3)
        return;
    kind.unwatch(base);
    kind.stop(base);
}

/* The child runs its own events, and leaves the executor in the loop. This, too, it must not do. */
void test_a_child_takes_no_wake_up(void **state)
{
    struct dying dying;
    (void)state;
    make_sched(0);
    send_one();
    if (dying_fork(&dying)) {
        base = kind.forked(base);
        calls = 0;
        const uint64_t one = 1;
        if (write(wake_fd, &one, sizeof one) != sizeof one)
            dying_exit(1);
        kind.watch(base, wake_fd, stop_after_some);
        kind.run(base);
        dying_exit(0);
    }
    dying_status(&dying);
    kind.run(base);
    end_sched();
}

void test_a_child_frees_an_executor(void **state)
{
    struct dying dying;
    (void)state;
    struct tw_executor *executor = make_sched(0);
    send_one();
    if (dying_fork(&dying)) {
        tw_executor_free(executor);
        kind.owner(NULL, NULL);
        kind.close(kind.forked(base));
        dying_exit(0);
    }
    assert_int_equal(dying_status(&dying), 0);
    kind.run(base);
    end_sched();
}
