/* SPDX-License-Identifier: MIT
 *
 * Cases that only epoll's adapter has: bad descriptors, events of other owners, nested waits with a timeout,
 * and wake-ups that are lost.
 */
#include "tests/support/cmocka.h"
#include "tests/support/dies.h"
#include "tests/support/eventually.h"

#include <errno.h>
#include <sys/epoll.h>
#include <tickwheel/loop_epoll.h>
#include <tickwheel/sched.h>

enum { MS = 1000000, LONG_MS = 1000 * EVENTUALLY_S };

/* No test waits so long: the wheel's next work always comes first. */
int epoll_wait(int fd, struct epoll_event *events, int room, int timeout_ms)
{
    assert_int_not_equal(timeout_ms, LONG_MS);
    return epoll_pwait(fd, events, room, timeout_ms, NULL);
}

static int epoll_fd;
static struct tw_wheel *wheel;
static struct tw_loop *loop;
static struct tw_timer timer, second;
static unsigned fired;

static int set_up(void **state)
{
    (void)state;
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    wheel = wheel_of(NULL, 0);
    tw_timer_init(&timer);
    tw_timer_init(&second);
    fired = 0;
    return epoll_fd < 0;
}

static int tear_down(void **state)
{
    (void)state;
    tw_loop_free(loop);
    loop = NULL;
    tw_wheel_free(wheel);
    close(epoll_fd);
    return 0;
}

static void count_one(void *arg, struct tw_timer *due)
{
    (void)arg;
    (void)due;
    fired++;
}

/* Waits until a timer is due, without the loop. */
static void await(const struct tw_timer *pending)
{
    EVENTUALLY(tw_loop_now(loop) >= tw_loop_time(loop, tw_timer_deadline(pending)));
}

static const struct tw_loop_options plain = {.due = count_one};

static void test_what_is_no_epoll_set_is_refused(void **state)
{
    (void)state;
    struct tw_executor *executor = NULL;
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    const struct tw_loop_options fine = {.due = count_one, .tick_ns = 1000};
    assert_int_equal(tw_loop_epoll_new(&loop, -1, wheel, &fine), TW_EINVAL);
    assert_int_equal(tw_loop_epoll_new(&loop, pipe_fds[0], wheel, &fine), TW_EINVAL);
    assert_int_equal(tw_wheel_now(wheel), 0);
    assert_int_equal(tw_executor_epoll_new(&executor, -1, 0), TW_EINVAL);
    assert_true(loop == NULL && executor == NULL);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void test_the_events_of_others_are_left_alone(void **state)
{
    (void)state;
    struct epoll_event event = {.data.ptr = &event};
    assert_int_equal(tw_loop_epoll_new(&loop, epoll_fd, wheel, &plain), 0);
    assert_false(tw_loop_epoll_handle(loop, &event));
    assert_false(tw_executor_epoll_handle(NULL, &event));
    event.data.ptr = NULL;
    assert_false(tw_loop_epoll_handle(NULL, &event));
    assert_false(tw_executor_epoll_handle(NULL, &event));
}

static void test_a_wait_has_bad_options_and_bad_descriptors(void **state)
{
    (void)state;
    struct tw_loop_options options = {.due = NULL};
    struct epoll_event event;
    assert_int_equal(tw_loop_epoll_wait_new(&loop, epoll_fd, wheel, &options), TW_EINVAL);
    assert_null(loop);
    assert_int_equal(tw_loop_epoll_wait_new(&loop, -1, wheel, &plain), 0);
    assert_int_equal(tw_loop_epoll_wait(loop, &event, 1, 0), -1);
    assert_int_equal(errno, EBADF);
}

static void test_a_wait_keeps_to_its_timeout(void **state)
{
    (void)state;
    struct epoll_event event;
    assert_int_equal(tw_loop_epoll_wait_new(&loop, epoll_fd, wheel, &plain), 0);
    uint64_t start_ns = tw_loop_now(loop);
    assert_int_equal(tw_loop_epoll_wait(loop, &event, 1, 20), 0); /* no timer is pending */
    assert_true(tw_loop_now(loop) - start_ns >= 19 * MS);
    tw_loop_add_in(loop, &timer, UINT64_C(300000000000));
    assert_int_equal(tw_loop_epoll_wait(loop, &event, 1, 20), 0); /* ends before the timer is due */
    assert_int_equal(tw_loop_epoll_wait(loop, &event, 1, 0), 0);
    assert_int_equal(fired, 0);
    tw_loop_move_in(loop, &timer, 20 * MS);
    for (int i = 0; i < 3 && fired == 0; i++)
        assert_int_equal(tw_loop_epoll_wait(loop, &event, 1, LONG_MS), 0); /* the timer comes first */
    assert_int_equal(fired, 1);
}

static void test_what_is_due_comes_with_the_events(void **state)
{
    (void)state;
    struct epoll_event event = {.events = EPOLLOUT};
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pipe_fds[1], &event), 0);
    assert_int_equal(tw_loop_epoll_wait_new(&loop, epoll_fd, wheel, &plain), 0);
    tw_loop_add_in(loop, &timer, MS);
    await(&timer);
    assert_int_equal(tw_loop_epoll_wait(loop, &event, 1, LONG_MS), 1);
    assert_int_equal(fired, 1);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

/* The first callback waits. Inside that wait, the second callback frees the loop, which both waits use. */
static void wait_inside(void *arg, struct tw_timer *due)
{
    struct epoll_event event;
    (void)arg;
    if (++fired == 1) {
        assert_ptr_equal(due, &timer);
        assert_int_equal(tw_loop_epoll_wait(loop, &event, 1, LONG_MS), 0);
        return;
    }
    tw_loop_free(loop);
    loop = NULL;
}

static void test_a_wait_inside_a_wait_may_lose_the_loop(void **state)
{
    (void)state;
    struct tw_loop_options options = {.due = wait_inside};
    struct epoll_event event;
    assert_int_equal(tw_loop_epoll_wait_new(&loop, epoll_fd, wheel, &options), 0);
    tw_loop_add_in(loop, &timer, 0);
    tw_loop_add_in(loop, &second, 0);
    await(&second);
    assert_int_equal(tw_loop_epoll_wait(loop, &event, 1, LONG_MS), 0);
    assert_int_equal(fired, 2);
    assert_null(loop);
}

/* ---- a scheduler's wake-ups ------------------------------------------------------------------------------ */

static int executor_fd; /* the executor's eventfd */
static struct tw_executor *executor;
static struct tw_sched *sched;

static void count_task(struct tw_sched *of, const struct tw_task *task)
{
    (void)of;
    (void)task;
    fired++;
}

static void open_executor(void)
{
    struct tw_sched_options options = {.clock = TW_SCHED_CLOCK_VIRTUAL};
    executor_fd = dup(epoll_fd); /* the number that the next descriptor gets */
    close(executor_fd);
    assert_int_equal(tw_executor_epoll_new(&executor, epoll_fd, 0), 0);
    assert_int_equal(tw_executor_hook(executor, &options), 0);
    assert_int_equal(tw_sched_new(&sched, &options), 0);
}

static void close_executor(void)
{
    tw_sched_free(sched);
    tw_executor_free(executor);
}

/* Whether the loop has an event of the executor now. */
static bool is_woken(void)
{
    struct epoll_event event;
    return epoll_wait(epoll_fd, &event, 1, 0) == 1 && event.data.ptr == executor;
}

/* One iteration of the loop, which has an event of the executor. */
static bool run_woken(void)
{
    struct epoll_event event = {.data.ptr = executor};
    return tw_executor_epoll_handle(executor, &event);
}

/* Gives tasks to the executor. */
static void send(unsigned tasks)
{
    for (unsigned i = 0; i < tasks; i++)
        assert_int_equal(tw_sched_add_in(sched, 0, count_task, NULL, NULL), 0);
    tw_sched_advance(sched, tw_sched_now(sched) + MS);
}

static uint64_t wake_ups(void)
{
    uint64_t n = 0;
    return read(executor_fd, &n, sizeof n) == sizeof n ? n : 0;
}

static uint64_t coarse_ns(void)
{
    const clockid_t clock = CLOCK_MONOTONIC_COARSE;
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static void test_a_wake_up_that_was_lost_is_made_up_for(void **state)
{
    (void)state;
    open_executor();
    send(1);
    assert_int_equal(wake_ups(), 1); /* somebody else has read the eventfd */
    assert_false(is_woken());
    uint64_t lost_ns = coarse_ns();
    EVENTUALLY(coarse_ns() != lost_ns);
    send(1);
    assert_true(is_woken());
    assert_true(run_woken());
    assert_int_equal(fired, 2);
    close_executor();
}

static void test_many_tasks_wake_the_loop_once_in_a_step_of_the_coarse_clock(void **state)
{
    enum { TASKS = 2000 };
    struct timespec step;
    (void)state;
    open_executor();
    clock_getres(CLOCK_MONOTONIC_COARSE, &step);
    uint64_t began_ns = coarse_ns();
    send(TASKS);
    uint64_t step_ns = (uint64_t)step.tv_nsec;                         /* a step may be a little shorter */
    uint64_t steps = (coarse_ns() - began_ns + step_ns - 1) / step_ns; /* while the system mends its time */
    assert_in_range(wake_ups(), 1, steps + 1);
    close_executor();
}

/* A child that handles the events of its parent's epoll set, which it must not do. */
static void test_a_child_in_its_parents_set_takes_no_wake_up(void **state)
{
    struct dying dying;
    (void)state;
    open_executor();
    send(1);
    assert_true(is_woken());
    if (dying_fork(&dying)) {
        run_woken();
        tw_executor_free(executor);
        dying_exit(0);
    }
    dying_status(&dying);
    assert_true(is_woken());
    assert_true(run_woken());
    assert_int_equal(fired, 1);
    close_executor();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_what_is_no_epoll_set_is_refused),
        TEST(test_the_events_of_others_are_left_alone),
        TEST(test_a_wait_has_bad_options_and_bad_descriptors),
        TEST(test_a_wait_keeps_to_its_timeout),
        TEST(test_what_is_due_comes_with_the_events),
        TEST(test_a_wait_inside_a_wait_may_lose_the_loop),
        TEST(test_a_wake_up_that_was_lost_is_made_up_for),
        TEST(test_many_tasks_wake_the_loop_once_in_a_step_of_the_coarse_clock),
        TEST(test_a_child_in_its_parents_set_takes_no_wake_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
