/* SPDX-License-Identifier: MIT
 *
 * tw__loop_check() names the invariant that is broken. Each invariant is broken here.
 */
#include "tests/support/cmocka.h"

#include "fake.h"

#include <src/loops/internal.h>

static struct fake fake;
static struct tw_timer timers[4];
static const char *inside; /* the result of the check inside a callback */

/* The value that a callback spoils. */
static enum { NOTHING, ARMED, BUDGET_GROWS, FIRES_TOO_MUCH, LATER_TICK, RUNS_LOOP } breaks;

static void due(void *arg, struct tw_timer *timer)
{
    struct tw_loop *loop = ((struct fake *)arg)->loop;
    uint64_t armed = loop->armed;
    struct tw__loop_pass before = *loop->pass;
    (void)timer;
    assert_null(tw__loop_check(loop));
    if (breaks == ARMED)
        loop->armed = 5;
    else if (breaks == BUDGET_GROWS)
        loop->pass->budget = loop->budget + 1;
    else if (breaks == FIRES_TOO_MUCH)
        loop->pass->fired++;
    else if (breaks == LATER_TICK)
        loop->pass->tick++;
    else if (breaks == RUNS_LOOP)
        tw_loop_turn(loop);
    inside = tw__loop_check(loop);
    before.reentered = loop->pass->reentered;
    *loop->pass = before;
    if (breaks == ARMED)
        loop->armed = armed;
}

static int set_up(void **state)
{
    (void)state;
    fake_open(&fake, due, 2);
    memset(timers, 0, sizeof timers);
    inside = NULL;
    breaks = NOTHING;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_end(&fake);
    return 0;
}

static void starts_with(const char *broken, const char *invariant)
{
    assert_non_null(broken);
    assert_int_equal(strncmp(broken, invariant, strlen(invariant)), 0);
}

static void test_l1_no_timer_is_earlier_than_the_loops_timer(void **state)
{
    (void)state;
    tw_loop_add_in(fake.loop, &timers[0], 50 * FAKE_MS);
    assert_null(tw__loop_check(fake.loop));
    tw_wheel_add_in(fake.wheel, &timers[1], 20); /* without the loop's knowledge */
    starts_with(tw__loop_check(fake.loop), "L1: a timer");
    assert_int_equal(tw_loop_update(fake.loop), 0);
    assert_null(tw__loop_check(fake.loop));
    fake.loop->armed++;
    starts_with(tw__loop_check(fake.loop), "L1: a timer");
    fake.loop->armed = TW_NEVER;
    starts_with(tw__loop_check(fake.loop), "L1: a timer");
    fake.loop->armed = 120;
    assert_null(tw__loop_check(fake.loop));
}

static void test_l1_the_driver_was_told_a_time_that_is_not_later(void **state)
{
    (void)state;
    tw_loop_add_in(fake.loop, &timers[0], 50 * FAKE_MS);
    fake.loop->told_ns++;
    starts_with(tw__loop_check(fake.loop), "L1: the driver");
    fake.loop->told_ns = UINT64_MAX;
    starts_with(tw__loop_check(fake.loop), "L1: the driver");
    fake.loop->told_ns = fake.at_ns;
    assert_null(tw__loop_check(fake.loop));
}

static void test_l1_allows_timers_that_were_overdue_when_the_wheel_was_attached(void **state)
{
    (void)state;
    tw_loop_add_in(fake.loop, &timers[0], FAKE_MS);
    tw_loop_add_in(fake.loop, &timers[1], FAKE_MS);
    tw_loop_add_in(fake.loop, &timers[2], FAKE_MS);
    fake_turn(&fake, 5 * FAKE_MS); /* two of the timers */
    assert_null(tw__loop_check(fake.loop));
    tw_loop_free(fake.loop);
    struct tw_loop_options options = {.due = due, .arg = &fake};
    assert_int_equal(tw_loop_new(&fake.loop, fake.wheel, &options, &fake_driver, &fake), 0);
    assert_null(tw__loop_check(fake.loop));
}

static void test_l2_nothing_is_set_while_a_turn_comes_next(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        tw_loop_add_in(fake.loop, &timers[i], FAKE_MS);
    fake_turn(&fake, FAKE_MS);
    assert_int_equal(fake.at_ns, 0);
    assert_null(tw__loop_check(fake.loop));
    fake.loop->told_ns = fake.now_ns;
    starts_with(tw__loop_check(fake.loop), "L2");
    fake.loop->told_ns = 0;
}

static void test_l2_nothing_is_set_in_a_turn(void **state)
{
    (void)state;
    breaks = ARMED;
    tw_loop_add_in(fake.loop, &timers[0], FAKE_MS);
    fake_turn(&fake, FAKE_MS);
    starts_with(inside, "L2");
}

static void test_l2_a_turn_inside_may_set_it(void **state)
{
    (void)state;
    tw_loop_add_in(fake.loop, &timers[0], FAKE_MS);
    tw_loop_add_in(fake.loop, &timers[1], 9 * FAKE_MS);
    breaks = RUNS_LOOP;
    fake_turn(&fake, FAKE_MS);
    assert_null(inside);
    assert_null(tw__loop_check(fake.loop));
}

static void broken_in_a_turn(int what)
{
    inside = NULL;
    breaks = what;
    tw_loop_add_in(fake.loop, &timers[0], FAKE_MS);
    fake_turn(&fake, FAKE_MS);
    starts_with(inside, "L3");
    assert_null(tw__loop_check(fake.loop));
}

static void test_l3_a_turn_keeps_to_its_budget_and_its_tick(void **state)
{
    (void)state;
    broken_in_a_turn(BUDGET_GROWS);
    broken_in_a_turn(FIRES_TOO_MUCH);
    broken_in_a_turn(LATER_TICK);
}

static void test_l4_the_wheel_never_passes_the_loop(void **state)
{
    (void)state;
    tw_loop_add_in(fake.loop, &timers[0], 50 * FAKE_MS);
    fake_turn(&fake, 7 * FAKE_MS);
    assert_null(tw__loop_check(fake.loop));
    fake.now_ns += 3 * FAKE_MS;
    tw_wheel_poll(fake.wheel, 110); /* by the program itself; the loop has not seen this tick begin */
    assert_null(tw__loop_check(fake.loop));
    tw_wheel_poll(fake.wheel, 111); /* the tick that begins in a millisecond */
    starts_with(tw__loop_check(fake.loop), "L4");
    fake_turn(&fake, FAKE_MS);
    assert_null(tw__loop_check(fake.loop));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_l1_no_timer_is_earlier_than_the_loops_timer),
        TEST(test_l1_the_driver_was_told_a_time_that_is_not_later),
        TEST(test_l1_allows_timers_that_were_overdue_when_the_wheel_was_attached),
        TEST(test_l2_nothing_is_set_while_a_turn_comes_next),
        TEST(test_l2_nothing_is_set_in_a_turn),
        TEST(test_l2_a_turn_inside_may_set_it),
        TEST(test_l3_a_turn_keeps_to_its_budget_and_its_tick),
        TEST(test_l4_the_wheel_never_passes_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
