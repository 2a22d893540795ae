/* SPDX-License-Identifier: MIT
 *
 * Each statement of the library finds its rows by an index, in the order in which it needs them, with any
 * statistics the program's ANALYZE has left in the file. And plain SQL replaces a task as C does.
 */
#include "support.h"

#include <src/store/open.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *sql;
} statements[] = {
#define ROW(name, sql) {#name, sql},
    TW__STORE_SQL(ROW)
#undef ROW
};

/* The files in which ANALYZE runs. */
static const char *const files[] = {
    "SELECT 1",
    "INSERT INTO tw_task(revision, queue, id, due_ms, next_ms, place_ms, dead_ms) VALUES (1, 'q', x'61', 5, 5, "
    "5, "
    "5)",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
    " INSERT INTO tw_task(revision, queue, id, due_ms, next_ms, place_ms) SELECT i, 'q', CAST('x' || i AS "
    "BLOB), 5, "
    "5, 5 FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
    " INSERT INTO tw_task(revision, queue, id, due_ms, next_ms, place_ms, dead_ms) SELECT i, 'q', CAST('x' || "
    "i AS "
    "BLOB), 5, 5, "
    "5, 5 FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
    " INSERT INTO tw_task(revision, queue, id, due_ms, next_ms, place_ms, every_ms) SELECT i, 'q' || i % 10, "
    "CAST('x' || i AS "
    "BLOB), "
    "i, i, i, 5 FROM n",
};

static void check_plan(sqlite3 *db, const char *name, const char *sql, int file)
{
    static const char *const bad[] = {"SCAN main.tw_task", "TEMP B-TREE", "PRIMARY KEY (rowid>"};
    char text[2048] = "EXPLAIN QUERY PLAN ";
    sqlite3_stmt *plan;
    for (const char *at = sql; *at != '\0'; at++)
        snprintf(text + strlen(text), sizeof text - strlen(text), *at == '$' ? "main." : "%c", *at);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &plan, NULL), SQLITE_OK);
    while (sqlite3_step(plan) == SQLITE_ROW)
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
            if (strstr((const char *)sqlite3_column_text(plan, 3), bad[i]) != NULL &&
                (i < 2 || strcmp(name, "NEWS") != 0)) /* the news are above a number */
                fail_msg("%s in file %d: %s", name, file, sqlite3_column_text(plan, 3));
    sqlite3_finalize(plan);
}

/* How often the part of `sql` before `end` stands in the text of the tables. */
static int count_in_schema(const char *schema, const char *sql, const char *end)
{
    int count = 0;
    size_t size = (size_t)(end - sql);
    for (const char *at = strstr(schema, "CREATE"); *at != '\0'; at++)
        count += strncmp(at, sql, size) == 0;
    return count;
}

/* A put and a move keep the same of an attempt under way, in C and in plain SQL. */
static void plain_sql_replaces_as_c_does(void **state)
{
    char schema[1 << 16] = "", text[] = TW__STORE_REPLACE ",", *into = text;
    (void)state;
    for (const char *const *line = tw__store_schema; *line != NULL; line++) {
        assert_true(strlen(schema) + strlen(*line) < sizeof schema);
        strcat(schema, *line);
    }
    for (const char *from = text; *from != '\0'; from++)
        if (*from != '$') /* the name of the schema */
            *into++ = *from;
    *into = '\0';
    int parts = 0;
    for (const char *part = text, *end; (end = strstr(part, " END")) != NULL; part = end + strlen(" END,")) {
        if (count_in_schema(schema, part + 1, end) != 2)
            fail_msg("tw_put and tw_move do not have: %.*s", (int)(end - part), part);
        parts++;
    }
    assert_int_equal(parts, 3);
}

static void no_statistics_spoil_a_plan(void **state)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        sqlite3 *db = other_open(*state);
        other_ask(db, files[i]);
        other_ask(db, "ANALYZE");
        sqlite3_close(db);
        db = other_open(*state); /* statistics are read when a file is opened */
        for (size_t j = 0; j < sizeof statements / sizeof statements[0]; j++)
            check_plan(db, statements[j].name, statements[j].sql, (int)i);
        other_ask(db, "DELETE FROM tw_task; DELETE FROM sqlite_stat1");
        sqlite3_close(db);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_sql_replaces_as_c_does),
        cmocka_unit_test_setup_teardown(no_statistics_spoil_a_plan, store_setup, store_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
