/* SPDX-License-Identifier: MIT
 *
 * The errors of the three libraries: each has a range of its own, and a library knows the texts of its errors
 * and of the libraries below it.
 */
#include "support.h"

#include <string.h>

struct row {
    const char *name;
    int code;
    const char *text;
};
#define ROW(name, value, text) {#name, name, text},
static const struct row of_wheel[] = {TW_ERROR_TABLE(ROW)}, of_sched[] = {TW_SCHED_ERROR_TABLE(ROW)},
                        of_store[] = {TW_STORE_ERROR_TABLE(ROW)};

enum { TABLES = 3 };
static const struct {
    const struct row *row;
    size_t rows;
    int first, last; /* of its range */
} table[TABLES] = {{of_wheel, sizeof of_wheel / sizeof *of_wheel, -1, -99},
                   {of_sched, sizeof of_sched / sizeof *of_sched, -100, -199},
                   {of_store, sizeof of_store / sizeof *of_store, -200, -299}};
static const char *(*const text_of[TABLES])(int) = {tw_strerror, tw_sched_strerror, tw_store_strerror};

static void the_errors_of_a_table_lie_in_its_range(void **state)
{
    (void)state;
    for (int of = 0; of < TABLES; of++)
        for (size_t i = 0; i < table[of].rows; i++) {
            const struct row *row = &table[of].row[i];
            if (row->code > table[of].first || row->code < table[of].last)
                fail_msg("%s is %d: expected %d to %d", row->name, row->code, table[of].first, table[of].last);
            for (size_t other = 0; other < i; other++)
                if (table[of].row[other].code == row->code)
                    fail_msg("%s and %s are both %d", row->name, table[of].row[other].name, row->code);
        }
}

static void a_library_knows_its_errors_and_those_below_it(void **state)
{
    (void)state;
    for (int library = 0; library < TABLES; library++) {
        for (int of = 0; of < TABLES; of++)
            for (size_t i = 0; i < table[of].rows; i++) {
                const struct row *row = &table[of].row[i];
                assert_true(strlen(row->text) > 0);
                assert_string_equal(text_of[library](row->code), of <= library ? row->text : "unknown error");
            }
        assert_string_equal(text_of[library](0), "no error");
        assert_string_equal(text_of[library](1), "unknown error");
        assert_string_equal(text_of[library](-1000), "unknown error");
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_errors_of_a_table_lie_in_its_range),
        cmocka_unit_test(a_library_knows_its_errors_and_those_below_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
