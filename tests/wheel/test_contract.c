/* SPDX-License-Identifier: MIT
 *
 * Between two polls the caller may make any call: a test for each clause of that rule, on every preset.
 */
#include "tests/support/cmocka.h"

#include <stdlib.h>

enum { START = 1000 };

static void a_fired_timer_is_not_pending_and_may_be_cancelled(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer timer = {0};
        assert_int_equal(tw_wheel_add_in(wheel, &timer, 5), 0);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 5), &timer);
        assert_false(tw_timer_pending(&timer));
        assert_false(tw_wheel_cancel(wheel, &timer));
        assert_null(tw_wheel_poll(wheel, START + 5));
        assert_int_equal(tw_wheel_count(wheel), 0);
    }
}

static void a_sibling_due_in_the_same_batch_can_be_cancelled(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer first = {0}, second = {0}, third = {0};
        tw_wheel_add_in(wheel, &first, 5);
        tw_wheel_add_in(wheel, &second, 5);
        tw_wheel_add_in(wheel, &third, 5);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 5), &first);
        assert_true(tw_timer_pending(&second));
        assert_true(tw_wheel_cancel(wheel, &second));
        assert_ptr_equal(tw_wheel_poll(wheel, START + 5), &third);
        assert_null(tw_wheel_poll(wheel, START + 5));
    }
}

static void re_arming_at_zero_delay_fires_on_the_next_tick_and_cannot_livelock(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer timer = {0};
        tw_wheel_add_in(wheel, &timer, 0);
        for (uint64_t now = START + 1; now < START + 200; now++) {
            assert_ptr_equal(tw_wheel_poll(wheel, now), &timer);
            assert_int_equal(tw_timer_deadline(&timer), now);
            tw_wheel_add_in(wheel, &timer, 0);
            assert_null(tw_wheel_poll(wheel, now));
        }
        tw_wheel_cancel(wheel, &timer);
    }
}

static void re_arming_into_the_range_of_a_jump_fires_after_the_jump(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer timer = {0};
        tw_wheel_add_in(wheel, &timer, 3);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 100), &timer);
        tw_wheel_add_at(wheel, &timer, START + 50); /* passed already: the clock stands at START + 100 */
        assert_int_equal(tw_timer_deadline(&timer), START + 101);
        assert_null(tw_wheel_poll(wheel, START + 100));
        assert_ptr_equal(tw_wheel_poll(wheel, START + 101), &timer);
    }
}

static void a_delay_counts_from_now_in_the_middle_of_a_jump(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer timer = {0};
        tw_wheel_add_in(wheel, &timer, 3);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 4000), &timer);
        assert_int_equal(tw_wheel_add_in(wheel, &timer, 10), 0);
        assert_int_equal(tw_timer_deadline(&timer), START + 4010);
        assert_null(tw_wheel_poll(wheel, START + 4009));
        assert_ptr_equal(tw_wheel_poll(wheel, START + 4010), &timer);
    }
}

static void a_sibling_due_in_the_same_batch_can_be_moved_later(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer first = {0}, second = {0};
        tw_wheel_add_in(wheel, &first, 5);
        tw_wheel_add_in(wheel, &second, 5);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 5), &first);
        tw_wheel_move_in(wheel, &second, 700);
        assert_null(tw_wheel_poll(wheel, START + 704));
        assert_ptr_equal(tw_wheel_poll(wheel, START + 705), &second);
    }
}

static void a_sibling_due_in_the_same_batch_moved_earlier_waits_for_the_next_tick(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer first = {0}, second = {0};
        tw_wheel_add_in(wheel, &first, 5);
        tw_wheel_add_in(wheel, &second, 5);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 5), &first);
        tw_wheel_move_at(wheel, &second, 1);
        assert_null(tw_wheel_poll(wheel, START + 5));
        assert_ptr_equal(tw_wheel_poll(wheel, START + 6), &second);
    }
}

static void a_timer_still_to_come_in_the_jump_can_be_moved_earlier_and_later(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer first = {0}, earlier = {0}, later = {0};
        tw_wheel_add_in(wheel, &first, 2);
        tw_wheel_add_in(wheel, &earlier, 900);
        tw_wheel_add_in(wheel, &later, 40);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 100), &first);
        tw_wheel_move_at(wheel, &earlier, START + 150);
        tw_wheel_move_at(wheel, &later, START + 3000);
        assert_null(tw_wheel_poll(wheel, START + 149));
        assert_ptr_equal(tw_wheel_poll(wheel, START + 150), &earlier);
        assert_null(tw_wheel_poll(wheel, START + 2999));
        assert_ptr_equal(tw_wheel_poll(wheel, START + 3000), &later);
    }
}

static void the_object_may_be_freed_as_soon_as_its_timer_has_fired(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        for (uint64_t i = 0; i < 300; i++)
            tw_wheel_add_in(wheel, calloc(1, sizeof(struct tw_timer)), i % 40);
        uint32_t fired = 0;
        struct tw_timer *timer;
        for (uint64_t now = START; now <= START + 40; now += 13)
            for (; (timer = tw_wheel_poll(wheel, now)) != NULL; fired++)
                free(timer);
        while ((timer = tw_wheel_poll(wheel, START + 40)) != NULL)
            free(timer), fired++;
        assert_int_equal(fired, 300);
    }
}

static void a_cancelled_timer_may_be_freed_at_once_though_hints_point_at_it(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer *timers[200];
        for (int i = 0; i < 200; i++)
            tw_wheel_add_in(wheel, timers[i] = calloc(1, sizeof *timers[i]), 600 + (uint64_t)i % 3);
        for (int i = 0; i < 200; i += 2) {
            assert_true(tw_wheel_cancel(wheel, timers[i]));
            free(timers[i]);
        }
        uint32_t fired = 0;
        struct tw_timer *timer;
        for (uint64_t now = START; now <= START + 602; now++)
            for (; (timer = tw_wheel_poll(wheel, now)) != NULL; fired++)
                free(timer);
        assert_int_equal(fired, 100);
    }
}

static void poll_may_be_called_again_from_inside_the_loop(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer timers[6] = {0};
        for (int i = 0; i < 6; i++)
            tw_wheel_add_in(wheel, &timers[i], 5);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 5), &timers[0]);
        for (int i = 1; i < 6; i++) /* the inner loop takes the other timers, at a later `now` */
            assert_ptr_equal(tw_wheel_poll(wheel, START + 9), &timers[i]);
        assert_null(tw_wheel_poll(wheel, START + 9));
        assert_null(tw_wheel_poll(wheel, START + 5));
        assert_int_equal(tw_wheel_now(wheel), START + 9);
    }
}

static void the_wheel_may_be_let_go_of_between_two_polls(void **state)
{
    (void)state;
    struct tw_geometry shapes[SHAPES_MAX];
    uint32_t count = all_shapes(shapes);
    for (uint32_t i = 0; i < count; i++) {
        struct tw_wheel *wheel = wheel_of(&shapes[i], START);
        struct tw_timer first = {0}, second = {0};
        tw_wheel_add_in(wheel, &first, 5);
        tw_wheel_add_in(wheel, &second, 5);
        assert_ptr_equal(tw_wheel_poll(wheel, START + 5), &first);
        tw_wheel_free(wheel);
    }
}

static void all_timers_may_be_cancelled_in_the_middle_of_a_drain(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer timers[100] = {0};
        for (int i = 0; i < 100; i++)
            tw_wheel_add_in(wheel, &timers[i], 5 + (uint64_t)i % 7 * 300);
        struct tw_timer *first = tw_wheel_poll(wheel, START + 700);
        assert_ptr_equal(first, &timers[0]);
        for (int i = 1; i < 100; i++)
            assert_true(tw_wheel_cancel(wheel, &timers[i]));
        assert_null(tw_wheel_poll(wheel, START + 700));
        assert_null(tw_wheel_poll(wheel, START + 5000));
        assert_int_equal(tw_wheel_next_bound(wheel), TW_NEVER);
    }
}

static void the_wheel_may_be_drained_by_hand_in_the_middle_of_a_batch(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, START)
    {
        struct tw_timer timers[100] = {0};
        for (int i = 0; i < 100; i++)
            tw_wheel_add_in(wheel, &timers[i], (uint64_t)i * 40);
        uint32_t budget = 3, drained = 0;
        struct tw_timer *timer;
        tw_wheel_poll_budget(wheel, START + 2000, &budget, &timer);
        uint32_t fired = timer != NULL;
        for (; (timer = tw_wheel_drain(wheel)) != NULL; drained++)
            assert_false(tw_timer_pending(timer));
        assert_int_equal(fired + drained, 100);
        assert_int_equal(tw_wheel_count(wheel), 0);
        assert_null(tw_wheel_poll(wheel, START + 9000));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fired_timer_is_not_pending_and_may_be_cancelled),
        cmocka_unit_test(a_sibling_due_in_the_same_batch_can_be_cancelled),
        cmocka_unit_test(re_arming_at_zero_delay_fires_on_the_next_tick_and_cannot_livelock),
        cmocka_unit_test(re_arming_into_the_range_of_a_jump_fires_after_the_jump),
        cmocka_unit_test(a_delay_counts_from_now_in_the_middle_of_a_jump),
        cmocka_unit_test(a_sibling_due_in_the_same_batch_can_be_moved_later),
        cmocka_unit_test(a_sibling_due_in_the_same_batch_moved_earlier_waits_for_the_next_tick),
        cmocka_unit_test(a_timer_still_to_come_in_the_jump_can_be_moved_earlier_and_later),
        cmocka_unit_test(the_object_may_be_freed_as_soon_as_its_timer_has_fired),
        cmocka_unit_test(a_cancelled_timer_may_be_freed_at_once_though_hints_point_at_it),
        cmocka_unit_test(poll_may_be_called_again_from_inside_the_loop),
        cmocka_unit_test(the_wheel_may_be_let_go_of_between_two_polls),
        cmocka_unit_test(all_timers_may_be_cancelled_in_the_middle_of_a_drain),
        cmocka_unit_test(the_wheel_may_be_drained_by_hand_in_the_middle_of_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
