/* SPDX-License-Identifier: MIT
 *
 * Missed periods, late periods, and the names of dead ones.
 */
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <task/limits.h>
#include <task/periods.h>

static const uint64_t ANY = TW_FOREVER; /* no limit of lateness */

struct row {
    uint64_t due, next, every, max_late;
    enum tw_missed missed;
    uint64_t now;
    struct tw__task_turn turn;
};

static void expect_turn(const struct row *row)
{
    struct tw__task_period period = {row->due, row->next, row->every, row->max_late, row->missed};
    struct tw__task_turn turn = tw__task_turn(&period, row->now);
    assert_int_equal(turn.due, row->turn.due);
    assert_int_equal(turn.dropped, row->turn.dropped);
    assert_int_equal(turn.skipped, row->turn.skipped);
    assert_int_equal(turn.missed_periods, row->turn.missed_periods);
    assert_int_equal(turn.calls, row->turn.calls);
    assert_int_equal(turn.ends, row->turn.ends);
}

static void missed_decides_about_the_periods_that_passed(void **state)
{
    static const struct row rows[] = {
        {100, 100, 10, UINT64_MAX, TW_MISSED_BURST, 137, {100, 0, 0, 0, true, false}},
        {100, 100, 10, UINT64_MAX, TW_MISSED_SKIP, 137, {140, 0, 4, 0, false, false}},
        {100, 100, 10, UINT64_MAX, TW_MISSED_COALESCE, 137, {100, 0, 0, 3, true, false}},
        {100, 100, 10, UINT64_MAX, TW_MISSED_SKIP, 109, {100, 0, 0, 0, true, false}}, /* less than a period */
        {100, 100, 10, UINT64_MAX, TW_MISSED_SKIP, 110, {120, 0, 2, 0, false, false}},
        {100, 100, 10, UINT64_MAX, TW_MISSED_COALESCE, 110, {100, 0, 0, 1, true, false}},
        {100, 40, 10, UINT64_MAX, TW_MISSED_SKIP, 40, {100, 0, 0, 0, true, false}}, /* promoted */
        {100, 100, 0, UINT64_MAX, TW_MISSED_SKIP, 900, {100, 0, 0, 0, true, false}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_turn(&rows[i]);
}

static void periods_that_are_too_late_are_dropped_first(void **state)
{
    static const struct row rows[] = {
        {0, 0, 1000, 500, TW_MISSED_BURST, 2600, {3000, 3, 0, 0, false, false}},
        {0, 0, 1000, 600, TW_MISSED_BURST, 2600, {2000, 2, 0, 0, true, false}}, /* 600 late is not too late */
        {0, 0, 1000, 1700, TW_MISSED_COALESCE, 2600, {1000, 1, 0, 1, true, false}},
        {0, 0, 1000, 1700, TW_MISSED_SKIP, 2600, {3000, 1, 2, 0, false, false}},
        {0, 0, 0, 500, TW_MISSED_COALESCE, 500, {0, 0, 0, 0, true, false}},
        {0, 0, 0, 500, TW_MISSED_COALESCE, 501, {0, 1, 0, 0, false, true}},
        {0, 400, 0, 500, TW_MISSED_COALESCE, 900, {0, 0, 0, 0, true, false}}, /* it stood behind an attempt */
        {0, 400, 0, 500, TW_MISSED_COALESCE, 901, {0, 1, 0, 0, false, true}},
        {0, 2100, 1000, 500, TW_MISSED_BURST, 2600, {0, 0, 0, 0, true, false}},
        {0, 0, 1, 0, TW_MISSED_BURST, 0, {0, 0, 0, 0, true, false}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_turn(&rows[i]);
}

static void a_series_ends_where_time_ends(void **state)
{
    uint64_t last = TW__TASK_TIME_MAX;
    (void)state;
    expect_turn(&(struct row){
        last - 5, last - 5, 10, ANY, TW_MISSED_SKIP, last + 90, {last + 95, 0, 10, 0, false, true}});
    assert_int_equal(tw__task_due_after(last, UINT64_MAX, UINT64_MAX), UINT64_MAX);
}

static void missed_periods_of_a_renewed_series_lie_in_the_same_time(void **state)
{
    (void)state;
    assert_int_equal(tw__task_missed_periods_renewed(10, 1000, 1000), 10);
    assert_int_equal(tw__task_missed_periods_renewed(10, 1000, 4000), 2);
    assert_int_equal(tw__task_missed_periods_renewed(10, 4000, 1000), 40);
    assert_int_equal(tw__task_missed_periods_renewed(10, 1000, 0), 0);
    assert_int_equal(tw__task_missed_periods_renewed(10, 0, 1000), 0);
    assert_int_equal(tw__task_missed_periods_renewed(INT64_MAX, 1000, 1), INT64_MAX / 1000 * 1000);
}

/* The same by a loop over the periods, one by one. */
static void turns_are_as_a_loop_finds_them(void **state)
{
    struct rng rng;
    (void)state;
    rng_init(&rng, run_seed());
    for (unsigned round = 0; round < 20000; round++) {
        struct row row = {.due = rng_below(&rng, 50),
                          .every = 1 + rng_below(&rng, 9),
                          .max_late = rng_below(&rng, 4) == 0 ? ANY : rng_below(&rng, 30),
                          .missed = (enum tw_missed)rng_below(&rng, 3)};
        row.next = rng_below(&rng, 3) == 0 ? rng_below(&rng, 80) : row.due;
        row.now = row.next + rng_below(&rng, 60);
        uint64_t due = row.due, passed = 0;
        for (; row.now > row.next && row.now > due; due += row.every) {
            uint64_t since = due > row.next ? due : row.next;
            if (row.max_late == ANY || row.now - since <= row.max_late)
                break;
            row.turn.dropped++;
        }
        while (due + (passed + 1) * row.every <= row.now)
            passed++;
        row.turn.missed_periods = row.missed == TW_MISSED_COALESCE ? passed : 0;
        row.turn.skipped = row.missed == TW_MISSED_SKIP && passed > 0 ? passed + 1 : 0;
        row.turn.due = due + row.turn.skipped * row.every;
        row.turn.calls = row.turn.due == row.due || row.turn.due <= row.now;
        expect_turn(&row);
    }
}

static void calls_are_counted_by_division(void **state)
{
    (void)state;
    assert_int_equal(tw__task_calls_by(100, 10, TW_FOREVER, 99), 0);
    assert_int_equal(tw__task_calls_by(100, 10, TW_FOREVER, 100), 1);
    assert_int_equal(tw__task_calls_by(100, 10, TW_FOREVER, 129), 3);
    assert_int_equal(tw__task_calls_by(100, 10, 2, 129), 2);
    assert_int_equal(tw__task_periods_since(100, 10, 137), 3);
    assert_int_equal(tw__task_periods_since(100, 10, 40), 0);
}

static void a_dead_period_is_named_for_its_due_time(void **state)
{
    static const struct {
        uint64_t due;
        uint32_t n;
        const char *suffix;
    } rows[] = {{0, 0, "@0"},
                {1700000060000, 0, "@1700000060000"},
                {1700000060000, 1, "@1700000060000-1"},
                {TW__TASK_TIME_MAX, UINT32_MAX, "@253402300799999-4294967295"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char suffix[TW__TASK_SUFFIX_MAX];
        size_t size = tw__task_suffix(rows[i].due, rows[i].n, suffix);
        assert_int_equal(size, strlen(rows[i].suffix));
        assert_memory_equal(suffix, rows[i].suffix, size);
        assert_true(TW__TASK_ID_MAX + size <= TW__TASK_NAME_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missed_decides_about_the_periods_that_passed),
        cmocka_unit_test(periods_that_are_too_late_are_dropped_first),
        cmocka_unit_test(a_series_ends_where_time_ends),
        cmocka_unit_test(missed_periods_of_a_renewed_series_lie_in_the_same_time),
        cmocka_unit_test(turns_are_as_a_loop_finds_them),
        cmocka_unit_test(calls_are_counted_by_division),
        cmocka_unit_test(a_dead_period_is_named_for_its_due_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
