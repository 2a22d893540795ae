/* SPDX-License-Identifier: MIT
 *
 * The wait after a failed attempt.
 */
#include "fixture.h"

#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <src/redis/queues/lease.h>

static uint64_t wait_of(uint64_t first_ms, uint32_t factor, uint64_t max_ms, uint32_t attempt)
{
    struct tw__redis_retry retry = {.first_ms = first_ms, .factor = factor, .max_ms = max_ms};
    return tw__redis_lease_backoff(&retry, attempt, UINT64_MAX);
}

static void each_wait_is_the_last_one_times_the_factor(void **state)
{
    static const struct {
        uint64_t first_ms;
        uint32_t factor;
        uint64_t max_ms;
        uint64_t wait[6]; /* after the attempts 1 to 6 */
    } rows[] = {
        {1000, 200, 3600000, {1000, 2000, 4000, 8000, 16000, 32000}},
        {1000, 150, 3600000, {1000, 1500, 2250, 3375, 5062, 7593}},
        {1000, 100, 3600000, {1000, 1000, 1000, 1000, 1000, 1000}},
        {1000, 0, 3600000, {1000, 1000, 1000, 1000, 1000, 1000}},
        {1000, 101, 3600000, {1000, 1010, 1020, 1030, 1040, 1050}},
        {1, 101, 3600000, {1, 2, 3, 4, 5, 6}}, /* a hundredth of 1 is nothing, and yet each wait is longer */
        {10, 200, 199, {10, 20, 40, 80, 160, 199}},
        {310, 300, 1000, {310, 930, 1000, 1000, 1000, 1000}},
        {5, 10000, 70, {5, 70, 70, 70, 70, 70}},
        {500, 200, 300, {300, 300, 300, 300, 300, 300}},
        {1, 10000, INT64_MAX, {1, 100, 10000, 1000000, 100000000, UINT64_C(10000000000)}},
        {INT64_MAX / 3,
         200,
         INT64_MAX,
         {INT64_MAX / 3, INT64_MAX / 3 * 2, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}},
        {INT64_MAX, 10000, INT64_MAX, {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t attempt = 1; attempt <= 6; attempt++)
            if (wait_of(rows[i].first_ms, rows[i].factor, rows[i].max_ms, attempt) != rows[i].wait[attempt - 1])
                fail_msg(
                    "row %zu, attempt %u: %llu", i, attempt,
                    (unsigned long long)wait_of(rows[i].first_ms, rows[i].factor, rows[i].max_ms, attempt));
}

__extension__ typedef unsigned __int128 wide;

/* The same in numbers of 128 bits. */
static void no_wait_overflows(void **state)
{
    struct rng rng;
    (void)state;
    rng_init(&rng, run_seed());
    for (unsigned round = 0; round < 20000; round++) {
        uint64_t max = rng_next(&rng) >> (1 + rng_below(&rng, 63)),
                 first = rng_next(&rng) >> (1 + rng_below(&rng, 63));
        uint32_t factor = 101 + (uint32_t)rng_below(&rng, TW__REDIS_FACTOR_MAX - 100);
        wide wait = first < max ? first : max;
        for (uint32_t attempt = 1; attempt < 40; attempt++) {
            assert_true(wait_of(first, factor, max, attempt) == (uint64_t)wait);
            wide grown = wait * factor / 100;
            grown += grown == wait;
            wait = grown < max ? grown : max;
        }
    }
}

static void many_attempts_cost_nothing_once_the_wait_is_longest(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        assert_int_equal(wait_of(1000, 200, 3600000, TW__REDIS_ATTEMPTS_MAX), 3600000);
        assert_int_equal(wait_of(1000, 100, 3600000, TW__REDIS_ATTEMPTS_MAX), 1000);
    }
}

static void the_jitter_reaches_equally_far_to_both_sides(void **state)
{
    static const struct {
        uint64_t wait;
        uint32_t jitter;
        uint64_t reach;
    } rows[] = {{1000, 10, 100},
                {1000, 0, 0},
                {99, 1, 0},
                {100, 1, 1},
                {199, 50, 99},
                {250, 100, 250},
                {3600000, 20, 720000},
                {INT64_MAX, 100, INT64_MAX},
                {1, 99, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tw__redis_retry retry = {
            .first_ms = rows[i].wait, .factor = 200, .max_ms = INT64_MAX, .jitter = rows[i].jitter};
        uint64_t least = rows[i].wait - rows[i].reach, most = rows[i].wait + rows[i].reach, span = most - least;
        assert_true(tw__redis_lease_backoff(&retry, 1, 0) == least);
        assert_true(tw__redis_lease_backoff(&retry, 1, span) == most);
        assert_true(tw__redis_lease_backoff(&retry, 1, span / 2) == least + span / 2);
        if (span < UINT64_MAX - 1)
            assert_true(tw__redis_lease_backoff(&retry, 1, span + 1) == least);
        uint64_t any = tw__redis_lease_backoff(&retry, 1, UINT64_MAX);
        assert_true(any >= least && any <= most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wait_is_the_last_one_times_the_factor),
        cmocka_unit_test(no_wait_overflows),
        cmocka_unit_test(many_attempts_cost_nothing_once_the_wait_is_longest),
        cmocka_unit_test(the_jitter_reaches_equally_far_to_both_sides),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
