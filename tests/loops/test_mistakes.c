/* SPDX-License-Identifier: MIT
 *
 * Mistakes of the caller: each "Requires" of loop.h and loop_epoll.h that an assertion can see ends the
 * program. The loops are compiled with TW_DEBUG 2 here, and the scheduler is a function.
 */
#include "tests/support/cmocka.h"

#include "fake.h"
#include "tests/support/dies.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <tickwheel/loop_epoll.h>
#include <tickwheel/sched.h>

/* The process that the loops believe to be in. The mistakes are made in children, which are not meant. */
static pid_t process = 1;
pid_t __wrap_getpid(void);

pid_t __wrap_getpid(void)
{
    return process;
}

static struct fake fake;
static struct tw_timer timer;
static struct tw_executor *executor;
static bool frees;

static void due(void *arg, struct tw_timer *fired)
{
    (void)arg;
    (void)fired;
}

uint64_t tw_sched_run_some(struct tw_sched *sched, uint64_t limit)
{
    (void)sched;
    (void)limit;
    if (frees)
        tw_executor_free(executor);
    return 0;
}

static void wake(void *arg)
{
    (void)arg;
}

static const struct tw_executor_driver executor_driver = {.wake = wake, .close = fake_close};

static int set_up(void **state)
{
    struct tw_sched_options options = {0};
    (void)state;
    fake_open(&fake, due, 0);
    tw_timer_init(&timer);
    frees = false;
    assert_int_equal(tw_executor_new(&executor, 0, &executor_driver, NULL), 0);
    assert_int_equal(tw_executor_hook(executor, &options), 0);
    options.execute(options.execute_arg, (struct tw_sched *)(void *)&fake, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_end(&fake);
    tw_executor_free(executor);
    return 0;
}

/* ---- timers ---------------------------------------------------------------------------------------------- */

static void test_what_the_wheel_requires(void **state)
{
    struct tw_wheel *other = wheel_of(NULL, 0);
    (void)state;
    tw_loop_add_in(fake.loop, &timer, 5 * FAKE_MS);
    assert_dies(tw_loop_add_in(fake.loop, &timer, FAKE_MS), "!tw__wheel_pending(timer)");
    assert_dies(tw_loop_add_at(fake.loop, &timer, fake.now_ns), "!tw__wheel_pending(timer)");
    tw_loop_cancel(fake.loop, &timer);
    tw_wheel_add_in(other, &timer, 5);
    assert_dies(tw_loop_move_in(fake.loop, &timer, FAKE_MS), "tw__wheel_has(w, timer)");
    assert_dies(tw_loop_move_at(fake.loop, &timer, fake.now_ns), "tw__wheel_has(w, timer)");
    assert_dies(tw_loop_cancel(fake.loop, &timer), "tw__wheel_has(w, timer)");
    tw_wheel_free(other);
}

/* ---- threads --------------------------------------------------------------------------------------------- */

static void *update(void *arg)
{
    (void)arg;
    tw_loop_update(fake.loop);
    return NULL;
}

static void *add(void *arg)
{
    (void)arg;
    tw_loop_add_in(fake.loop, &timer, FAKE_MS);
    return NULL;
}

static void *cancel(void *arg)
{
    (void)arg;
    tw_loop_cancel(fake.loop, &timer);
    return NULL;
}

static void *turn(void *arg)
{
    (void)arg;
    tw_loop_turn(fake.loop);
    return NULL;
}

static void *end(void *arg)
{
    (void)arg;
    tw_loop_free(fake.loop);
    return NULL;
}

static void *turn_executor(void *arg)
{
    (void)arg;
    tw_executor_turn(executor);
    return NULL;
}

static void *end_executor(void *arg)
{
    (void)arg;
    tw_executor_free(executor);
    return NULL;
}

static void on_thread(void *(*call)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, call, NULL) == 0)
        eventually_joined(thread);
}

static void test_calls_come_from_the_loops_thread(void **state)
{
    struct tw_timer earlier = {0};
    (void)state;
    tw_loop_add_at(fake.loop, &earlier, fake.now_ns); /* so that `add` need not set the loop's timer */
    assert_dies(on_thread(update), "pthread_equal(pthread_self(), loop->thread)");
    assert_dies(on_thread(add), "pthread_equal(pthread_self(), loop->thread)");
    assert_dies(on_thread(cancel), "pthread_equal(pthread_self(), loop->thread)");
    assert_dies(on_thread(turn), "pthread_equal(pthread_self(), loop->thread)");
    assert_dies(on_thread(end), "pthread_equal(pthread_self(), loop->thread)");
    assert_dies(on_thread(turn_executor), "pthread_equal(pthread_self(), executor->thread)");
    assert_dies(on_thread(end_executor), "pthread_equal(pthread_self(), executor->thread)");
    tw_loop_cancel(fake.loop, &earlier);
}

/* ---- fork() ---------------------------------------------------------------------------------------------- */

static void test_a_child_of_fork_only_frees(void **state)
{
    (void)state;
    process = 2;
    assert_dies(tw_loop_update(fake.loop), "loop->process == ");
    assert_dies(tw_loop_add_in(fake.loop, &timer, FAKE_MS), "loop->process == ");
    assert_dies(tw_loop_move_at(fake.loop, &timer, fake.now_ns), "loop->process == ");
    assert_dies(tw_loop_cancel(fake.loop, &timer), "loop->process == ");
    assert_dies(tw_loop_turn(fake.loop), "loop->process == ");
    assert_dies(tw_executor_turn(executor), "!is_inherited(executor)");
    on_thread(end); /* the thread that ran the loop may be another one, and is not in the child */
    on_thread(end_executor);
    fake.loop = NULL;
    executor = NULL;
    process = 1;
}

/* ---- executors ------------------------------------------------------------------------------------------- */

static void test_an_executor_is_not_freed_in_a_callback(void **state)
{
    (void)state;
    tw_executor_turn(executor);
    frees = true;
    assert_dies(tw_executor_turn(executor), "executor->turns == 0");
}

static void test_an_executor_is_freed_after_its_scheduler(void **state)
{
    (void)state;
    struct tw_sched_options options = {0};
    struct tw_executor *early;
    assert_int_equal(tw_executor_new(&early, 0, &executor_driver, NULL), 0);
    assert_int_equal(tw_executor_hook(early, &options), 0);
    tw_executor_free(early);
    assert_dies(options.execute(options.execute_arg, (struct tw_sched *)(void *)&fake, 1), "!executor->freed");
}

/* ---- drivers --------------------------------------------------------------------------------------------- */

static void test_a_driver_refuses_only_when_its_timer_is_off(void **state)
{
    struct tw_timer earlier = {0};
    (void)state;
    fake.refuses = true;
    assert_int_equal(tw_loop_add_in(fake.loop, &timer, 5 * FAKE_MS), TW_ESYSTEM);
    fake.refuses = false;
    assert_int_equal(tw_loop_add_in(fake.loop, &timer, 5 * FAKE_MS), 0);
    fake.refuses = true;
    assert_dies(tw_loop_add_in(fake.loop, &earlier, FAKE_MS), "error == 0 || loop->told_ns == ");
}

static void test_a_drivers_clock_does_not_go_back(void **state)
{
    (void)state;
    fake.now_ns--;
    assert_dies(tw_loop_turn(fake.loop), "now_ns >= loop->base_ns");
    fake.now_ns++;
}

/* ---- epoll ----------------------------------------------------------------------------------------------- */

static void test_only_a_loop_that_was_made_for_it_is_waited_in(void **state)
{
    struct epoll_event event;
    struct tw_loop_options options = {.due = due};
    struct tw_loop *loop;
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    (void)state;
    assert_dies(tw_loop_epoll_wait(fake.loop, &event, 1, 0), "waiter->driver == &waiter_driver");
    assert_int_equal(tw_loop_epoll_new(&loop, epoll_fd, fake.wheel, &options), 0);
    assert_dies(tw_loop_epoll_wait(loop, &event, 1, 0), "waiter->driver == &waiter_driver");
    tw_loop_free(loop);
    assert_int_equal(tw_loop_epoll_wait_new(&loop, epoll_fd, fake.wheel, &options), 0);
    assert_int_equal(tw_loop_epoll_wait(loop, &event, 1, 0), 0);
    tw_loop_free(loop);
    close(epoll_fd);
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

static void test_null_is_no_loop(void **state)
{
    (void)state;
    assert_dies(tw_loop_now(NULL), "loop != ");
    assert_dies(tw_loop_tick(NULL, 0), "loop != ");
    assert_dies(tw_loop_time(NULL, 0), "loop != ");
    assert_dies(tw_loop_wheel(NULL), "loop != ");
    assert_dies(tw_loop_driver_arg(NULL), "loop != ");
    assert_dies(tw_loop_update(NULL), "loop != ");
    assert_dies(tw_loop_add_at(NULL, &timer, 0), "loop != ");
    assert_dies(tw_loop_move_at(NULL, &timer, 0), "loop != ");
    assert_dies(tw_loop_cancel(NULL, &timer), "loop != ");
    assert_dies(tw_loop_turn(NULL), "loop != ");
    assert_dies(tw_executor_turn(NULL), "executor != ");
    assert_dies(tw_loop_epoll_handle(fake.loop, NULL), "event != ");
    assert_dies(tw_executor_epoll_handle(executor, NULL), "event != ");
}

static void test_null_makes_nothing(void **state)
{
    struct tw_loop_options options = {.due = due};
    struct tw_sched_options given = {0};
    struct tw_loop_driver no_arm = {.close = fake_close}, no_close = {.arm = fake_arm};
    struct tw_executor_driver no_wake = {.close = fake_close}, no_end = {.wake = wake};
    struct tw_loop *loop;
    struct tw_executor *made;
    (void)state;
    assert_dies(tw_loop_options_check(NULL, NULL, 0), "options != ");
    assert_dies(tw_loop_options_check(&options, NULL, 1), "message != ");
    assert_dies(tw_loop_new(NULL, fake.wheel, &options, &fake_driver, &fake), "made != ");
    assert_dies(tw_loop_new(&loop, NULL, &options, &fake_driver, &fake), "wheel != ");
    assert_dies(tw_loop_new(&loop, fake.wheel, NULL, &fake_driver, &fake), "options != ");
    assert_dies(tw_loop_new(&loop, fake.wheel, &options, NULL, &fake), "driver != ");
    assert_dies(tw_loop_new(&loop, fake.wheel, &options, &no_arm, &fake), "driver->arm != ");
    assert_dies(tw_loop_new(&loop, fake.wheel, &options, &no_close, &fake), "driver->close != ");
    assert_dies(tw_executor_new(NULL, 0, &executor_driver, NULL), "made != ");
    assert_dies(tw_executor_new(&made, 0, NULL, NULL), "driver != ");
    assert_dies(tw_executor_new(&made, 0, &no_wake, NULL), "driver->wake != ");
    assert_dies(tw_executor_new(&made, 0, &no_end, NULL), "driver->close != ");
    assert_dies(tw_executor_hook(NULL, &given), "executor != ");
    assert_dies(tw_executor_hook(executor, NULL), "options != ");
    assert_dies(tw_loop_epoll_new(NULL, 0, fake.wheel, &options), "made != ");
    assert_dies(tw_loop_epoll_wait_new(NULL, 0, fake.wheel, &options), "made != ");
    assert_dies(tw_executor_epoll_new(NULL, 0, 0), "made != ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_what_the_wheel_requires),
        TEST(test_calls_come_from_the_loops_thread),
        TEST(test_a_child_of_fork_only_frees),
        TEST(test_an_executor_is_not_freed_in_a_callback),
        TEST(test_an_executor_is_freed_after_its_scheduler),
        TEST(test_a_driver_refuses_only_when_its_timer_is_off),
        TEST(test_a_drivers_clock_does_not_go_back),
        TEST(test_only_a_loop_that_was_made_for_it_is_waited_in),
        TEST(test_null_is_no_loop),
        TEST(test_null_makes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
