/* SPDX-License-Identifier: MIT
 *
 * Rings of 2^18 slots, all of which cancels have emptied. No call passes over all of them at once (the essay
 * in wheel.c, "Marks"): a question for the next event passes over 4,096, a poll over as many as its budget.
 */
#include "tests/support/cmocka.h"

enum { RING = TW_GEOMETRY_SLOTS_MAX, AT_ONCE = 4096, BUDGET = 1000 };
static struct tw_timer timers[RING];

static struct tw_geometry large(int number)
{
    switch (number) {
    case 0:
        return (struct tw_geometry)TW_GEOMETRY_SIMPLE(RING);
    case 1:
        return (struct tw_geometry)TW_GEOMETRY_HASHED(RING);
    default:
        return shape(TW_OVERFLOW_REJECT, 2, RING, RING / 2, RING, 0);
    }
}

/* A wheel in which all slots up to the last one have lost their timers, on level 0 or, with `unit` above 1, on
 * level 1. */
static struct tw_wheel *emptied(int number, uint64_t start, uint64_t unit, uint64_t *last)
{
    const struct tw_geometry geometry = large(number);
    struct tw_wheel *wheel = wheel_of(&geometry, start);
    memset(timers, 0, sizeof timers);
    uint64_t from = unit > 1 ? 2 * unit : start + 1, live = RING - 3;
    for (uint64_t i = 0; i <= live; i++)
        assert_int_equal(tw_wheel_add_at(wheel, &timers[i], from + i * unit), 0);
    for (uint64_t i = 0; i < live; i++)
        tw_wheel_cancel(wheel, &timers[i]);
    *last = from + live * unit;
    return wheel;
}

static void a_question_passes_over_a_few_thousand_slots(void **state)
{
    (void)state;
    for (int number = 0; number < 4; number++) {
        uint64_t last, wakes = 0, unit = number == 3 ? RING / 2 : 1;
        struct tw_wheel *wheel = emptied(number, 7, unit, &last);
        assert_in_range(tw_wheel_next_bound(wheel), AT_ONCE * unit, (AT_ONCE + 100) * unit);
        struct tw_timer *timer;
        while ((timer = tw_wheel_poll(wheel, tw_wheel_next_bound(wheel))) == NULL)
            wakes++;
        assert_ptr_equal(timer, &timers[RING - 3]);
        assert_int_equal(tw_wheel_now(wheel), last);
        assert_in_range(wakes, 1, RING / AT_ONCE + 2);
        assert_null(tw_wheel_check(wheel));
        tw_wheel_free(wheel);
    }
}

static void a_slot_on_the_way_costs_a_unit_of_the_budget(void **state)
{
    (void)state;
    for (int number = 0; number < 4; number++) {
        uint64_t last, calls = 0;
        struct tw_wheel *wheel = emptied(number, 0, number == 3 ? RING / 2 : 1, &last);
        struct tw_timer *timer = NULL;
        uint32_t budget = BUDGET;
        for (; tw_wheel_poll_budget(wheel, last, &budget, &timer) == TW_POLL_MORE; budget = BUDGET) {
            assert_int_equal(budget, 0);
            if (calls++ % 64 == 0)
                assert_null(tw_wheel_check(wheel));
        }
        assert_ptr_equal(timer, &timers[RING - 3]);
        assert_int_equal(calls, (RING - 3) / BUDGET);
        assert_null(tw_wheel_check(wheel));
        tw_wheel_free(wheel);
    }
}

/* A jump over many rounds passes no mark, so no mark is left that would have its next turn after the end of
 * time. */
static void a_jump_to_the_end_of_time_leaves_no_mark_behind(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_HASHED(RING), 0);
    memset(timers, 0, sizeof timers);
    assert_int_equal(tw_wheel_add_at(wheel, &timers[RING - 1], UINT64_MAX - 10), 0);
    for (uint64_t now = 0; now < 3 * RING; now += RING) /* a round without a timer that fires */
        assert_null(tw_wheel_poll(wheel, now));
    for (uint64_t i = 0; i < RING - 20; i++)
        assert_int_equal(tw_wheel_add_in(wheel, &timers[i], i + 1), 0);
    for (uint64_t i = 0; i < RING - 20; i++)
        tw_wheel_cancel(wheel, &timers[i]);
    assert_null(tw_wheel_poll(wheel, UINT64_MAX - 11));
    assert_null(tw_wheel_check(wheel));
    assert_int_equal(tw_wheel_next_bound(wheel), UINT64_MAX - 10);
    assert_ptr_equal(tw_wheel_poll(wheel, UINT64_MAX - 10), &timers[RING - 1]);
    assert_int_equal(tw_wheel_add_at(wheel, &timers[0], UINT64_MAX - 2), 0);
    assert_null(tw_wheel_poll(wheel, UINT64_MAX - 3));
    assert_int_equal(tw_wheel_next_bound(wheel), UINT64_MAX - 2);
    assert_ptr_equal(tw_wheel_poll(wheel, UINT64_MAX), &timers[0]);
    assert_null(tw_wheel_check(wheel));
    tw_wheel_free(wheel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_passes_over_a_few_thousand_slots),
        cmocka_unit_test(a_slot_on_the_way_costs_a_unit_of_the_budget),
        cmocka_unit_test(a_jump_to_the_end_of_time_leaves_no_mark_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
