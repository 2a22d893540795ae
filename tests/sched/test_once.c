/* SPDX-License-Identifier: MIT
 *
 * Tasks that run once: on which tick, in which order.
 */
#include "support.h"

static void a_task_runs_on_the_first_tick_that_is_not_before_its_time(void **state)
{
    (void)state;
    static const uint64_t ticks[] = {1000, 1000000, 999983, 60000000000};
    static const uint64_t starts[] = {0, 1, 123456789012345, UINT64_MAX / 2};
    for (size_t t = 0; t < 4; t++)
        for (size_t s = 0; s < 4; s++)
            for (uint64_t part = 0; part <= 20; part++) {
                struct tw_sched *sched =
                    sched_of((struct tw_sched_options){.tick_ns = ticks[t], .start_ns = starts[s]});
                uint64_t due_ns = starts[s] + 3 * ticks[t] + part * ticks[t] / 20;
                tw_sched_add_at(sched, due_ns, log_call, NULL, NULL);
                advance(sched, 10 * ticks[t]);
                assert_int_equal(calls, 1);
                assert_true(seen_at[0] >= due_ns);
                assert_true(seen_at[0] - due_ns < ticks[t]);
                assert_int_equal(seen[0].due_ns, due_ns);
                assert_int_equal(seen[0].late_ns, seen_at[0] - due_ns);
                tw_sched_free(sched);
            }
}

static void tasks_of_one_tick_run_in_the_order_of_adding(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    for (uintptr_t i = 0; i < 1000; i++)
        tw_sched_add_in(sched, (i % 3 == 0 ? 500 : i % 3 == 1 ? 70 : 5) * ms, log_call, (void *)i, NULL);
    advance(sched, 1000 * ms);
    assert_int_equal(calls, 1000);
    for (int i = 1; i < calls; i++)
        assert_true(seen_at[i] > seen_at[i - 1] || (uintptr_t)seen[i].arg > (uintptr_t)seen[i - 1].arg);
    tw_sched_free(sched);
}

static void a_time_that_has_passed_means_the_next_tick(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    advance(sched, 100 * ms + 300);
    tw_sched_add_at(sched, 3 * ms, log_call, NULL, NULL);
    tw_sched_add_at(sched, 0, log_call, NULL, NULL);
    tw_sched_add_at(sched, 100 * ms + 1, log_call, NULL, NULL);
    tw_sched_add_in(sched, 0, log_call, NULL, NULL);
    advance(sched, ms);
    assert_int_equal(calls, 4);
    assert_int_equal(seen[0].due_ns, 100 * ms); /* the beginning of the tick in which it was filed */
    assert_int_equal(seen[1].due_ns, 100 * ms);
    assert_int_equal(seen[2].due_ns, 100 * ms + 1);
    assert_int_equal(seen[3].due_ns, 100 * ms + 300);
    for (int i = 0; i < calls; i++)
        assert_int_equal(seen_at[i], 101 * ms);
    tw_sched_free(sched);
}

static void the_end_of_time_never_comes_and_sums_saturate(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    advance(sched, 5 * ms);
    tw_sched_add_in(sched, UINT64_MAX, log_call, NULL, NULL);
    tw_sched_add_in(sched, UINT64_MAX - 5, log_call, NULL, NULL);
    assert_int_equal(tw_sched_advance(sched, UINT64_MAX - 1), 0);
    assert_int_equal(calls, 0);
    assert_int_equal(tw_sched_count(sched), 2);
    tw_sched_free(sched);
}

static void the_id_is_there_before_the_task_can_run(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t id = 0;
    tw_sched_add_in(sched, ms, log_call, NULL, &id);
    assert_int_not_equal(id, 0);
    advance(sched, 2 * ms);
    assert_int_equal(seen[0].id, id);
    tw_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_runs_on_the_first_tick_that_is_not_before_its_time),
        cmocka_unit_test(tasks_of_one_tick_run_in_the_order_of_adding),
        cmocka_unit_test(a_time_that_has_passed_means_the_next_tick),
        cmocka_unit_test(the_end_of_time_never_comes_and_sums_saturate),
        cmocka_unit_test(the_id_is_there_before_the_task_can_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
