/* SPDX-License-Identifier: MIT
 *
 * Every loop: bad options, and calls that fail while a wheel is attached or an executor is made.
 */
#include "body.h"

#include <dirent.h>
#include <tickwheel/sched.h>

static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        n++;
    closedir(folder);
    return n;
}

static bool is_empty(void)
{
    return kind.empty == NULL || kind.empty(base);
}

static void nothing(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)arg;
    (void)sched;
    (void)id;
}

static void do_nothing(void *arg)
{
    (void)arg;
}

void test_bad_options_are_refused(void **state)
{
    (void)state;
    struct tw_loop_options options = {.due = never, .tick_ns = 999};
    struct tw_sched_options given = {.workers = 1};
    struct tw_executor *executor = NULL;
    unsigned before = descriptors();
    assert_int_equal(kind.attach(&loop, base, wheel, &options), TW_EINVAL);
    assert_null(loop);
    assert_int_equal(descriptors(), before);
    struct tw_executor_driver driver = {.wake = do_nothing, .close = do_nothing, .reserved[3] = 1};
    assert_int_equal(tw_executor_new(&executor, 0, &driver, NULL), TW_EINVAL);
    assert_null(executor);
    driver.reserved[3] = 0;
    assert_int_equal(tw_executor_new(&executor, 0, &driver, NULL), 0);
    assert_int_equal(tw_executor_hook(executor, &given), TW_EINVAL);
    assert_true(given.execute == NULL && given.execute_arg == NULL);
    given = (struct tw_sched_options){.execute = nothing};
    assert_int_equal(tw_executor_hook(executor, &given), TW_EINVAL);
    assert_true(given.execute == nothing && given.execute_arg == NULL);
    tw_executor_free(executor);
    assert_true(is_empty());
}

static bool is_failure(int error)
{
    return error == TW_ENOMEM || error == TW_ESYSTEM;
}

/* The wheel holds a timer, so the loop's timer is set at once. */
void test_a_wheel_that_cannot_be_attached_leaves_nothing(void **state)
{
    (void)state;
    struct tw_loop_options options = {.due = never};
    unsigned before = descriptors(), failures = 0;
    memset(&far, 0, sizeof far);
    tw_wheel_add_in(wheel, &far, 1000000);
    for (int error = TW_ENOMEM; error != 0; failures++) {
        fail_at = failures + 1;
        error = kind.attach(&loop, base, wheel, &options);
        assert_true(error == 0 || is_failure(error));
        assert_true((error == 0) == (loop != NULL));
        assert_true(error == 0 || (descriptors() == before && is_empty()));
    }
    assert_true(failures > 1 && fail_at > 0);
    fail_at = 0;
    assert_true(tw_timer_pending(&far));
}

void test_an_executor_that_cannot_be_made_leaves_nothing(void **state)
{
    (void)state;
    struct tw_executor *executor = NULL;
    assert_int_equal(kind.executor(&executor, base, 0), 0); /* a loop may open a descriptor once */
    tw_executor_free(executor);
    if (kind.ends)
        kind.run(base); /* now libuv has closed it as well */
    executor = NULL;
    unsigned before = descriptors(), failures = 0;
    for (int error = TW_ENOMEM; error != 0; failures++) {
        fail_at = failures + 1;
        error = kind.executor(&executor, base, 0);
        assert_true(error == 0 || is_failure(error));
        assert_true((error == 0) == (executor != NULL));
        assert_true(error == 0 || (descriptors() == before && is_empty()));
    }
    assert_true(failures > 1 && fail_at > 0);
    fail_at = 0;
    tw_executor_free(executor);
}
