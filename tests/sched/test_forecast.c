/* SPDX-License-Identifier: MIT
 *
 * The forecast.
 */
#include "outcome.h"
#include "spread.h"
#include "support.h"

static void expect_forecast(const struct tw_sched *sched, uint64_t step_ns, const uint64_t expected[6])
{
    uint64_t counts[6];
    assert_int_equal(tw_sched_forecast(sched, step_ns, 6, counts), 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(counts[i], expected[i]);
}

static void a_forecast_counts_what_is_due_in_each_step(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    static const uint64_t due[] = {0, 1, 10, 11, 20, 21, 60, 61, 1000000};
    uint64_t id;
    expect_forecast(sched, 10 * ms, (uint64_t[]){0, 0, 0, 0, 0, 0});
    for (size_t i = 0; i < sizeof due / sizeof due[0]; i++)
        assert_int_equal(tw_sched_add_in(sched, due[i] * ms, log_call, NULL, NULL), 0);
    tw_sched_add_in(sched, UINT64_MAX, log_call, NULL, NULL);
    expect_forecast(sched, 10 * ms, (uint64_t[]){3, 2, 1, 0, 0, 1});
    expect_forecast(sched, UINT64_MAX,
                    (uint64_t[]){9, 0, 0, 0, 0, 0}); /* a task due at the end of time never runs */
    assert_int_equal(tw_sched_add_in(sched, 35 * ms, log_call, NULL, &id), 0);
    expect_forecast(sched, 10 * ms, (uint64_t[]){3, 2, 1, 1, 0, 1});
    tw_sched_move_in(sched, id, 45 * ms);
    expect_forecast(sched, 10 * ms, (uint64_t[]){3, 2, 1, 0, 1, 1});
    tw_sched_cancel(sched, id);
    expect_forecast(sched, 10 * ms, (uint64_t[]){3, 2, 1, 0, 0, 1});
    advance(sched, 15 * ms);
    expect_forecast(sched, 10 * ms, (uint64_t[]){2, 0, 0, 0, 2, 0});
    tw_sched_free(sched);
}

static void a_forecast_counts_every_call_of_a_repeating_task(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_every thrice = {.first_ns = 15 * ms, .period_ns = 10 * ms, .times = 3},
                    ever = {.first_ns = 5 * ms, .period_ns = 5 * ms, .missed = TW_MISSED_SKIP},
                    late = {.first_ns = 500 * ms, .period_ns = ms};
    assert_int_equal(tw_sched_add_every(sched, &thrice, log_call, NULL, NULL), 0);
    expect_forecast(sched, 10 * ms, (uint64_t[]){0, 1, 1, 1, 0, 0});
    expect_forecast(sched, UINT64_MAX / 2,
                    (uint64_t[]){3, 0, 0, 0, 0, 0}); /* the steps reach beyond the end of time */
    expect_forecast(sched, UINT64_MAX, (uint64_t[]){3, 0, 0, 0, 0, 0}); /* the first step alone does */
    assert_int_equal(tw_sched_add_every(sched, &ever, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_add_every(sched, &late, log_call, NULL, NULL), 0);
    expect_forecast(sched, 10 * ms, (uint64_t[]){2, 3, 3, 3, 2, 2});
    advance(sched, 27 * ms);
    expect_forecast(sched, 10 * ms, (uint64_t[]){3, 2, 2, 2, 2, 2});
    tw_sched_free(sched);
}

/* More tasks of both kinds than the forecast reads from the wheel. So it goes through the lines of both. */
static void a_forecast_counts_tasks_with_and_without_keys(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    enum { EACH = 5000 };
    for (int i = 0; i < EACH; i++) {
        uint64_t due_ns = (1 + (uint64_t)i % 60) * ms;
        assert_int_equal(tw_sched_add_at(sched, due_ns, log_call, NULL, NULL), 0);
        assert_int_equal(tw_sched_key_put_at(sched, BYTES_OF(i), due_ns, log_call, NULL, NULL), 0);
        if (i >= 60 && i % 2)
            assert_int_equal(tw_sched_key_cancel(sched, BYTES_OF(i), NULL), TW_CANCEL_CANCELLED);
    }
    expect_forecast(sched, 10 * ms, (uint64_t[]){1265, 1265, 1250, 1250, 1250, 1250});
    tw_sched_free(sched);
}

static void forecast_inside(struct tw_sched *sched, const struct tw_task *task)
{
    uint64_t *counts = task->arg;
    if (counts[0] == 1)
        tw_sched_move_in(sched, task->id, 25 * ms);
    tw_sched_forecast(sched, 10 * ms, 6, counts);
}

static void a_forecast_counts_what_follows_the_call_under_way(void **state)
{
    (void)state;
    static const uint64_t again[] = {0, 0, 1, 0, 1, 0}, last[6];
    struct tw_sched *sched = plain_sched();
    uint64_t counts[3][6] = {{0}, {1}, {0}};
    struct tw_every every = {.first_ns = 0, .period_ns = 20 * ms, .times = 3};
    tw_sched_add_every(sched, &every, forecast_inside, counts[0], NULL);
    advance(sched, ms);
    assert_memory_equal(counts[0], ((uint64_t[]){0, 1, 0, 1, 0, 0}), sizeof counts[0]);
    advance(sched, 100 * ms);
    assert_memory_equal(counts[0], last, sizeof last);
    tw_sched_add_every(sched, &every, forecast_inside, counts[1], NULL);
    advance(sched, ms);
    assert_memory_equal(counts[1], again, sizeof again);
    tw_sched_add_in(sched, ms, forecast_inside, counts[2], NULL);
    advance(sched, ms);
    assert_int_equal(counts[2][0], 0);
    tw_sched_free(sched);
}

/* An executor that keeps the due tasks and does not run them, as if it were busy. */
static void sit_on(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)sched;
    *(uint64_t *)arg = id;
}

static void a_forecast_counts_missed_periods_as_their_policy_has_it(void **state)
{
    (void)state;
    static const uint64_t first[] = {[TW_MISSED_BURST] = 10, [TW_MISSED_SKIP] = 2, [TW_MISSED_COALESCE] = 2};
    for (enum tw_missed missed = TW_MISSED_COALESCE; missed <= TW_MISSED_BURST; missed++) {
        uint64_t id = 0;
        struct tw_sched *sched = sched_of((struct tw_sched_options){.execute = sit_on, .execute_arg = &id});
        struct tw_every every = {.first_ns = 5 * ms, .period_ns = 10 * ms, .missed = missed};
        tw_sched_add_every(sched, &every, log_call, NULL, NULL);
        advance(sched, 87 * ms);
        expect_forecast(sched, 10 * ms, (uint64_t[]){first[missed], 1, 1, 1, 1, 1});
        tw_sched_run(sched, id);
        tw_sched_free(sched);
    }
}

static void a_forecast_of_more_than_one_hold_of_the_lock_is_complete(void **state)
{
    (void)state;
    enum { MANY = 20000, REPEATING = 300 };
    for (uint32_t shards = 1; shards <= 3; shards += 2) {
        struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = shards});
        struct tw_every every = {.first_ns = 25 * ms, .period_ns = 20 * ms};
        char key[16];
        spread_keys(sched);
        for (int i = 0; i < MANY; i++) {
            int size = snprintf(key, sizeof key, "%d", i);
            tw_sched_key_put_in(sched, (struct tw_bytes){key, (size_t)size}, (uint64_t)(i % 60) * ms + 1,
                                log_call, NULL, NULL);
        }
        for (int i = 0; i < REPEATING; i++)
            tw_sched_add_every(sched, &every, log_call, NULL, NULL);
        uint64_t sum = 0, counts[TW_FORECAST_MAX];
        assert_int_equal(tw_sched_forecast(sched, 10 * ms, 6, counts), 0);
        for (int i = 0; i < 6; i++)
            sum += counts[i];
        assert_int_equal(sum, MANY + 2 * REPEATING);
        assert_true(counts[0] > 3300 && counts[0] < 3400);
        assert_int_equal(tw_sched_forecast(sched, 100000, TW_FORECAST_MAX, counts), 0);
        for (int i = 0; i < 600; i++)
            sum -= counts[i];
        assert_int_equal(sum, 0);
        tw_sched_free(sched);
    }
}

/* More tasks are ready, or with the executor, than the forecast may count under one hold of the lock. */
static void a_forecast_counts_a_backlog(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    uint64_t id;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.execute = sit_on, .execute_arg = &id});
    for (int i = 0; i < MANY; i++)
        tw_sched_add_in(sched, ms, log_call, NULL, NULL);
    advance(sched, 2 * ms);
    expect_forecast(sched, ms, (uint64_t[]){MANY, 0, 0, 0, 0, 0});
    tw_sched_free(sched);
}

static void a_bad_forecast_is_refused(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t counts[1] = {7};
    assert_int_equal(tw_sched_forecast(sched, 0, 1, counts), TW_EINVAL);
    assert_int_equal(tw_sched_forecast(sched, 1, 0, counts), TW_EINVAL);
    assert_int_equal(tw_sched_forecast(sched, 1, TW_FORECAST_MAX + 1, counts), TW_EINVAL);
    assert_int_equal(counts[0], 7);
    tw_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forecast_counts_what_is_due_in_each_step),
        cmocka_unit_test(a_forecast_counts_every_call_of_a_repeating_task),
        cmocka_unit_test(a_forecast_counts_tasks_with_and_without_keys),
        cmocka_unit_test(a_forecast_counts_what_follows_the_call_under_way),
        cmocka_unit_test(a_forecast_counts_missed_periods_as_their_policy_has_it),
        cmocka_unit_test(a_forecast_of_more_than_one_hold_of_the_lock_is_complete),
        cmocka_unit_test(a_forecast_counts_a_backlog),
        cmocka_unit_test(a_bad_forecast_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
