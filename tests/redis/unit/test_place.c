/* SPDX-License-Identifier: MIT
 *
 * The places where tasks wait, one promise after the other. test_schedules.c has the model.
 */
#include "fixture.h"

#include "tests/support/cmocka.h"

#include <src/redis/schedules/place.h>
#include <src/redis/schedules/schedule.h>

/* ---- the promises of tw__redis_place_take() -------------------------------------------------------------- */

static void assert_take(uint64_t now, enum tw__redis_taken expected, const struct tw__redis_task *wanted)
{
    uint32_t budget = 100;
    struct tw__redis_task *task = NULL;
    assert_int_equal(tw__redis_place_take(all, now, true, &budget, &task), expected);
    assert_ptr_equal(task, wanted);
}

static void assert_taken(uint64_t now, const struct tw__redis_task *wanted)
{
    assert_take(now, wanted == NULL ? TW__REDIS_TAKEN_NONE : TW__REDIS_TAKEN_TASK, wanted);
}

static void a_late_task_waits_for_what_was_due_before_it_was_filed(void **state)
{
    (void)state;
    struct tw__redis_schedule *schedule = open_one();
    struct tw__redis_task *before = put_one(schedule, "before", START + 50, START);
    struct tw__redis_task *at = put_one(schedule, "at", START + 100, START);
    struct tw__redis_task *after = put_one(schedule, "after", START + 101, START);
    struct tw__redis_task *late = put_one(schedule, "late", START - 9, START + 100);
    struct tw__redis_task *later = put_one(schedule, "later", START - 10, START + 100);
    assert_taken(START + 200, before);
    assert_taken(START + 200, at);
    assert_taken(START + 200, late);
    assert_taken(START + 200, later);
    assert_taken(START + 200, after);
    assert_taken(START + 200, NULL);
    close_one(schedule);
}

static void what_is_filed_while_the_clock_is_back_comes_at_its_time(void **state)
{
    (void)state;
    struct tw__redis_schedule *schedule = open_one();
    struct tw__redis_task *far = put_one(schedule, "far", START + 5000, START);
    assert_taken(START + 3000, NULL);
    tw__redis_place_clock_back(all, START + 1000);
    struct tw__redis_task *near = put_one(schedule, "near", START + 2000, START + 1000);
    assert_true(tw__redis_place_next_work(all) <= START + 2000);
    assert_taken(START + 1999, NULL);
    tw__redis_place_clock_back(all, START + 500); /* once more */
    assert_taken(START + 1999, NULL);
    assert_taken(START + 2000, near);
    assert_taken(START + 2999, NULL);
    assert_non_null(all->behind);
    assert_taken(START + 3000, NULL);
    assert_null(all->behind);
    assert_taken(START + 5000, far);
    close_one(schedule);
}

/* The tasks are due in the second wheel when the clock is set back once more, but nobody has taken them
 * yet. */
static void what_came_due_while_the_clock_was_back_keeps_its_time(void **state)
{
    uint32_t budget = 1;
    struct tw__redis_task *task = NULL;
    (void)state;
    struct tw__redis_schedule *schedule = open_one();
    assert_taken(START + 1000, NULL);
    tw__redis_place_clock_back(all, START + 300);
    struct tw__redis_task *a = put_one(schedule, "a", START + 400, START + 300);
    struct tw__redis_task *b = put_one(schedule, "b", START + 450, START + 300);
    assert_int_equal(tw__redis_place_take(all, START + 600, true, &budget, &task), TW__REDIS_TAKEN_MORE);
    tw__redis_place_clock_back(all, START + 500);
    assert_taken(START + 500, a);
    assert_int_equal(tw__redis_task_due(a), START + 400);
    assert_taken(START + 500, b);
    assert_int_equal(tw__redis_task_due(b), START + 450);
    close_one(schedule);
}

/* A task has four bits for its tries. While it is held, its tries are derived from the waits of its route,
 * and the waits wrap. */
static void each_wait_is_a_try_of_all_that_are_held(void **state)
{
    (void)state;
    struct tw__redis_schedule *schedule = open_one();
    struct tw__redis_task *first = put_one(schedule, "1", START + 1, START);
    struct tw__redis_task *second = put_one(schedule, "2", START + 2, START);
    struct tw__redis_route *route = tw__redis_route_of(all, first);
    route->waits = UINT32_MAX - 3;
    assert_taken(START + 2, first);
    tw__redis_place_hold_first(all, first, 6000);
    assert_taken(START + 2, second);
    assert_true(tw__redis_place_is_blocked(all, second));
    route->waits++;
    tw__redis_place_hold(all, second);
    for (uint32_t tries = 1; tries < 8; tries++) {
        assert_int_equal(tw__redis_place_tries(all, first), tries);
        assert_int_equal(tw__redis_place_tries(all, second), tries - 1);
        tw__redis_place_make_ready(route);
        assert_take(START + 2, TW__REDIS_TAKEN_PROBE, first);
        assert_int_equal(tw__redis_task_tries(first), tries);
        assert_int_equal(tw__redis_place_tries(all, first), tries);
        tw__redis_place_hold_first(all, first, 6000);
        assert_null(route->ready.next);
        route->waits++;
    }
    tw__redis_place_unfile(all, first);
    tw__redis_place_unfile(all, second);
    assert_false(tw_timer_pending(&route->retry));
    assert_int_equal(tw__redis_task_tries(second), 7);
    close_one(schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_task_waits_for_what_was_due_before_it_was_filed),
        cmocka_unit_test(what_is_filed_while_the_clock_is_back_comes_at_its_time),
        cmocka_unit_test(what_came_due_while_the_clock_was_back_keeps_its_time),
        cmocka_unit_test(each_wait_is_a_try_of_all_that_are_held),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
