/* SPDX-License-Identifier: MIT
 *
 * Routes: found by their plan, numbered, kept and released.
 */
#include "fixture.h"

#include "tests/support/cmocka.h"

#include <src/redis/schedules/route.h>
#include <src/redis/schedules/schedule.h>

static void each_plan_has_one_route_that_tells_it(void **state)
{
    struct tw__redis_route *route[PLANS];
    (void)state;
    struct tw__redis_schedule *schedule = open_one();
    for (unsigned i = 0; i < PLANS; i++) {
        route[i] = tw__redis_route_for(schedule, &plan_of[i]);
        tw__redis_route_keep(route[i]);
        for (unsigned k = 0; k < i; k++)
            assert_ptr_not_equal(route[k], route[i]);
    }
    assert_int_equal(tw__redis_route_count(schedule), PLANS);
    for (unsigned i = 0; i < PLANS; i++) {
        struct tw__redis_plan plan = tw__redis_route_plan(route[i]);
        assert_ptr_equal(tw__redis_route_for(schedule, &plan_of[i]), route[i]);
        assert_ptr_equal(tw__redis_route_at(all, route[i]->index), route[i]);
        assert_int_equal(plan.kind, plan_of[i].kind);
        assert_int_equal(plan.late, plan_of[i].late);
        assert_int_equal(plan.maxlen, plan_of[i].maxlen);
        assert_int_equal(plan.late_ms, plan_of[i].late_ms);
        assert_bytes_equal(plan.target, plan_of[i].target);
    }
    for (unsigned i = 0; i < PLANS; i++)
        tw__redis_route_release(route[i]);
    assert_int_equal(tw__redis_route_count(schedule), 0);
    close_one(schedule);
}

static void a_route_stays_while_it_is_kept_or_was_used_last(void **state)
{
    (void)state;
    struct tw__redis_schedule *schedule = open_one();
    struct tw__redis_route *kept = tw__redis_route_for(schedule, &plan_of[0]);
    uint32_t index = kept->index;
    kept->target = new_target();
    tw__redis_route_keep(kept);
    struct tw__redis_route *last = tw__redis_route_for(schedule, &plan_of[1]);
    assert_int_equal(tw__redis_route_count(schedule), 1); /* the last route has no tasks */
    assert_int_equal(tw__redis_table_count(&schedule->routes), 2);
    tw__redis_route_release(kept); /* frees the unused route, and forgets its target */
    assert_int_equal(targets_out, 0);
    assert_int_equal(tw__redis_table_count(&schedule->routes), 1);
    assert_null(tw__redis_route_at(all, index));
    tw__redis_route_keep(last);
    tw__redis_route_release(last);
    assert_ptr_equal(tw__redis_route_for(schedule, &plan_of[1]), last);
    close_one(schedule);
}

static void numbers_are_used_again(void **state)
{
    (void)state;
    struct tw__redis_schedule *schedule = open_one();
    for (unsigned i = 0; i < 1000; i++)
        assert_true(tw__redis_route_for(schedule, &plan_of[i % PLANS])->index < 2);
    assert_int_equal(all->routes, 2);
    close_one(schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_plan_has_one_route_that_tells_it),
        cmocka_unit_test(a_route_stays_while_it_is_kept_or_was_used_last),
        cmocka_unit_test(numbers_are_used_again),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
