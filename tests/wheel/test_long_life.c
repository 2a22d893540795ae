/* SPDX-License-Identifier: MIT
 *
 * The wheel is right after any uptime, up to the end of time: near timers beside far timers, and bugs of
 * other libraries.
 */
#include "tests/support/cmocka.h"

static const uint64_t starts[] = {0, UINT32_MAX, 1ull << 36, (1ull << 63) - 1, UINT64_MAX - (1 << 20) + 1};
enum { STARTS = sizeof starts / sizeof *starts };

static void near_timers_fire_on_their_tick_beside_far_ones_after_any_uptime(void **state)
{
    (void)state;
    for (int i = 0; i < STARTS; i++) {
        struct tw_wheel *wheel = wheel_of(NULL, starts[i]);
        struct tw_timer far[60] = {0}, near = {0};
        for (int bits = 0; bits < 60; bits++)
            tw_wheel_add_in(wheel, &far[bits], (1ull << bits) + 5000);
        for (uint64_t now = starts[i]; now < starts[i] + 3000; now += 50) {
            tw_wheel_add_in(wheel, &near, 49);
            assert_null(tw_wheel_poll(wheel, now + 48));
            assert_ptr_equal(tw_wheel_poll(wheel, now + 49), &near);
            assert_null(tw_wheel_poll(wheel, now + 50));
        }
        while (tw_wheel_drain(wheel) != NULL)
            ;
        tw_wheel_free(wheel);
    }
}

static void every_delay_fires_on_its_tick_from_any_start(void **state)
{
    (void)state;
    for (int i = 0; i < STARTS; i++) {
        for (int bits = 0; bits < 64; bits++) {
            struct tw_wheel *wheel = wheel_of(NULL, starts[i]);
            struct tw_timer timer = {0};
            tw_wheel_add_in(wheel, &timer, 1ull << bits);
            uint64_t due = tw_timer_deadline(&timer);
            while (tw_timer_pending(&timer)) {
                assert_true(tw_wheel_next_bound(wheel) <= due);
                tw_wheel_poll(wheel, tw_wheel_next_bound(wheel));
            }
            assert_int_equal(tw_wheel_now(wheel), due);
            tw_wheel_free(wheel);
        }
    }
}

/* tokio-rs/tokio#8334: after 2^30 ms (12.4 days), with a timer of more than 2^36 ms in the current slot of
 * the top level, timers due in milliseconds were delayed for years. */
static void near_timers_are_not_lost_after_12_days_as_in_tokio_8334(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer far = {0}, near = {0};
        bool takes_far = tw_wheel_add_in(wheel, &far, (1ull << 36) + (1ull << 30) + 5000) == 0;
        assert_null(tw_wheel_poll(wheel, (1ull << 30) + 10));
        tw_wheel_add_in(wheel, &near, 150);
        assert_true(tw_wheel_next_bound(wheel) <= (1ull << 30) + 160);
        assert_null(tw_wheel_poll(wheel, (1ull << 30) + 159));
        assert_ptr_equal(tw_wheel_poll(wheel, (1ull << 30) + 160), &near);
        if (takes_far)
            assert_ptr_equal(tw_wheel_poll(wheel, 1ull << 37), &far);
    }
}

/* netty/netty#7760: a huge delay overflowed, and its timer fired at once. */
static void a_huge_delay_does_not_fire_at_once_as_in_netty_7760(void **state)
{
    (void)state;
    for (int i = 0; i < STARTS; i++) {
        struct tw_wheel *wheel = wheel_of(NULL, starts[i]);
        struct tw_timer timer = {0};
        tw_wheel_add_in(wheel, &timer, UINT64_MAX - 11);
        assert_null(tw_wheel_poll(wheel, starts[i] + 1000));
        assert_true(tw_timer_pending(&timer));
        tw_wheel_cancel(wheel, &timer);
        tw_wheel_free(wheel);
    }
}

/* wahern/timeout: an update from 60 to 300 handed out the deadlines 62, 66, 200 as 66, 62, 200. */
static void a_jump_fires_in_order_of_deadline_unlike_wahern_timeout(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 60)
    {
        struct tw_timer a = {0}, b = {0}, c = {0};
        tw_wheel_add_at(wheel, &c, 200);
        tw_wheel_add_at(wheel, &b, 66);
        tw_wheel_add_at(wheel, &a, 62);
        assert_ptr_equal(tw_wheel_poll(wheel, 300), &a);
        assert_ptr_equal(tw_wheel_poll(wheel, 300), &b);
        assert_ptr_equal(tw_wheel_poll(wheel, 300), &c);
    }
}

/* twitter/rpc-perf#180: a timer with a delay longer than the wheel fired early. */
static void a_delay_longer_than_the_wheel_is_not_early_as_in_rpc_perf_180(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 17)
    {
        struct tw_timer timer = {0};
        if (tw_wheel_add_in(wheel, &timer, 1000003) != 0)
            continue;
        assert_null(tw_wheel_poll(wheel, 1000019));
        assert_ptr_equal(tw_wheel_poll(wheel, 1000020), &timer);
    }
}

/* ben-manes/caffeine#431: the next expiry was computed wrong across a level, and no timer fired for hours. */
static void the_next_event_is_right_across_levels_unlike_caffeine_431(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer far = {0}, near = {0};
        bool takes_far = tw_wheel_add_in(wheel, &far, 700000) == 0;
        tw_wheel_add_in(wheel, &near, 4000);
        while (tw_timer_pending(&near))
            tw_wheel_poll(wheel, tw_wheel_next_bound(wheel));
        assert_int_equal(tw_wheel_now(wheel), 4000);
        while (tw_timer_pending(&far))
            tw_wheel_poll(wheel, tw_wheel_next_bound(wheel));
        assert_int_equal(tw_wheel_now(wheel), takes_far ? 700000 : 4000);
    }
}

static void at_the_end_of_time_what_is_due_fires_and_what_comes_after_waits(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, UINT64_MAX - 3000)
    {
        struct tw_timer last = {0}, after = {0}, before = {0};
        tw_wheel_add_in(wheel, &last, 5000);
        tw_wheel_add_in(wheel, &before, 2999);
        assert_int_equal(tw_timer_deadline(&last), UINT64_MAX);
        assert_null(tw_wheel_poll(wheel, UINT64_MAX - 2));
        assert_ptr_equal(tw_wheel_poll(wheel, UINT64_MAX), &before);
        assert_ptr_equal(tw_wheel_poll(wheel, UINT64_MAX), &last);
        assert_int_equal(tw_wheel_add_in(wheel, &after, 0), 0);
        assert_null(tw_wheel_poll(wheel, UINT64_MAX));
        assert_true(tw_timer_pending(&after));
        assert_int_equal(tw_wheel_next_bound(wheel), TW_NEVER);
        assert_int_equal(tw_wheel_next_exact(wheel), TW_NEVER);
        assert_int_equal(tw_wheel_move_in(wheel, &after, 7), 0);
        assert_null(tw_wheel_check(wheel));
        assert_ptr_equal(tw_wheel_drain(wheel), &after);
    }
}

static void big_slots_are_refiled_right_up_to_the_end_of_time(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    for (uint64_t reach = 1 << 10; reach < 1ull << 40; reach <<= 3) {
        struct tw_wheel *wheel = wheel_of(NULL, UINT64_MAX - reach);
        struct tw_timer timers[COUNT] = {0};
        for (int i = 0; i < COUNT; i++)
            tw_wheel_add_at(wheel, &timers[i], UINT64_MAX - (uint64_t)i % 2);
        for (int i = 1; i < COUNT; i += 2)
            assert_ptr_equal(tw_wheel_poll(wheel, UINT64_MAX), &timers[i]);
        for (int i = 0; i < COUNT; i += 2)
            assert_ptr_equal(tw_wheel_poll(wheel, UINT64_MAX), &timers[i]);
        tw_wheel_free(wheel);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_timers_fire_on_their_tick_beside_far_ones_after_any_uptime),
        cmocka_unit_test(every_delay_fires_on_its_tick_from_any_start),
        cmocka_unit_test(near_timers_are_not_lost_after_12_days_as_in_tokio_8334),
        cmocka_unit_test(a_huge_delay_does_not_fire_at_once_as_in_netty_7760),
        cmocka_unit_test(a_jump_fires_in_order_of_deadline_unlike_wahern_timeout),
        cmocka_unit_test(a_delay_longer_than_the_wheel_is_not_early_as_in_rpc_perf_180),
        cmocka_unit_test(the_next_event_is_right_across_levels_unlike_caffeine_431),
        cmocka_unit_test(at_the_end_of_time_what_is_due_fires_and_what_comes_after_waits),
        cmocka_unit_test(big_slots_are_refiled_right_up_to_the_end_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
