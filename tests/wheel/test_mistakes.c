/* SPDX-License-Identifier: MIT
 *
 * Mistakes of the caller: each "Requires" of wheel.h that an assertion can see. The wheel here is compiled with TW_DEBUG 2.
 */
#include "tests/support/cmocka.h"
#include "tests/support/dies.h"

static struct tw_wheel *wheel;
static struct tw_timer timer;

static int setup(void **state)
{
    (void)state;
    wheel = wheel_of(TW_SMALL, 0);
    tw_timer_init(&timer);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tw_wheel_free(wheel);
    return 0;
}

/* ---- timers that are pending ----------------------------------------------------------------------------- */

static void add_pending(void *arg)
{
    (void)arg;
    tw_wheel_add_at(wheel, &timer, 7);
}

static void add_pending_now(void *arg)
{
    (void)arg;
    tw_wheel_add_now(wheel, &timer);
}

static void a_pending_timer_cannot_be_added(void **state)
{
    (void)state;
    tw_wheel_add_in(wheel, &timer, 5);
    assert_true(dies(add_pending, NULL, "!tw_timer_pending(timer)"));
    assert_true(dies(add_pending_now, NULL, "!tw_timer_pending(timer)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pending_timer_cannot_be_added, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
