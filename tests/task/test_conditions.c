/* SPDX-License-Identifier: MIT
 *
 * NX, XX, GT, LT and KEEPDUE: which stand together, and which let a change happen.
 */
#include "tests/support/cmocka.h"

#include <task/conditions.h>

/* keep.10 */
static void at_most_one_condition_stands_alone_or_beside_keepdue(void **state)
{
    static const unsigned good[] = {0,
                                    TW__TASK_NX,
                                    TW__TASK_XX,
                                    TW__TASK_GT,
                                    TW__TASK_LT,
                                    TW__TASK_KEEPDUE,
                                    TW__TASK_KEEPDUE | TW__TASK_NX,
                                    TW__TASK_KEEPDUE | TW__TASK_XX};
    (void)state;
    for (unsigned conditions = 0; conditions < 64; conditions++) {
        bool fits = false;
        for (size_t i = 0; i < sizeof good / sizeof *good; i++)
            fits |= conditions == good[i];
        if (tw__task_conditions_fit(conditions) != fits)
            fail_msg("conditions %u", conditions);
    }
}

static void conditions_compare_with_the_due_time_of_a_task_that_exists(void **state)
{
    static const struct {
        unsigned conditions;
        bool missing, earlier, equal, later; /* the new time, if there is a task */
    } rows[] = {
        {0, true, true, true, true},
        {TW__TASK_NX, true, false, false, false},
        {TW__TASK_XX, false, true, true, true},
        {TW__TASK_GT, true, false, false, true},
        {TW__TASK_LT, true, true, false, false},
        {TW__TASK_KEEPDUE, true, true, true, true},
        {TW__TASK_KEEPDUE | TW__TASK_NX, true, false, false, false},
        {TW__TASK_KEEPDUE | TW__TASK_XX, false, true, true, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tw__task_conditions_met(rows[i].conditions, false, 0, 50), rows[i].missing);
        assert_int_equal(tw__task_conditions_met(rows[i].conditions, true, 50, 49), rows[i].earlier);
        assert_int_equal(tw__task_conditions_met(rows[i].conditions, true, 50, 50), rows[i].equal);
        assert_int_equal(tw__task_conditions_met(rows[i].conditions, true, 50, 51), rows[i].later);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_most_one_condition_stands_alone_or_beside_keepdue),
        cmocka_unit_test(conditions_compare_with_the_due_time_of_a_task_that_exists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
