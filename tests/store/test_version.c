/* SPDX-License-Identifier: MIT
 *
 * Files of each format. golden/format1.db is a file as the first release leaves it. Each format that follows
 * adds a file of its own, and no file changes. A change of schema.sql without a new format fails here.
 *
 *     test_store_version --make FILE    makes the file of the present format anew
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The tasks of the file. A death, a failed attempt and a claim are written as a runner writes them. */
static const struct old {
    const char *queue, *id, *payload, *more;
    uint64_t due_ms, every_ms, times;
    enum tw_missed missed;
    uint32_t tries;
    uint64_t backoff_ms, max_late_ms;
} olds[] = {
    {"orders", "order:42", "paid?", NULL, 1800000000000, 0, 0, TW_MISSED_BURST, 0, 0, 0},
    {"orders", "no payload", NULL, NULL, 1800000000000, 0, 0, TW_MISSED_BURST, 0, 0, 0},
    {"orders", "first", "1970", NULL, 0, 0, 0, TW_MISSED_BURST, 3, 250, 0},
    {"orders", "last", "9999", NULL, TW_STORE_TIME_MAX, 0, 0, TW_MISSED_BURST, 1000000, 86400000, 0},
    {"orders", "dead", "x", "dead_ms = 1700000000001, error = 'no answer', attempt = 2", 1700000000000, 0, 0,
     TW_MISSED_BURST, 2, 0, 0},
    {"orders", "retry", "x",
     "next_ms = 1700000000500, factor = 1.5, backoff_max_ms = 60000, jitter = 0, error = 'Stra\xc3\x9f"
     "e', attempt = 1",
     1700000000000, 0, 0, TW_MISSED_BURST, 5, 500, 0},
    {"orders", "running", "x", "run = 7, token = 12345678901234567, attempt = 2, lapses = 1", 1700000000000, 0,
     0, TW_MISSED_BURST, 5, 500, 0},
    {"orders", "replaced", "new", "run = 7, token = 12345678901234568, replaced = 2", 1800000000000, 0, 0,
     TW_MISSED_BURST, 5, 500, 0},
    {"orders", "coalesced", "x", "next_ms = 1700000600500, error = 'full', attempt = 1, missed_periods = 10",
     1700000000000, 60000, 0, TW_MISSED_COALESCE, 5, 500, 0},
    {"\xc3\xa9t\xc3\xa9", "each minute", "x", NULL, 1800000000000, 60000, 0, TW_MISSED_SKIP, 0, 0, 0},
    {"\xc3\xa9t\xc3\xa9", "five times", "x", NULL, 1800000000000, UINT64_C(3155760000000), 5,
     TW_MISSED_COALESCE, 0, 0, 3600000},
    {"big", "pages of its own", "big", NULL, 1800000000000, 0, 0, TW_MISSED_BURST, 0, 0, 0},
};
enum { OLDS = sizeof olds / sizeof olds[0], BIG = 5000, OLD_SEQ = 15, OLD_RUN = 7 };

/* The payload "big" stands for BIG bytes of every kind. */
static const void *payload_of(const struct old *old, size_t *size)
{
    static unsigned char big[BIG];
    for (size_t i = 0; i < BIG; i++)
        big[i] = (unsigned char)(i * 7);
    *size = old->payload == NULL ? 0 : strcmp(old->payload, "big") == 0 ? BIG : strlen(old->payload);
    return *size == BIG ? (const void *)big : old->payload;
}

/* ---- making a file --------------------------------------------------------------------------------------- */

static void put_old(struct tw_store *store, sqlite3 *db, const struct old *old)
{
    char sql[400];
    struct tw_store_delayed task = {.queue = old->queue,
                                    .id = tw_text(old->id),
                                    .due_ms = old->due_ms,
                                    .every_ms = old->every_ms,
                                    .times = old->times,
                                    .missed = old->every_ms > 0 ? old->missed : 0,
                                    .tries = old->tries,
                                    .backoff_ms = old->backoff_ms,
                                    .max_late_ms = old->max_late_ms};
    task.payload.data = payload_of(old, &task.payload.size);
    if (store_put(store, &task, 0) != 1)
        exit(1);
    snprintf(sql, sizeof sql, "UPDATE tw_task SET %s WHERE id = CAST('%s' AS BLOB)", old->more, old->id);
    if (old->more != NULL && sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        exit(1);
}

/* A task that was cancelled and two that were moved leave gaps in the revisions. */
static int make_file(const char *path)
{
    struct tw_store *store;
    sqlite3 *db;
    if (tw_store_open(&store, path, NULL, NULL, 0) != 0 || sqlite3_open(path, &db) != SQLITE_OK)
        return 1;
    put(store, "cancelled", 5);
    for (size_t i = 0; i < OLDS; i++)
        put_old(store, db, &olds[i]);
    cancel(store, "cancelled");
    store_move_at(store, tw_store_named("orders", "order:42"), 5, 0);
    store_move_at(store, tw_store_named("orders", "order:42"), olds[0].due_ms, 0);
    int error = sqlite3_exec(db,
                             "INSERT INTO tw_queue VALUES ('orders', 1), ('big', 0);"
                             "UPDATE tw_meta SET run = 7",
                             NULL, NULL, NULL);
    sqlite3_close(db);
    tw_store_close(store);
    return error;
}

/* ---- the tests ------------------------------------------------------------------------------------------- */

static const char *old_file; /* from the command line */

/* SQLite would write beside the old file, so the tests open copies. */
static void copy_file(const char *path)
{
    char bytes[4096];
    FILE *from = fopen(old_file, "rb"), *to = fopen(path, "wb");
    assert_non_null(from);
    assert_non_null(to);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, from)) > 0;)
        assert_int_equal(fwrite(bytes, 1, n, to), n);
    fclose(from);
    assert_int_equal(fclose(to), 0);
}

/* The fixture's file becomes a copy of the old one. */
static void open_old(struct fixture *fixture)
{
    char text[TW_STORE_MESSAGE_SIZE];
    tw_store_close(fixture->store);
    fixture->store = NULL;
    store_remove(fixture);
    copy_file(fixture->path);
    if (tw_store_open(&fixture->store, fixture->path, NULL, text, sizeof text) != 0)
        fail_msg("%s", text);
}

static void compare_old(void *arg, const struct tw_store_task *task)
{
    const struct old *old = arg;
    size_t size;
    const void *payload = payload_of(old, &size);
    uint64_t times = old->every_ms == 0 ? 1 : old->times == 0 ? TW_FOREVER : old->times;
    assert_int_equal(task->due_ms, old->due_ms);
    assert_int_equal(task->every_ms, old->every_ms);
    assert_int_equal(task->times, times);
    assert_int_equal(task->missed, old->every_ms > 0 ? old->missed : TW_MISSED_COALESCE);
    assert_int_equal(task->tries, old->tries > 0 ? old->tries : 20);
    assert_int_equal(task->backoff_ms, old->backoff_ms > 0 ? old->backoff_ms : 1000);
    assert_true(task->max_late_ms == (old->max_late_ms > 0 ? old->max_late_ms : TW_FOREVER));
    assert_int_equal(task->payload.size, size);
    if (size > 0)
        assert_memory_equal(task->payload.data, payload, size);
    else
        assert_null(task->payload.data);
}

static void each_task_is_as_it_was_put(void **state)
{
    struct fixture *fixture = *state;
    open_old(fixture);
    for (size_t i = 0; i < OLDS; i++) {
        struct old old = olds[i];
        assert_int_equal(tw_store_get(fixture->store, tw_store_named(old.queue, old.id), compare_old, &old), 0);
    }
    assert_int_equal(store_count(fixture->store, "orders", false), 8);
    assert_int_equal(store_count(fixture->store, "orders", true), 1);
    assert_int_equal(store_count(fixture->store, "\xc3\xa9t\xc3\xa9", false), 2);
    assert_int_equal(store_count(fixture->store, "big", false), 1);
    assert_int_equal(store_count(fixture->store, "q", false), 0);
}

static const struct seen *get_old(struct fixture *fixture, const char *id)
{
    static struct seen seen;
    seen = (struct seen){.text = ""};
    assert_int_equal(tw_store_get(fixture->store, tw_store_named("orders", id), see, &seen), 0);
    return &seen;
}

static void attempts_deaths_and_pauses_are_kept(void **state)
{
    struct fixture *fixture = *state;
    open_old(fixture);
    const struct seen *seen = get_old(fixture, "dead");
    assert_int_equal(seen->last.state, TW_STATE_DEAD);
    assert_int_equal(seen->last.dead_ms, 1700000000001);
    assert_string_equal(seen->error, "no answer");
    assert_int_equal(seen->last.attempt, 2);
    seen = get_old(fixture, "retry");
    assert_int_equal(seen->last.state, TW_STATE_READY);
    assert_int_equal(seen->last.next_ms, 1700000000500);
    assert_int_equal(seen->last.factor, 150);
    assert_int_equal(seen->last.backoff_max_ms, 60000);
    assert_int_equal(seen->last.jitter, TW_STORE_NO_JITTER);
    assert_string_equal(seen->error, "Stra\xc3\x9f"
                                     "e");
    seen = get_old(fixture, "running");
    assert_int_equal(seen->last.state, TW_STATE_LEASED);
    assert_int_equal(seen->last.attempt, 2);
    assert_int_equal(seen->last.lapses, 1);
    assert_false(seen->last.replaced);
    seen = get_old(fixture, "replaced");
    assert_int_equal(seen->last.state, TW_STATE_LEASED);
    assert_true(seen->last.replaced);
    assert_int_equal(seen->last.attempt, 2);
    seen = get_old(fixture, "coalesced");
    assert_int_equal(seen->last.attempt, 1);
    assert_int_equal(seen->last.missed_periods, 10);
    assert_int_equal(store_pause(fixture->store, "orders"), 0); /* it is paused already */
    assert_int_equal(store_pause(fixture->store, "big"), 1);
}

static void the_old_file_is_used_on(void **state)
{
    struct fixture *fixture = *state;
    open_old(fixture);
    assert_int_equal(get_old(fixture, "order:42")->last.revision, OLD_SEQ);
    assert_int_equal(put(fixture->store, "new", 1), 1);
    assert_string_equal(scan(fixture->store, NULL), "new@1");
    assert_int_equal(store_replay(fixture->store, all_of("orders"), 5), 1);
    assert_int_equal(get_old(fixture, "dead")->last.revision, OLD_SEQ + 2);
    sqlite3 *db = other_open(fixture);
    assert_string_equal(other_ask(db, "PRAGMA integrity_check"), "ok");
    assert_string_equal(other_ask(db, "INSERT INTO tw_move(queue, id, due_ms) VALUES ('orders', 'first', 7)"),
                        "");
    assert_int_equal(get_old(fixture, "first")->last.due_ms, 7);
    sqlite3_close(db);
}

/* The text of each table, view and trigger is compared, its comments too. */
static void a_new_schema_has_a_new_format(void **state)
{
    struct fixture *fixture = *state;
    char old[PATH_SIZE + 8], sql[PATH_SIZE + 40];
    sqlite3 *db = other_open(fixture);
    snprintf(old, sizeof old, "%s-old", fixture->path);
    copy_file(old);
    sqlite3_snprintf(sizeof sql, sql, "ATTACH %Q AS old", old);
    other_ask(db, sql);
    assert_string_equal(other_ask(db, "SELECT format FROM main.tw_meta"), "1");
    assert_string_equal(other_ask(db, "SELECT format FROM old.tw_meta"), "1");
    assert_string_equal(other_ask(db, "SELECT name FROM (SELECT name, sql FROM main.sqlite_schema"
                                      " EXCEPT SELECT name, sql FROM old.sqlite_schema)"),
                        "");
    assert_string_equal(other_ask(db, "SELECT name FROM (SELECT name, sql FROM old.sqlite_schema"
                                      " EXCEPT SELECT name, sql FROM main.sqlite_schema)"),
                        "");
    sqlite3_close(db);
    unlink(old);
}

static void each_change_is_counted(void **state)
{
    struct fixture *fixture = *state;
    open_old(fixture);
    sqlite3 *db = other_open(fixture);
    static const char *const changes[] = {
        "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'a', 5)",
        "INSERT INTO tw_move(queue, id, due_ms) VALUES ('q', 'a', 6)",
        "INSERT INTO tw_cancel(queue, id) VALUES ('q', 'a')",
    };
    long before = atol(other_ask(db, "SELECT changes >> 20 FROM tw_meta"));
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        other_ask(db, changes[i]);
        assert_int_equal(atol(other_ask(db, "SELECT changes >> 20 FROM tw_meta")), ++before);
    }
    other_ask(db, changes[2]); /* there is no such task: no change */
    assert_int_equal(put(fixture->store, "b", 5), 1);
    assert_int_equal(cancel(fixture->store, "b"), TW_CANCEL_CANCELLED);
    assert_int_equal(cancel(fixture->store, "b"), TW_CANCEL_GONE);
    assert_int_equal(store_pause(fixture->store, "q"), 1);
    assert_int_equal(atol(other_ask(db, "SELECT changes >> 20 FROM tw_meta")), before + 3);
    sqlite3_close(db);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        TEST(each_task_is_as_it_was_put), TEST(attempts_deaths_and_pauses_are_kept),
        TEST(the_old_file_is_used_on),    TEST(a_new_schema_has_a_new_format),
        TEST(each_change_is_counted),
    };
    int failed = 0;
    if (argc == 3 && strcmp(argv[1], "--make") == 0)
        return make_file(argv[2]);
    if (argc < 2) {
        fprintf(stderr, "usage: test_store_version FILE...\n       test_store_version --make FILE\n");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        old_file = argv[i];
        failed += cmocka_run_group_tests_name(argv[i], tests, NULL, NULL);
    }
    return failed;
}
