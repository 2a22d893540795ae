/* SPDX-License-Identifier: MIT
 *
 * The wait after a failure.
 */
#include "tests/support/cmocka.h"

#include <task/backoff.h>
#include <task/limits.h>

static void each_wait_is_the_last_one_times_the_factor(void **state)
{
    static const struct {
        uint64_t first_ms;
        uint32_t factor_percent;
        uint64_t max_ms;
        uint64_t wait[6]; /* after the failures 1 to 6 */
    } rows[] = {
        {1000, 200, 3600000, {1000, 2000, 4000, 8000, 16000, 32000}},
        {1000, 150, 3600000, {1000, 1500, 2250, 3375, 5062, 7593}},
        {1000, 100, 3600000, {1000, 1000, 1000, 1000, 1000, 1000}},
        {1, 101, 3600000, {1, 2, 3, 4, 5, 6}}, /* a hundredth of 1 is nothing, and yet each wait is longer */
        {10, 200, 199, {10, 20, 40, 80, 160, 199}},
        {500, 200, 300, {300, 300, 300, 300, 300, 300}},
        {5, 10000, 70, {5, 70, 70, 70, 70, 70}},
        {1, 10000, UINT64_C(3155760000000), {1, 100, 10000, 1000000, 100000000, UINT64_C(10000000000)}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t n = 1; n <= 6; n++) {
            struct tw__task_retry retry = {.factor_percent = rows[i].factor_percent,
                                           .first_ms = rows[i].first_ms,
                                           .max_ms = rows[i].max_ms};
            assert_int_equal(tw__task_wait(&retry, n), rows[i].wait[n - 1]);
            if (n > 1)
                assert_int_equal(tw__task_wait_after(&retry, rows[i].wait[n - 2]), rows[i].wait[n - 1]);
        }
}

/* The table of the contract. */
static void with_the_defaults_a_task_dies_after_eight_hours(void **state)
{
    struct tw__task_retry retry = {.tries = (uint32_t)tw__task_range(TW__TASK_IN_TRIES).usual,
                                   .factor_percent = (uint32_t)tw__task_range(TW__TASK_IN_FACTOR).usual,
                                   .first_ms = tw__task_range(TW__TASK_IN_BACKOFF).usual,
                                   .max_ms = tw__task_range(TW__TASK_IN_BACKOFF_MAX).usual};
    uint64_t sum_ms = 0;
    (void)state;
    for (uint32_t n = 1; n < retry.tries; n++)
        sum_ms += tw__task_wait(&retry, n);
    assert_int_equal(sum_ms, ((8 * 60 + 8) * 60 + 15) * 1000);
}

static void the_token_places_the_wait_within_the_jitter(void **state)
{
    (void)state;
    for (uint64_t token = 1; token < 5000; token++) {
        uint64_t wait_ms = tw__task_jitter(1000, 10, token);
        assert_in_range(wait_ms, 900, 1100);
        assert_int_equal(wait_ms, tw__task_jitter(1000, 10, token));
        assert_int_equal(wait_ms, tw__task_jitter(1000, 10, token | UINT64_C(1) << 63));
    }
    assert_int_equal(tw__task_jitter(1000, 10, UINT64_C(0x9f86d081884c7d65)), 1021); /* docs/contract.md */
    assert_int_equal(tw__task_jitter(1000, 10, 201), 900);
    assert_int_equal(tw__task_jitter(1000, 10, 200), 1100);
    assert_int_equal(tw__task_jitter(1000, 0, 200), 1000);
    assert_int_equal(tw__task_jitter(9, 10, 200), 9); /* a tenth of 9 is nothing */
    assert_int_equal(tw__task_jitter(1000, 100, 2000), 2000);
    assert_int_equal(tw__task_jitter(1000, 100, 2001), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wait_is_the_last_one_times_the_factor),
        cmocka_unit_test(with_the_defaults_a_task_dies_after_eight_hours),
        cmocka_unit_test(the_token_places_the_wait_within_the_jitter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
