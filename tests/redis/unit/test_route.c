/* SPDX-License-Identifier: MIT
 *
 * Routes: found by their plan, numbered, kept and released.
 */
#include "fixture.h"

#include "tests/support/cmocka.h"

#include <src/redis/queues/queue.h>
#include <src/redis/queues/route.h>

static void each_plan_has_one_route_that_tells_it(void **state)
{
    struct tw__redis_route *route[PLANS];
    (void)state;
    struct tw__redis_queue *queue = open_one();
    for (unsigned i = 0; i < PLANS; i++) {
        route[i] = tw__redis_route_for(queue, &plan_of[i]);
        tw__redis_route_keep(route[i]);
        for (unsigned k = 0; k < i; k++)
            assert_ptr_not_equal(route[k], route[i]);
    }
    assert_int_equal(tw__redis_route_count(queue), PLANS);
    for (unsigned i = 0; i < PLANS; i++) {
        struct tw__redis_plan plan = tw__redis_route_plan(route[i]);
        assert_ptr_equal(tw__redis_route_for(queue, &plan_of[i]), route[i]);
        assert_ptr_equal(tw__redis_route_at(all, route[i]->index), route[i]);
        assert_plans_equal(&plan, &plan_of[i]);
    }
    for (unsigned i = 0; i < PLANS; i++)
        tw__redis_route_release(route[i]);
    assert_int_equal(tw__redis_route_count(queue), 0);
    close_one(queue);
}

/* Plans for workers may differ in each of their numbers. The route that was used last is not taken for another
 * route. */
static void each_way_to_try_again_has_a_route_of_its_own(void **state)
{
    const struct tw__redis_plan same = plan_of[PLANS - 1];
    struct tw__redis_plan other[8];
    (void)state;
    for (unsigned i = 0; i < 8; i++)
        other[i] = same;
    other[0].retry.first_ms++;
    other[1].retry.max_ms++;
    other[2].retry.tries++;
    other[3].retry.factor_percent++;
    other[4].retry.jitter++;
    other[5].missed = TW_MISSED_SKIP;
    other[6].max_late_ms++;
    other[7].maxlen++;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_route *route = tw__redis_route_for(queue, &same), *last = route;
    tw__redis_route_keep(route);
    for (unsigned i = 0; i < 8; i++) {
        struct tw__redis_route *its = tw__redis_route_for(queue, &other[i]);
        struct tw__redis_plan plan = tw__redis_route_plan(its);
        assert_ptr_not_equal(its, last);
        assert_ptr_not_equal(its, route);
        assert_plans_equal(&plan, &other[i]);
        assert_ptr_equal(tw__redis_route_for(queue, &same), route);
        last = route;
    }
    tw__redis_route_release(route);
    close_one(queue);
}

static void a_route_stays_while_it_is_kept_or_was_used_last(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_route *kept = tw__redis_route_for(queue, &plan_of[0]);
    uint32_t index = kept->index;
    kept->target = new_target();
    tw__redis_route_keep(kept);
    struct tw__redis_route *last = tw__redis_route_for(queue, &plan_of[1]);
    assert_int_equal(tw__redis_route_count(queue), 1); /* the last route has no tasks */
    assert_int_equal(tw__redis_table_count(&queue->routes), 2);
    tw__redis_route_release(kept); /* frees the unused route, and forgets its target */
    assert_int_equal(targets_out, 0);
    assert_int_equal(tw__redis_table_count(&queue->routes), 1);
    assert_null(tw__redis_route_at(all, index));
    tw__redis_route_keep(last);
    tw__redis_route_release(last);
    assert_ptr_equal(tw__redis_route_for(queue, &plan_of[1]), last);
    close_one(queue);
}

static void numbers_are_used_again(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    for (unsigned i = 0; i < 1000; i++)
        assert_true(tw__redis_route_for(queue, &plan_of[i % PLANS])->index < 2);
    assert_int_equal(all->routes, 2);
    close_one(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_plan_has_one_route_that_tells_it),
        cmocka_unit_test(each_way_to_try_again_has_a_route_of_its_own),
        cmocka_unit_test(a_route_stays_while_it_is_kept_or_was_used_last),
        cmocka_unit_test(numbers_are_used_again),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
