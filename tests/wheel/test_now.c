/* SPDX-License-Identifier: MIT
 *
 * Timers that are filed for now: a test for each clause of tw_wheel_add_now(), on every preset.
 */
#include "tests/support/cmocka.h"

enum { START = 1000 };

static void a_timer_filed_for_now_fires_in_the_current_poll(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer timer = {0};
        assert_null(tw_wheel_poll(wheel, START));
        tw_wheel_add_now(wheel, &timer);
        assert_true(tw_timer_pending(&timer));
        assert_int_equal(tw_timer_deadline(&timer), START);
        assert_int_equal(tw_wheel_count(wheel), 1);
        assert_ptr_equal(tw_wheel_poll(wheel, START), &timer);
        assert_false(tw_timer_pending(&timer));
        assert_null(tw_wheel_poll(wheel, START));
        assert_int_equal(tw_wheel_count(wheel), 0);
    }
}

static void it_fires_after_everything_due_and_in_filing_order(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer first = {0}, second = {0}, near = {0}, far = {0};
        tw_wheel_add_now(wheel, &first);
        tw_wheel_add_in(wheel, &far, 3000);
        tw_wheel_add_now(wheel, &second);
        tw_wheel_add_in(wheel, &near, 1);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 3000), &near);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 3000), &far);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 3000), &first);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 3000), &second);
        assert_null(tw_wheel_poll(wheel, START + 3000));
    }
}

static void filed_inside_a_drain_it_waits_for_the_next_one(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer due = {0}, later = {0}, inside = {0};
        tw_wheel_add_in(wheel, &due, 5);
        tw_wheel_add_in(wheel, &later, 7);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 5), &due);
        tw_wheel_add_now(wheel, &inside);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 8), &later); /* a later tick, still the same drain */
        assert_null(tw_wheel_poll(wheel, START + 8));
        assert_int_equal(tw_wheel_next_bound(wheel), START + 8);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 8), &inside);
        assert_null(tw_wheel_poll(wheel, START + 8));
    }
}

static void a_timer_that_files_itself_for_now_fires_once_a_drain(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer timers[3] = {0};
        for (int i = 0; i < 3; i++)
            tw_wheel_add_now(wheel, &timers[i]);
        for (int drain = 0; drain < 50; drain++) {
            for (int i = 0; i < 3; i++) {
                assert_ptr_equal(tw_wheel_poll(wheel, START + (uint64_t)drain / 10), &timers[i]);
                tw_wheel_add_now(wheel, &timers[i]);
            }
            assert_null(tw_wheel_poll(wheel, START + (uint64_t)drain / 10));
        }
        for (int i = 0; i < 3; i++)
            assert_true(tw_wheel_cancel(wheel, &timers[i]));
    }
}

static void it_may_be_cancelled_wherever_it_waits(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer due = {0}, soon[3] = {0}, held[3] = {0};
        for (int i = 0; i < 3; i++)
            tw_wheel_add_now(wheel, &soon[i]);
        tw_wheel_add_in(wheel, &due, 1);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 1), &due);
        for (int i = 0; i < 3; i++)
            tw_wheel_add_now(wheel, &held[i]);
        assert_true(tw_wheel_cancel(wheel, &soon[0]));
        assert_true(tw_wheel_cancel(wheel, &held[1]));
        assert_ptr_equal(tw_wheel_poll(wheel, START + 1), &soon[1]);
        assert_true(tw_wheel_cancel(wheel, &soon[2]));
        assert_null(tw_wheel_poll(wheel, START + 1));
        assert_ptr_equal(tw_wheel_poll(wheel, START + 1), &held[0]);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 1), &held[2]);
        assert_null(tw_wheel_poll(wheel, START + 1));
        assert_null(tw_wheel_check(wheel));
    }
}

static void it_may_be_moved_and_then_fires_on_its_tick(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer near = {0}, far = {0}, past = {0};
        tw_wheel_add_now(wheel, &near);
        tw_wheel_add_now(wheel, &far);
        tw_wheel_add_now(wheel, &past);
        tw_wheel_move_in(wheel, &near, 3);
        tw_wheel_move_in(wheel, &far, 4500);
        tw_wheel_move_at(wheel, &past, 1); /* not after now: the next tick */
        assert_null(tw_wheel_check(wheel));
        assert_null(tw_wheel_poll(wheel, START));
        assert_ptr_equal(tw_wheel_poll(wheel, START + 1), &past);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 3), &near);
        assert_null(tw_wheel_poll(wheel, START + 4499));
        assert_ptr_equal(tw_wheel_poll(wheel, START + 4500), &far);
    }
}

static int count_one(void *arg, struct tw_timer *timer)
{
    (void)timer;
    return ++*(int *)arg == 7; /* the seventh timer ends the visit */
}

static void visits_and_next_see_it_and_a_drain_by_hand_takes_it_out(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer due = {0}, timers[6] = {0};
        int seen = 0;
        assert_int_equal(tw_wheel_next_exact(wheel), TW_NEVER);
        for (int i = 0; i < 3; i++)
            tw_wheel_add_now(wheel, &timers[i]);
        assert_int_equal(tw_wheel_next_exact(wheel), START);
        assert_int_equal(tw_wheel_next_bound(wheel), START);
        tw_wheel_add_in(wheel, &due, 2);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 2), &due);
        for (int i = 3; i < 6; i++)
            tw_wheel_add_now(wheel, &timers[i]);
        assert_int_equal(tw_wheel_next_exact(wheel), START);
        assert_int_equal(tw_wheel_visit_until(wheel, START, count_one, &seen), 0);
        assert_int_equal(seen, 3);
        seen = 1;
        assert_int_equal(tw_wheel_visit(wheel, count_one, &seen), 1);
        assert_int_equal(seen, 7);
        seen = 5; /* the visit ends in the first of the two lists */
        assert_int_equal(tw_wheel_visit(wheel, count_one, &seen), 1);
        for (int i = 0; i < 6; i++)
            assert_non_null(tw_wheel_drain(wheel));
        assert_null(tw_wheel_drain(wheel));
        assert_int_equal(tw_wheel_next_exact(wheel), TW_NEVER);
    }
}

static void a_budget_pays_for_it_too(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer timers[2] = {0}, *timer;
        uint32_t budget = 0;
        tw_wheel_add_now(wheel, &timers[0]);
        tw_wheel_add_now(wheel, &timers[1]);
        assert_int_equal(tw_wheel_poll_budget(wheel, START, &budget, &timer), TW_POLL_MORE);
        budget = 1;
        assert_int_equal(tw_wheel_poll_budget(wheel, START, &budget, &timer), TW_POLL_DUE);
        assert_ptr_equal(timer, &timers[0]);
        assert_int_equal(budget, 0);
        assert_int_equal(tw_wheel_poll_budget(wheel, START, &budget, &timer), TW_POLL_MORE);
        tw_wheel_add_now(wheel, &timers[0]); /* the drain goes on: this timer is for the next drain */
        budget = 9;
        assert_int_equal(tw_wheel_poll_budget(wheel, START, &budget, &timer), TW_POLL_DUE);
        assert_ptr_equal(timer, &timers[1]);
        assert_int_equal(tw_wheel_poll_budget(wheel, START, &budget, &timer), TW_POLL_IDLE);
        assert_int_equal(tw_wheel_poll_budget(wheel, START, &budget, &timer), TW_POLL_DUE);
        assert_ptr_equal(timer, &timers[0]);
        assert_int_equal(budget, 7);
        assert_null(tw_wheel_poll(wheel, START));
    }
}

static void it_may_be_copied_to_other_memory(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer first = {0}, second = {0}, copy;
        tw_wheel_add_now(wheel, &first);
        tw_wheel_add_now(wheel, &second);
        copy = first;
        memset(&first, 0xA5, sizeof first);
        tw_timer_relocated(&copy);
        assert_ptr_equal(tw_wheel_poll(wheel, START), &copy);
        assert_ptr_equal(tw_wheel_poll(wheel, START), &second);
    }
}

static void it_fires_at_both_ends_of_time(void **state)
{
    (void)state;
    const uint64_t ends[] = {0, UINT64_MAX};
    for (int i = 0; i < 2; i++) {
        FOR_ALL_SHAPES(wheel, ends[i])
        {
            struct tw_timer timer = {0};
            tw_wheel_add_now(wheel, &timer);
            assert_int_equal(tw_wheel_next_exact(wheel), ends[i]);
            assert_ptr_equal(tw_wheel_poll(wheel, ends[i]), &timer);
            assert_null(tw_wheel_poll(wheel, ends[i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_filed_for_now_fires_in_the_current_poll),
        cmocka_unit_test(it_fires_after_everything_due_and_in_filing_order),
        cmocka_unit_test(filed_inside_a_drain_it_waits_for_the_next_one),
        cmocka_unit_test(a_timer_that_files_itself_for_now_fires_once_a_drain),
        cmocka_unit_test(it_may_be_cancelled_wherever_it_waits),
        cmocka_unit_test(it_may_be_moved_and_then_fires_on_its_tick),
        cmocka_unit_test(visits_and_next_see_it_and_a_drain_by_hand_takes_it_out),
        cmocka_unit_test(a_budget_pays_for_it_too),
        cmocka_unit_test(it_may_be_copied_to_other_memory),
        cmocka_unit_test(it_fires_at_both_ends_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
