/* SPDX-License-Identifier: MIT
 *
 * Tasks in the transaction of somebody else: tw_store_apply_on() on a connection of the caller, and plain SQL
 * through the views tw_put, tw_move, tw_cancel, tw_promote, tw_pause and tw_replay.
 */
#include "clock.h"
#include "support.h"

#include <stdio.h>
#include <string.h>

static struct tw_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

static struct tw_store_change change(enum tw_store_verb verb, const char *id, uint64_t due_ms)
{
    struct tw_store_delayed task = {.queue = "q", .id = tw_text(id), .due_ms = due_ms};
    return (struct tw_store_change){.verb = verb, .task = task, .result = 99};
}

/* ---- the caller's connection ----------------------------------------------------------------------------- */

static void a_change_commits_with_the_row_of_the_caller(void **state)
{
    sqlite3 *db = other_open(*state);
    struct tw_store_change put = change(TW_STORE_VERB_PUT, "order:42", 10);
    char text[TW_STORE_MESSAGE_SIZE];
    other_ask(db, "CREATE TABLE orders(id); BEGIN; INSERT INTO orders VALUES (42)");
    assert_int_equal(tw_store_apply_on(db, NULL, &put, 1, text, sizeof text), 0);
    assert_int_equal(outcome_of(&put), 1);
    assert_string_equal(scan(store_of(state), NULL), ""); /* not committed yet */
    other_ask(db, "COMMIT");
    assert_string_equal(scan(store_of(state), NULL), "order:42@10");
    sqlite3_close(db);
}

static void a_rollback_takes_the_change_back(void **state)
{
    sqlite3 *db = other_open(*state);
    struct tw_store_change changes[] = {change(TW_STORE_VERB_PUT, "b", 10), change(TW_STORE_VERB_MOVE, "a", 9),
                                        change(TW_STORE_VERB_CANCEL, "a", 0)};
    put(store_of(state), "a", 5);
    other_ask(db, "BEGIN");
    assert_int_equal(tw_store_apply_on(db, "main", changes, 3, NULL, 0), 0);
    assert_int_equal(outcome_of(&changes[2]), TW_CANCEL_CANCELLED);
    other_ask(db, "ROLLBACK");
    assert_string_equal(scan(store_of(state), NULL), "a@5");
    assert_int_equal(tw_store_apply_on(db, NULL, changes, 1, NULL, 0), 0); /* in no transaction: its own */
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    assert_string_equal(scan(store_of(state), NULL), "a@5 b@10");
    assert_null(sqlite3_next_stmt(db, NULL)); /* nothing is left on the handle */
    sqlite3_close(db);
}

static void the_file_may_be_attached_under_any_name(void **state)
{
    sqlite3 *db;
    char sql[512];
    struct tw_store_change put = change(TW_STORE_VERB_PUT, "a", 10);
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    snprintf(sql, sizeof sql, "ATTACH '%s' AS \"my \"\"file\"", ((struct fixture *)*state)->path);
    other_ask(db, sql);
    assert_int_equal(tw_store_apply_on(db, "my \"file", &put, 1, NULL, 0), 0);
    assert_string_equal(scan(store_of(state), NULL), "a@10");
    sqlite3_close(db);
}

static void an_error_leaves_the_transaction_of_the_caller(void **state)
{
    sqlite3 *db = other_open(*state);
    struct tw_store_change changes[] = {change(TW_STORE_VERB_PUT, "b", 10), change(TW_STORE_VERB_PUT, "", 10)};
    char text[TW_STORE_MESSAGE_SIZE];
    other_ask(db, "CREATE TABLE orders(id); BEGIN; INSERT INTO orders VALUES (42)");
    assert_int_equal(tw_store_apply_on(db, NULL, changes, 2, text, sizeof text), TW_EINVAL);
    assert_string_equal(text, "change 1: id has 0 bytes: expected 1 to 960");
    assert_int_equal(tw_store_apply_on(db, "nowhere", changes, 1, text, sizeof text), TW_EFORMAT);
    assert_non_null(strstr(text, "nowhere"));
    other_ask(db, "COMMIT");
    assert_string_equal(other_ask(db, "SELECT count(*) FROM orders"), "1");
    assert_string_equal(scan(store_of(state), NULL), "");
    sqlite3_close(db);
}

static void a_change_that_the_connection_forbids_is_an_error(void **state)
{
    sqlite3 *db;
    char payload[20000] = "", text[TW_STORE_MESSAGE_SIZE];
    struct tw_store_change put = change(TW_STORE_VERB_PUT, "a", 10);
    assert_int_equal(sqlite3_open_v2(((struct fixture *)*state)->path, &db, SQLITE_OPEN_READONLY, NULL),
                     SQLITE_OK);
    assert_int_equal(tw_store_apply_on(db, NULL, &put, 1, text, sizeof text), TW_EREADONLY);
    assert_string_equal(text, "begin: attempt to write a readonly database (SQLite's code 8)");
    sqlite3_close(db);
    db = other_open(*state);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 8000);
    put.task.payload = (struct tw_bytes){payload, sizeof payload};
    assert_int_equal(tw_store_apply_on(db, NULL, &put, 1, text, sizeof text), TW_EINVAL);
    assert_string_equal(scan(store_of(state), NULL), "");
    sqlite3_close(db);
}

/* A past bug: a statement for many puts has more variables than one for a put. */
static void many_puts_keep_to_the_variables_of_the_connection(void **state)
{
    enum { MANY = 100 };
    struct tw_store_change changes[MANY];
    char ids[MANY][4], text[TW_STORE_MESSAGE_SIZE] = "";
    sqlite3 *db = other_open(*state);
    for (int i = 0; i < MANY; i++) {
        snprintf(ids[i], sizeof ids[i], "%d", i);
        changes[i] = change(TW_STORE_VERB_PUT, ids[i], 10);
    }
    sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, 100);
    assert_int_equal(tw_store_apply_on(db, NULL, changes, MANY, text, sizeof text), 0);
    assert_int_equal(store_count(store_of(state), "q", false), MANY);
    sqlite3_close(db);
}

static void revisions_that_are_used_up_are_an_error(void **state)
{
    sqlite3 *db = other_open(*state);
    other_ask(db, "UPDATE tw_meta SET revision = 4611686018427387904");
    assert_int_equal(put(store_of(state), "a", 1), TW_ECORRUPT);
    assert_string_equal(message(store_of(state)),
                        "tw_meta: revision is 4611686018427387904: expected a number below 2^62");
    sqlite3_close(db);
}

/* A trigger of the user refuses the second put. The first put of the same call goes with it, and the row of the
 * caller stays. */
static void a_failure_in_the_middle_takes_back_the_call_alone(void **state)
{
    sqlite3 *db = other_open(*state);
    struct tw_store_change changes[] = {change(TW_STORE_VERB_PUT, "x", 1), change(TW_STORE_VERB_PUT, "y", 2)};
    char text[TW_STORE_MESSAGE_SIZE];
    put(store_of(state), "b", 6);
    other_ask(db, "CREATE TABLE orders(id);"
                  "CREATE TEMP TRIGGER refuse AFTER INSERT ON main.tw_task WHEN NEW.id = x'79' BEGIN"
                  " SELECT RAISE(ABORT, 'refused'); END; BEGIN; INSERT INTO orders VALUES (42)");
    assert_int_equal(tw_store_apply_on(db, NULL, changes, 2, text, sizeof text), TW_ECORRUPT);
    assert_string_equal(text, "put: refused (SQLite's code 19)");
    assert_int_equal(sqlite3_get_autocommit(db), 0);
    other_ask(db, "COMMIT");
    assert_string_equal(other_ask(db, "SELECT count(*) FROM orders"), "1");
    assert_string_equal(scan(store_of(state), NULL), "b@6");
    sqlite3_close(db);
}

/* The number of the last revision is read anew by each transaction, and a number that is behind is mended. */
static void no_two_tasks_get_one_number(void **state)
{
    sqlite3 *db = other_open(*state);
    struct tw_store_change a = change(TW_STORE_VERB_PUT, "a", 1), c = change(TW_STORE_VERB_PUT, "c", 1);
    assert_int_equal(tw_store_apply_on(db, NULL, &a, 1, NULL, 0), 0);
    put(store_of(state), "b", 1);
    assert_int_equal(tw_store_apply_on(db, NULL, &c, 1, NULL, 0), 0);
    other_ask(db, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'd', 1)");
    put(store_of(state), "e", 1);
    assert_string_equal(scan(store_of(state), NULL), "a@1 b@1 c@1 d@1 e@1");
    assert_string_equal(other_ask(db, "SELECT group_concat(tw_task.revision) || '/' || tw_meta.revision"
                                      " FROM tw_task, tw_meta"),
                        "1,2,3,4,5/5");
    other_ask(db, "UPDATE tw_meta SET revision = 2");
    put(store_of(state), "f", 1);
    assert_string_equal(scan(store_of(state), NULL), "a@1 b@1 c@1 d@1 e@1 f@1");
    other_ask(db, "DELETE FROM tw_meta");
    assert_int_equal(put(store_of(state), "g", 1), TW_ECORRUPT);
    sqlite3_close(db);
}

/* SQLite is interrupted at each moment of the call. If the call could not take its changes back, it says so. */
static int interrupt_at(void *left)
{
    return --*(int *)left <= 0;
}

static void an_interrupted_call_has_changed_nothing_or_says_so(void **state)
{
    sqlite3 *db = other_open(*state);
    int error = 1;
    for (int n = 1; error != 0; n++) {
        struct tw_store_change changes[] = {change(TW_STORE_VERB_PUT, "x", 1),
                                            change(TW_STORE_VERB_MOVE, "b", 9)};
        int left = n;
        other_ask(db, "DELETE FROM tw_task; INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'b', 6)");
        other_ask(db, n % 2 ? "BEGIN IMMEDIATE" : "");
        sqlite3_progress_handler(db, 1, interrupt_at, &left);
        error = tw_store_apply_on(db, NULL, changes, 2, NULL, 0);
        sqlite3_progress_handler(db, 0, NULL, NULL);
        if (error == TW_EROLLBACK)
            other_ask(db, "ROLLBACK");
        else if (!sqlite3_get_autocommit(db)) /* an interrupt may end the caller's transaction: SQLite's rule */
            other_ask(db, "COMMIT");
        assert_int_equal(sqlite3_get_autocommit(db), 1);
        if (error != 0 && error != TW_EROLLBACK)
            assert_int_equal(error, TW_EINTERRUPTED);
        assert_string_equal(scan(store_of(state), NULL), error == 0 ? "x@1 b@9" : "b@6");
    }
    sqlite3_close(db);
}

/* There is no file that somebody could replace. */
static void a_copy_in_memory_is_changed_too(void **state)
{
    char text[TW_STORE_MESSAGE_SIZE];
    struct tw_store_change change = {.task = {.queue = "q", .id = tw_text("a"), .due_ms = 5}};
    sqlite3 *from = other_open(*state), *db;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    sqlite3_backup *backup = sqlite3_backup_init(db, "main", from, "main");
    assert_int_equal(sqlite3_backup_step(backup, -1), SQLITE_DONE);
    assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
    assert_int_equal(tw_store_apply_on(db, NULL, &change, 1, text, sizeof text), 0);
    assert_string_equal(other_ask(db, "SELECT id FROM tw_list"), "a");
    sqlite3_close(db);
    sqlite3_close(from);
}

static void the_last_rowid_of_the_caller_stays(void **state)
{
    sqlite3 *db = other_open(*state);
    struct tw_store_change put = change(TW_STORE_VERB_PUT, "a", 1);
    other_ask(db, "CREATE TABLE orders(id INTEGER PRIMARY KEY); BEGIN; INSERT INTO orders VALUES (42)");
    assert_int_equal(tw_store_apply_on(db, NULL, &put, 1, NULL, 0), 0);
    assert_int_equal(sqlite3_last_insert_rowid(db), 42);
    assert_int_equal(tw_store_apply_on(db, NULL, NULL, 0, NULL, 0), 0);
    other_ask(db, "COMMIT");
    sqlite3_close(db);
}

/* A caller that holds the write lock on a connection of its own would wait for itself for ever. */
static void a_caller_with_the_write_lock_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store_options options = {.busy_ms = 50};
    sqlite3 *db = other_open(fixture);
    tw_store_close(fixture->store);
    assert_int_equal(tw_store_open(&fixture->store, fixture->path, &options, NULL, 0), 0);
    other_ask(db, "BEGIN IMMEDIATE");
    assert_int_equal(put(fixture->store, "a", 1), TW_EBUSY);
    assert_string_equal(
        message(fixture->store),
        "begin: database is locked (SQLite's code 5): another connection has held the write lock "
        "for 50 ms, as long as busy_ms says");
    assert_string_equal(scan(fixture->store, NULL), ""); /* readers do not wait */
    other_ask(db, "COMMIT");
    assert_int_equal(put(fixture->store, "a", 1), 1);
    sqlite3_close(db);
}

/* If the caller's transaction has read, SQLite does not wait for the lock, and a later try does not help. */
static void a_lock_that_hinders_the_caller_is_explained(void **state)
{
    static const char *const begin_anew = "the transaction has read, and another connection writes, or has "
                                          "written since: roll it back, and begin it with BEGIN IMMEDIATE";
    sqlite3 *db = other_open(*state), *other = other_open(*state);
    struct tw_store_change put = change(TW_STORE_VERB_PUT, "a", 10);
    char text[TW_STORE_MESSAGE_SIZE];
    sqlite3_busy_timeout(db, 20);
    other_ask(other, "BEGIN IMMEDIATE");
    assert_int_equal(tw_store_apply_on(db, NULL, &put, 1, text, sizeof text), TW_EBUSY);
    assert_string_equal(text,
                        "begin: database is locked (SQLite's code 5): another connection has held the write "
                        "lock for as long as this one waits, 20 ms (sqlite3_busy_timeout() sets that)");
    other_ask(db, "BEGIN; SELECT * FROM tw_task");
    assert_int_equal(tw_store_apply_on(db, NULL, &put, 1, text, sizeof text), TW_EBUSY);
    assert_non_null(strstr(text, begin_anew));
    other_ask(other, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'b', 5); COMMIT");
    assert_int_equal(tw_store_apply_on(db, NULL, &put, 1, text, sizeof text), TW_EBUSY);
    assert_non_null(strstr(text, begin_anew));
    assert_int_equal(tw_store_apply_on(db, NULL, &put, 1, NULL, 0), TW_EBUSY);
    other_ask(db, "ROLLBACK; BEGIN IMMEDIATE");
    assert_int_equal(tw_store_apply_on(db, NULL, &put, 1, text, sizeof text), 0);
    other_ask(db, "COMMIT");
    assert_string_equal(scan(store_of(state), NULL), "b@5 a@10");
    sqlite3_close(other);
    sqlite3_close(db);
}

/* ---- the views ------------------------------------------------------------------------------------------- */

static void plain_sql_puts_moves_and_cancels(void **state)
{
    struct tw_store *store = store_of(state);
    struct seen seen = {.text = ""};
    sqlite3 *db = other_open(*state);
    other_ask(db, "BEGIN;"
                  "INSERT INTO tw_put(queue, id, due_ms, payload) VALUES ('q', 'a', 10, 'hello');"
                  "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', x'62', 10.0), ('q', '3', '10');"
                  "COMMIT");
    assert_string_equal(scan(store, NULL), "a@10 b@10 3@10");
    assert_int_equal(tw_store_get(store, tw_store_named("q", "a"), see, &seen), 0);
    assert_string_equal(seen.payload, "hello");
    assert_int_equal(seen.last.tries, 20);
    assert_int_equal(seen.last.times, 1);
    assert_int_equal(seen.last.backoff_ms, 1000);
    other_ask(db, "INSERT INTO tw_move(queue, id, due_ms) VALUES ('q', 'a', 10)");
    other_ask(db, "INSERT INTO tw_cancel(queue, id) VALUES ('q', 'b'), ('q', 'nobody')");
    assert_string_equal(scan(store, NULL), "3@10 a@10");
    other_ask(db,
              "INSERT INTO tw_put VALUES ('q', 'a', 20, NULL, 1000, 5, 'skip', 3, 250, '1.15', 9, 0, 0, NULL)");
    assert_int_equal(tw_store_get(store, tw_store_named("q", "a"), see, &seen), 0);
    assert_string_equal(seen.payload, "");
    assert_int_equal(seen.last.every_ms, 1000);
    assert_int_equal(seen.last.times, 5);
    assert_int_equal(seen.last.missed, TW_MISSED_SKIP);
    assert_int_equal(seen.last.tries, 3);
    assert_int_equal(seen.last.backoff_ms, 250);
    assert_int_equal(seen.last.factor_percent, 115);
    assert_int_equal(seen.last.backoff_max_ms, 9);
    assert_int_equal(seen.last.jitter, TW_STORE_NO_JITTER);
    assert_true(seen.last.max_late_ms == TW_STORE_ON_TIME);
    other_ask(db, "INSERT INTO tw_put(queue, id, due_ms, every_ms) VALUES ('q', 'a', 20, 1000)");
    assert_int_equal(tw_store_get(store, tw_store_named("q", "a"), see, &seen), 0);
    assert_true(seen.last.max_late_ms == TW_FOREVER);
    assert_int_equal(seen.last.times, TW_FOREVER);
    assert_int_equal(seen.last.missed, TW_MISSED_COALESCE);
    assert_string_equal(other_ask(db, "SELECT group_concat(coalesce(missed, 'none')) FROM tw_put ORDER BY id"),
                        "none,coalesce");
    other_ask(db, "UPDATE tw_task SET missed = 9 WHERE id = CAST('a' AS BLOB)");
    assert_int_equal(tw_store_get(store, tw_store_named("q", "a"), see, &seen), 0);
    assert_int_equal(seen.last.missed, TW_MISSED_COALESCE);
    assert_string_equal(other_ask(db, "SELECT count(*) = (SELECT count(*) FROM tw_task) FROM tw_put"), "1");
    sqlite3_close(db);
}

/* A driver may have its own way with conflicts. INSERT OR IGNORE must not turn a put into a put with NX. */
static void the_conflict_clause_of_the_caller_changes_nothing(void **state)
{
    static const char *const clauses[] = {"REPLACE", "IGNORE", "ABORT", "FAIL", "ROLLBACK"};
    sqlite3 *db = other_open(*state);
    char sql[256], expected[64];
    for (int i = 0; i < 5; i++) {
        snprintf(sql, sizeof sql, "INSERT OR %s INTO tw_put(queue, id, due_ms) VALUES ('q', 'a', %d)",
                 clauses[i], i + 5);
        other_ask(db, sql);
        snprintf(expected, sizeof expected, "a@%d", i + 5);
        assert_string_equal(scan(store_of(state), NULL), expected);
        snprintf(sql, sizeof sql, "INSERT OR %s INTO tw_move(queue, id, due_ms) VALUES ('q', 'a', %d)",
                 clauses[i], i + 50);
        other_ask(db, sql);
        snprintf(expected, sizeof expected, "a@%d", i + 50);
        assert_string_equal(scan(store_of(state), NULL), expected);
    }
    sqlite3_close(db);
}

static void conditions_in_sql(void **state)
{
    sqlite3 *db = other_open(*state);
    static const struct {
        const char *sql, *after;
    } steps[] = {
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 50, 'XX')", ""},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 50, 'NX')", "a@50"},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 60, 'NX')", "a@50"},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 60, 'XX')", "a@60"},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 60, 'GT')", "a@60"},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 61, 'GT')", "a@61"},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 61, 'LT')", "a@61"},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 60, 'LT')", "a@60"},
        {"tw_move(queue, id, due_ms, condition) VALUES ('q', 'a', 60, 'GT')", "a@60"},
        {"tw_move(queue, id, due_ms, condition) VALUES ('q', 'a', 70, 'GT')", "a@70"},
        {"tw_move(queue, id, due_ms, condition) VALUES ('q', 'a', 70, 'LT')", "a@70"},
        {"tw_move(queue, id, due_ms, condition) VALUES ('q', 'a', 65, 'LT')", "a@65"},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'b', 1, 'GT')", "b@1 a@65"},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'c', 2, 'LT')", "b@1 c@2 a@65"},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'd', 3, 'KEEPDUE XX')", "b@1 c@2 a@65"},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 3, 'KEEPDUE NX')", "b@1 c@2 a@65"},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 3, 'KEEPDUE XX')", "b@1 c@2 a@65"},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'd', 3, 'KEEPDUE NX')", "b@1 c@2 d@3 a@65"},
        {"tw_put(queue, id, due_ms, condition) VALUES ('q', 'e', 4, 'KEEPDUE')", "b@1 c@2 d@3 e@4 a@65"},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        char sql[256];
        snprintf(sql, sizeof sql, "INSERT INTO %s", steps[i].sql);
        other_ask(db, sql);
        assert_string_equal(scan(store_of(state), NULL), steps[i].after);
    }
    sqlite3_close(db);
}

/* In each state, with tasks that repeat or run once. The row of "c" is the work of C, that of "s" of SQL. */
static void keepdue_in_sql_is_as_in_c(void **state)
{
    static const char *const states[] = {
        "attempt = 0", /* waiting */
        "attempt = 2, lapses = 1, run = 4, token = 44, error = 'full', next_ms = 70, place_ms = 71, "
        "missed_periods = 3",                                   /* a retry */
        "attempt = 2, run = 5, token = 55, missed_periods = 3", /* leased */
        "replaced = 2, run = 5, token = 55",                    /* behind it */
        "attempt = 2, dead_ms = 9, error = 'full'",             /* dead */
    };
    static const char *const columns =
        "SELECT due_ms, next_ms, place_ms, attempt, lapses, run, token, replaced, dead_ms, every_ms, times, "
        "missed, missed_periods, tries, backoff_ms, factor, backoff_max_ms, jitter, max_late_ms, error, payload"
        " FROM tw_task";
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    for (size_t i = 0; i < 4 * sizeof states / sizeof states[0]; i++) {
        char sql[512];
        uint64_t every_ms = i & 1 ? 0 : 20;
        struct tw_store_delayed task = {.queue = "q",
                                        .id = tw_text("c"),
                                        .due_ms = 90,
                                        .payload = tw_text("new"),
                                        .every_ms = every_ms,
                                        .times = every_ms > 0 ? 6 : 0,
                                        .missed = every_ms > 0 ? TW_MISSED_SKIP : 0,
                                        .tries = 4,
                                        .backoff_ms = 11,
                                        .factor_percent = 150,
                                        .backoff_max_ms = 99,
                                        .jitter = 7,
                                        .max_late_ms = 30};
        clock_stop(20);
        other_ask(
            db, i & 2 ? "DELETE FROM tw_task; UPDATE tw_meta SET run = 5; INSERT INTO tw_put(queue, id, due_ms,"
                        " payload) VALUES ('q', 'c', 50, 'old'), ('q', 's', 50, 'old')"
                      : "DELETE FROM tw_task; UPDATE tw_meta SET run = 5; INSERT INTO tw_put(queue, id, due_ms,"
                        " payload, every_ms, times) VALUES ('q', 'c', 50, 'old', 10, 3),"
                        " ('q', 's', 50, 'old', 10, 3)");
        snprintf(sql, sizeof sql, "UPDATE tw_task SET %s", states[i / 4]);
        other_ask(db, sql);
        clock_stop(60);
        assert_int_equal(store_put(store, &task, TW_CONDITION_KEEPDUE), 1);
        snprintf(sql, sizeof sql,
                 "INSERT INTO tw_put(queue, id, due_ms, payload, every_ms, times, missed, tries, backoff_ms,"
                 " factor, backoff_max_ms, jitter, max_late_ms, condition)"
                 " VALUES ('q', 's', 90, x'6e6577', %s, 4, 11, 1.5, 99, 7, 30, 'KEEPDUE')",
                 every_ms > 0 ? "20, 6, 'skip'" : "NULL, NULL, NULL");
        other_ask(db, sql);
        snprintf(sql, sizeof sql,
                 "SELECT count(*) FROM (SELECT * FROM (%s) GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,"
                 " 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)",
                 columns);
        assert_string_equal(other_ask(db, sql), "1");
    }
    clock_stop(1);
    sqlite3_close(db);
}

/* The numbers for tasks that leave them out. */
static void bad_numbers_of_the_file_are_refused(void **state)
{
    static const struct {
        const char *set, *text;
    } bad[] = {{"tries = 0", "tries: expected 1 to 1000000"},
               {"tries = 1000001", "tries: expected 1 to 1000000"},
               {"tries = 'x'", "tries: expected 1 to 1000000"},
               {"backoff_ms = 0", "backoff_ms: expected 1 to 3155760000000"},
               {"backoff_ms = 3155760000001", "backoff_ms: expected 1 to 3155760000000"},
               {"factor = 0.99", "factor: expected 1 to 100, with at most two decimals"},
               {"factor = 100.01", "factor: expected 1 to 100, with at most two decimals"},
               {"factor = 1.005", "factor: expected 1 to 100, with at most two decimals"},
               {"backoff_max_ms = 0", "backoff_max_ms: expected 1 to 3155760000000"},
               {"jitter = -1", "jitter: expected 0 to 100"},
               {"jitter = 101", "jitter: expected 0 to 100"}};
    sqlite3 *db = other_open(*state);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char sql[100], text[100];
        snprintf(sql, sizeof sql, "UPDATE tw_meta SET %s", bad[i].set);
        snprintf(text, sizeof text, "CHECK constraint failed: %s", bad[i].text);
        assert_string_equal(other_refuses(db, sql), text);
    }
    other_ask(db, "UPDATE tw_meta SET tries = 1, backoff_ms = 1, factor = 1, backoff_max_ms = 1, jitter = 0");
    other_ask(db,
              "UPDATE tw_meta SET tries = 1000000, backoff_ms = 3155760000000, factor = 99.99, jitter = 100");
    sqlite3_close(db);
}

static void bad_values_in_sql_are_named_with_their_range(void **state)
{
    static const char *const queue = "tw_put: queue: expected UTF-8 text of 1 to 255 bytes without NUL";
    static const char *const id = "tw_put: id: expected text or a blob of 1 to 960 bytes";
    static const char *const due = "tw_put: due_ms: expected milliseconds since 1970, a whole number, "
                                   "0 to 253402300799999";
    static const char *const factor = "tw_put: factor: expected 1 to 100, with at most two decimals";
    static const char *const most = "tw_put: backoff_max_ms: expected 1 to 3155760000000";
    static const char *const late = "tw_put: max_late_ms: expected 0 to 3155760000000";
    static const struct {
        const char *values, *text;
    } rows[] = {
        {"('', 'a', 1)", queue},
        {"(NULL, 'a', 1)", queue},
        {"(7, 'a', 1)", queue},
        {"(x'61', 'a', 1)", queue},
        {"('a' || char(0) || 'b', 'a', 1)", queue},
        {"(printf('%256d', 1), 'a', 1)", queue},
        {"(CAST(x'61ff' AS TEXT), 'a', 1)", queue},
        {"(CAST(x'80' AS TEXT), 'a', 1)", queue},
        {"(CAST(x'c3a9a9' AS TEXT), 'a', 1)", queue},
        {"(CAST(x'c080' AS TEXT), 'a', 1)", queue},
        {"(CAST(x'eda080' AS TEXT), 'a', 1)", queue},
        {"(CAST(x'f4908080' AS TEXT), 'a', 1)", queue},
        {"('q', '', 1)", id},
        {"('q', NULL, 1)", id},
        {"('q', 7, 1)", id},
        {"('q', 7.0, 1)", id},
        {"('q', zeroblob(1025), 1)", id},
        {"('q', 'a', NULL)", due},
        {"('q', 'a', -1)", due},
        {"('q', 'a', 1.5)", due},
        {"('q', 'a', 'tomorrow')", due},
        {"('q', 'a', '17 ')", due},
        {"('q', 'a', '1.5')", due},
        {"('q', 'a', x'3137')", due},
        {"('q', 'a', 253402300800000)", due},
        {"('q', 'a', 9e999)", due},
        {"('q', 'a', 1, 7)", "tw_put: payload: expected a blob, text or NULL, of at most 999000000 bytes"},
        {"('q', 'a', 1, NULL, -1)", "tw_put: every_ms: expected 1 to 3155760000000"},
        {"('q', 'a', 1, NULL, 3155760000001)", "tw_put: every_ms: expected 1 to 3155760000000"},
        {"('q', 'a', 1, NULL, 'x')", "tw_put: every_ms: expected 1 to 3155760000000"},
        {"('q', 'a', 1, NULL, 0)", "tw_put: every_ms: expected 1 to 3155760000000"},
        {"('q', 'a', 1, NULL, NULL, 2)", "tw_put: times: expected every_ms too"},
        {"('q', 'a', 1, NULL, 5, 0)", "tw_put: times: expected 1 to 9223372036854775807"},
        {"('q', 'a', 1, NULL, 5, -2)", "tw_put: times: expected 1 to 9223372036854775807"},
        {"('q', 'a', 1, NULL, 5, 0.5)", "tw_put: times: expected 1 to 9223372036854775807"},
        {"('q', 'a', 1, NULL, NULL, NULL, 'skip')", "tw_put: missed: expected every_ms too"},
        {"('q', 'a', 1, NULL, 5, 2, 1)", "tw_put: missed: expected burst, skip or coalesce"},
        {"('q', 'a', 1, NULL, 5, 2, 'Burst')", "tw_put: missed: expected burst, skip or coalesce"},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 0)", "tw_put: tries: expected 1 to 1000000"},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 1000001)", "tw_put: tries: expected 1 to 1000000"},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 0)", "tw_put: backoff_ms: expected 1 to 3155760000000"},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 3155760000001)",
         "tw_put: backoff_ms: expected 1 to 3155760000000"},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 0.99)", factor},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 100.01)", factor},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 1.005)", factor},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, '1.5x')", factor},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, '1.5.1')", factor},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, -2)", factor},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, x'32')", factor},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 2, 0)", most},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 2, 3155760000001)", most},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 2, 1.5)", most},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 2, 5, -1)", "tw_put: jitter: expected 0 to 100"},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 2, 5, 101)", "tw_put: jitter: expected 0 to 100"},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 2, 5, 'x')", "tw_put: jitter: expected 0 to 100"},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 2, 5, 6, -1)", late},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 2, 5, 6, 3155760000001)", late},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 2, 5, 6, 'x')", late},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 2, 5, 6, NULL, 'nx')",
         "tw_put: condition: expected NX, XX, GT, LT, KEEPDUE, KEEPDUE NX, KEEPDUE XX or NULL"},
        {"('q', 'a', 1, NULL, 5, 2, 'skip', 3, 4, 2, 5, 6, NULL, 'KEEPDUE GT')",
         "tw_put: condition: expected NX, XX, GT, LT, KEEPDUE, KEEPDUE NX, KEEPDUE XX or NULL"},
    };
    static const char *const columns[] = {"queue",          "id",     "due_ms",      "payload",    "every_ms",
                                          "times",          "missed", "tries",       "backoff_ms", "factor",
                                          "backoff_max_ms", "jitter", "max_late_ms", "condition"};
    sqlite3 *db = other_open(*state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char sql[512] = "INSERT INTO tw_put(";
        size_t n = 1, depth = 0;
        for (const char *at = rows[i].values; *at != '\0'; at++) {
            depth += *at == '(';
            depth -= *at == ')';
            n += *at == ',' && depth == 1;
        }
        for (size_t j = 0; j < n; j++)
            strcat(strcat(sql, j > 0 ? ", " : ""), columns[j]);
        strcat(strcat(sql, ") VALUES "), rows[i].values);
        assert_string_equal(other_refuses(db, sql), rows[i].text);
        assert_string_equal(scan(store_of(state), NULL), "");
    }
    sqlite3_close(db);
}

static void bad_values_of_the_other_views_are_named(void **state)
{
    static const struct {
        const char *sql, *text;
    } rows[] = {
        {"tw_move(queue, id, due_ms) VALUES ('q', 'b', 1)",
         "tw_move: there is no such task: it has ended, or never was"},
        {"tw_move(queue, id, due_ms) VALUES ('q', 'a', 'x')",
         "tw_move: due_ms: expected milliseconds since 1970, a whole number, 0 to 253402300799999"},
        {"tw_move(queue, id, due_ms) VALUES ('q', 'a', -1)",
         "tw_move: due_ms: expected milliseconds since 1970, a whole number, 0 to 253402300799999"},
        {"tw_move(queue, id, due_ms) VALUES ('q', 'a', 253402300800000)",
         "tw_move: due_ms: expected milliseconds since 1970, a whole number, 0 to 253402300799999"},
        {"tw_move(queue, id, due_ms) VALUES (x'71', 'a', 1)",
         "tw_move: queue: expected text of 1 to 255 bytes without NUL"},
        {"tw_move(queue, id, due_ms) VALUES ('q', 3, 1)",
         "tw_move: id: expected text or a blob of 1 to 1024 bytes"},
        {"tw_move VALUES ('q', 'a', 7, 'NX')", "tw_move: condition: expected GT, LT or NULL"},
        {"tw_cancel VALUES (x'71', 'a')", "tw_cancel: queue: expected text of 1 to 255 bytes without NUL"},
        {"tw_cancel VALUES (NULL, 'a')", "tw_cancel: queue: expected text of 1 to 255 bytes without NUL"},
        {"tw_cancel VALUES ('q', NULL)", "tw_cancel: id: expected text or a blob of 1 to 1024 bytes"},
        {"tw_cancel VALUES ('q', 7)", "tw_cancel: id: expected text or a blob of 1 to 1024 bytes"},
        {"tw_cancel DEFAULT VALUES", "tw_cancel: queue: expected text of 1 to 255 bytes without NUL"},
        {"tw_promote VALUES (x'71', 'a')", "tw_promote: queue: expected text of 1 to 255 bytes without NUL"},
        {"tw_promote VALUES ('q', 7)", "tw_promote: id: expected text or a blob of 1 to 1024 bytes"},
        {"tw_promote VALUES ('q', NULL)", "tw_promote: id: expected text or a blob of 1 to 1024 bytes"},
        {"tw_pause VALUES (x'71', 1)", "tw_pause: queue: expected UTF-8 text of 1 to 255 bytes without NUL"},
        {"tw_pause VALUES ('a' || char(0), 0)",
         "tw_pause: queue: expected UTF-8 text of 1 to 255 bytes without NUL"},
        {"tw_pause VALUES (CAST(x'61ff' AS TEXT), 1)",
         "tw_pause: queue: expected UTF-8 text of 1 to 255 bytes without NUL"},
        {"tw_pause(queue) VALUES ('q')", "tw_pause: paused: expected 0 or 1"},
        {"tw_pause VALUES ('q', 2)", "tw_pause: paused: expected 0 or 1"},
        {"tw_pause VALUES ('q', 0.5)", "tw_pause: paused: expected 0 or 1"},
        {"tw_pause VALUES ('q', 'x')", "tw_pause: paused: expected 0 or 1"},
        {"tw_pause VALUES ('q', x'31')", "tw_pause: paused: expected 0 or 1"},
        {"tw_replay VALUES (x'71', 'a', 7)", "tw_replay: queue: expected text of 1 to 255 bytes without NUL"},
        {"tw_replay(queue, id) VALUES ('q', 7)", "tw_replay: id: expected text or a blob of 1 to 1024 bytes"},
        {"tw_replay(queue) VALUES ('q')", "tw_replay: id: expected text or a blob of 1 to 1024 bytes"},
        {"tw_replay VALUES ('q', 'a', 1.5)",
         "tw_replay: due_ms: expected milliseconds since 1970, a whole number, 0 to 253402300799999"},
        {"tw_replay VALUES ('q', 'a', x'37')",
         "tw_replay: due_ms: expected milliseconds since 1970, a whole number, 0 to 253402300799999"},
        {"tw_replay VALUES ('q', 'a', 253402300800000)",
         "tw_replay: due_ms: expected milliseconds since 1970, a whole number, 0 to 253402300799999"},
    };
    sqlite3 *db = other_open(*state);
    put(store_of(state), "a", 5);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char sql[256];
        snprintf(sql, sizeof sql, "INSERT INTO %s", rows[i].sql);
        assert_string_equal(other_refuses(db, sql), rows[i].text);
        assert_string_equal(scan(store_of(state), NULL), "a@5");
    }
    other_ask(db, "UPDATE tw_task SET dead_ms = 1");
    assert_string_equal(other_refuses(db, "INSERT INTO tw_move(queue, id, due_ms) VALUES ('q', 'a', 7)"),
                        "tw_move: the task is dead: expected a replay, or a put in its place");
    other_ask(db, "UPDATE tw_meta SET revision = 0; UPDATE tw_task SET dead_ms = NULL");
    static const char *const behind = "tw_meta: revision: expected the largest revision of a task, below 2^62";
    assert_string_equal(other_refuses(db, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'b', 7)"),
                        behind);
    assert_string_equal(other_refuses(db, "INSERT INTO tw_move(queue, id, due_ms) VALUES ('q', 'a', 7)"),
                        behind);
    assert_string_equal(other_refuses(db, "INSERT INTO tw_promote VALUES ('q', 'a')"), behind);
    assert_string_equal(other_refuses(db, "INSERT INTO tw_replay(queue, id) VALUES ('q', 'a')"), behind);
    sqlite3_close(db);
}

static void a_pause_in_sql_is_as_in_c(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    assert_string_equal(other_ask(db, "INSERT INTO tw_pause VALUES ('q', 0) RETURNING queue"), "");
    assert_string_equal(other_ask(db, "INSERT INTO tw_pause VALUES ('\xc3\xa9', 1.0) RETURNING queue"),
                        "\xc3\xa9");
    assert_string_equal(other_ask(db, "INSERT OR FAIL INTO tw_pause VALUES ('\xc3\xa9', '1') RETURNING queue"),
                        "");
    assert_int_equal(store_pause(store, "\xc3\xa9"), 0);
    assert_int_equal(store_is_paused(store, "\xc3\xa9"), 1);
    assert_int_equal(store_is_paused(store, "q"), 0);
    assert_int_equal(store_pause(store, "q"), 1);
    assert_string_equal(other_ask(db, "INSERT OR REPLACE INTO tw_pause VALUES ('q', 1) RETURNING queue"), "");
    assert_string_equal(other_ask(db, "SELECT count(*) || sum(paused) FROM tw_pause"), "22");
    assert_string_equal(other_ask(db, "INSERT INTO tw_pause VALUES ('q', '0') RETURNING queue"), "q");
    assert_int_equal(store_resume(store, "q"), 0);
    assert_int_equal(store_is_paused(store, "\xc3\xa9"), 1);
    assert_int_equal(store_resume(store, "\xc3\xa9"), 1);
    other_ask(db, "INSERT INTO tw_queue VALUES (CAST(x'61ff' AS TEXT), 1)");
    other_ask(db, "INSERT INTO tw_pause VALUES (CAST(x'61ff' AS TEXT), 0)");
    assert_string_equal(other_ask(db, "SELECT count(*) FROM tw_queue"), "0");
    sqlite3_close(db);
}

/* The last value of each range is good. */
static void the_borders_of_the_ranges_are_taken(void **state)
{
    static const char *const good[] = {
        "(queue, id, due_ms) VALUES (printf('%255d', 1), 'a', 1)",
        "(queue, id, due_ms) VALUES (replace(printf('%128d', 1), ' ', 'é'), 'a', 1)",
        "(queue, id, due_ms) VALUES ('q', zeroblob(960), 1)",
        "(queue, id, due_ms) VALUES ('q', 'a', 0)",
        "(queue, id, due_ms) VALUES ('q', 'a', 253402300799999)",
        "(queue, id, due_ms, payload) VALUES ('q', 'a', 1, zeroblob(2000000))",
        "(queue, id, due_ms, every_ms) VALUES ('q', 'a', 1, 3155760000000)",
        "(queue, id, due_ms, every_ms, times) VALUES ('q', 'a', 1, 1, 9223372036854775807)",
        "(queue, id, due_ms, every_ms) VALUES ('q', 'a', 1, 1)",
        "(queue, id, due_ms, every_ms, times) VALUES ('q', 'a', 1, 1, '1')",
        "(queue, id, due_ms, every_ms, times) VALUES ('q', 'a', 1, NULL, NULL)",
        "(queue, id, due_ms, every_ms, missed) VALUES ('q', 'a', 1, 1, 'burst')",
        "(queue, id, due_ms, tries) VALUES ('q', 'a', 1, 1000000)",
        "(queue, id, due_ms, backoff_ms) VALUES ('q', 'a', 1, 3155760000000.0)",
        "(queue, id, due_ms, backoff_ms) VALUES ('q', 'a', 1, 1)",
        "(queue, id, due_ms, factor) VALUES ('q', 'a', 1, '1')",
        "(queue, id, due_ms, factor) VALUES ('q', 'a', 1, 99.99)",
        "(queue, id, due_ms, factor) VALUES ('q', 'a', 1, 100)",
        "(queue, id, due_ms, factor) VALUES ('q', 'a', 1, '1.50')",
        "(queue, id, due_ms, backoff_max_ms) VALUES ('q', 'a', 1, '3155760000000')",
        "(queue, id, due_ms, jitter) VALUES ('q', 'a', 1, 0)",
        "(queue, id, due_ms, jitter) VALUES ('q', 'a', 1, '100')",
        "(queue, id, due_ms, max_late_ms) VALUES ('q', 'a', 1, '0')",
        "(queue, id, due_ms, max_late_ms) VALUES ('q', 'a', 1, 3155760000000)",
    };
    sqlite3 *db = other_open(*state);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        char sql[256];
        snprintf(sql, sizeof sql, "DELETE FROM tw_task; INSERT INTO tw_put%s", good[i]);
        other_ask(db, sql);
        assert_string_equal(other_ask(db, "SELECT count(*) FROM tw_task"), "1");
    }
    other_ask(db, "DELETE FROM tw_task; INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'a', 7)");
    other_ask(db, "INSERT INTO tw_move VALUES ('q', 'a', 253402300799999, 'GT')");
    other_ask(db, "INSERT INTO tw_move VALUES ('q', 'a', '0', 'LT')");
    assert_string_equal(scan(store_of(state), NULL), "a@0");
    assert_string_equal(other_refuses(db, "INSERT INTO tw_put(queue, id, due_ms)"
                                          " VALUES (replace(printf('%129d', 1), ' ', 'é'), 'a', 1)"),
                        "tw_put: queue: expected UTF-8 text of 1 to 255 bytes without NUL");
    sqlite3_close(db);
}

/* The table refuses rows that are no tasks, whatever writes them. The last of each list is good. */
static void rows_that_are_no_tasks_are_refused(void **state)
{
    static const char *const rows[][16] = {
        {"''", "x''", "x'71'", "NULL", "'a' || char(0)", "printf('%256d', 1)", "CAST(zeroblob(5) AS TEXT)",
         "replace(printf('%129d', 1), ' ', 'é')", "replace(printf('%128d', 1), ' ', 'é')"},
        {"x''", "NULL", "'a'", "1", "1.5", "zeroblob(1025)", "zeroblob(1024)"},
        {"-1", "0.5", "253402300799998.5", "253402300800000", "'x'", "x'35'", "NULL", "9e999", "'5'"},
        {"-1", "0.5", "3155760000001", "'x'", "x'35'", "NULL", "3155760000000"},
        {"-1", "0.5", "9223372036854775808", "'x'", "x'35'", "NULL", "-9e999", "9e999", "9223372036854775807"},
    };
    sqlite3 *db = other_open(*state);
    for (int column = 0; column < 5; column++)
        for (int i = 0; rows[column][i] != NULL; i++) {
            const char *of[] = {"'q'", "x'61'", "5", "0", "1"};
            char sql[256];
            of[column] = rows[column][i];
            snprintf(sql, sizeof sql,
                     "INSERT INTO tw_task(revision, queue, id, due_ms, every_ms, times, next_ms, place_ms)"
                     " VALUES (1, %s, %s, %s, %s, %s, 5, 5)",
                     of[0], of[1], of[2], of[3], of[4]);
            if (rows[column][i + 1] != NULL)
                assert_non_null(strstr(other_refuses(db, sql), " constraint failed: "));
            else
                other_ask(db, sql);
            other_ask(db, "DELETE FROM tw_task");
        }
    sqlite3_close(db);
}

/* With any conflict clause of the caller a statement with one bad row changes nothing, and the caller's
 * transaction goes on. */
static void a_statement_with_one_bad_row_changes_nothing(void **state)
{
    static const char *const clauses[] = {"", "OR REPLACE", "OR IGNORE", "OR ABORT", "OR FAIL", "OR ROLLBACK"};
    sqlite3 *db = other_open(*state);
    for (size_t i = 0; i < sizeof clauses / sizeof clauses[0]; i++) {
        char sql[256];
        other_ask(db, "BEGIN; INSERT INTO tw_put(queue, id, due_ms) VALUES ('p', 'before', 1)");
        snprintf(
            sql, sizeof sql,
            "INSERT %s INTO tw_put(queue, id, due_ms) VALUES ('q', 'a', 1), ('q', 'b', 'x'), ('q', 'c', 1)",
            clauses[i]);
        other_refuses(db, sql);
        assert_int_equal(sqlite3_get_autocommit(db), 0);
        assert_string_equal(other_ask(db, "SELECT group_concat(id) FROM tw_task"), "before");
        other_ask(db, "ROLLBACK");
    }
    sqlite3_close(db);
}

/* A second queue has a task of the same id, dead or alive: nothing that happens to the first changes it. */
static void queues_with_equal_ids_do_not_meet(void **state)
{
    static const char *const changes[] = {
        "tw_put(queue, id, due_ms) VALUES ('q', 'a', 20)",
        "tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 21, 'XX')",
        "tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 22, 'GT')",
        "tw_move VALUES ('q', 'a', 23, 'GT')",
        "tw_move VALUES ('q', 'a', 5, 'LT')",
        "tw_cancel VALUES ('q', 'a')",
        "tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 24, 'XX')",
        "tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', 25, 'NX')",
    };
    static const char *const after[] = {"20", "21", "22", "23", "5", "", "", "25"};
    sqlite3 *db = other_open(*state);
    for (int dead = 0; dead < 2; dead++) {
        other_ask(db, "DELETE FROM tw_task; INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'a', 10),"
                      " ('p', 'a', 15)");
        if (dead)
            other_ask(db, "UPDATE tw_task SET dead_ms = 1 WHERE queue = 'p'");
        for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
            char sql[256];
            snprintf(sql, sizeof sql, "INSERT INTO %s", changes[i]);
            other_ask(db, sql);
            assert_string_equal(other_ask(db, "SELECT due_ms FROM tw_task WHERE queue = 'q'"), after[i]);
            assert_string_equal(other_ask(db, "SELECT due_ms FROM tw_task WHERE queue = 'p' AND revision = 2"),
                                "15");
        }
        other_ask(db, "DELETE FROM tw_task; UPDATE tw_meta SET revision = 0");
    }
    sqlite3_close(db);
}

/* The conditions see a dead task, and compare with its due time, here 3. A revived task begins anew. */
static void conditions_on_a_dead_task(void **state)
{
    static const struct {
        const char *condition, *due_ms, *after;
    } rows[] = {{"'NX'", "50", "3/9"}, {"'XX'", "50", "50/0"}, {"'GT'", "3", "3/9"}, {"'GT'", "5", "5/0"},
                {"'LT'", "3", "3/9"},  {"'LT'", "2", "2/0"},   {"NULL", "7", "7/0"}};
    sqlite3 *db = other_open(*state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char sql[256];
        other_ask(db, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'a', 10);"
                      "UPDATE tw_task SET dead_ms = 9, attempt = 2, run = 1, error = 'no paper', due_ms = 3");
        snprintf(sql, sizeof sql, "INSERT INTO tw_put(queue, id, due_ms, condition) VALUES ('q', 'a', %s, %s)",
                 rows[i].due_ms, rows[i].condition);
        other_ask(db, sql);
        assert_string_equal(other_ask(db, "SELECT due_ms || '/' || coalesce(dead_ms, 0) FROM tw_task"),
                            rows[i].after);
        if (strcmp(rows[i].after, "3/9") != 0)
            assert_string_equal(other_ask(db, "SELECT attempt || run || coalesce(error, '-')"
                                              " || (next_ms = due_ms) FROM tw_task"),
                                "00-1");
    }
    other_ask(db, "UPDATE tw_task SET attempt = 2, run = 1, error = 'no paper', next_ms = 13;"
                  "INSERT INTO tw_move(queue, id, due_ms) VALUES ('q', 'a', 8)");
    assert_string_equal(
        other_ask(db, "SELECT attempt || run || coalesce(error, '-') || (next_ms = due_ms) FROM tw_task"),
        "00-1");
    sqlite3_close(db);
}

static void the_list_for_people(void **state)
{
    sqlite3 *db = other_open(*state);
    clock_stop(UINT64_C(1800000000000));
    other_ask(db,
              "INSERT INTO tw_put(queue, id, due_ms, payload) VALUES ('q', 'order:42', 1795418583999, 'hello');"
              "UPDATE tw_task SET attempt = 1, error = 'no paper'");
    assert_string_equal(other_ask(db, "SELECT queue || id || due || state || attempt || error || payload"
                                      " FROM tw_list WHERE id = 'order:42'"),
                        "qorder:422026-11-23T07:23:03Zready1no paperhello");
    other_ask(db, "UPDATE tw_meta SET run = 3; UPDATE tw_task SET run = 3");
    assert_string_equal(other_ask(db, "SELECT state FROM tw_list"), "leased");
    other_ask(db, "UPDATE tw_task SET run = 2");
    assert_string_equal(other_ask(db, "SELECT state FROM tw_list"), "ready");
    other_ask(db, "UPDATE tw_task SET next_ms = 253402300799999");
    assert_string_equal(other_ask(db, "SELECT state FROM tw_list"), "waiting");
    other_ask(db, "UPDATE tw_task SET dead_ms = 2");
    assert_string_equal(other_ask(db, "SELECT state FROM tw_list"), "dead");
    clock_stop(1);
    sqlite3_close(db);
}

/* A bug: with one id that is no text, no program that checks text could read the list. */
static void the_list_has_each_id_as_text(void **state)
{
    static const struct {
        const char *id, *shown;
    } rows[] = {
        {"'a'", "a text"},
        {"'[^]*?' || char(127)", "[^]*?\x7f text"},
        {"'\xc3\xa9'", "\xc3\xa9 text"},
        {"x'e282ac'", "\xe2\x82\xac text"},
        {"x'f09f9880'", "\xf0\x9f\x98\x80 text"},
        {"x'f48fbfbf'", "\xf4\x8f\xbf\xbf text"},
        {"x'efbfbd'", "\xef\xbf\xbd text"},
        {"x'efbfbf'", "\xef\xbf\xbf text"},
        {"x'ff'", "ff hex"},
        {"x'80'", "80 hex"},
        {"x'C3'", "c3 hex"},
        {"x'61c3a9a9'", "61c3a9a9 hex"},
        {"x'c3a9c3'", "c3a9c3 hex"},
        {"x'c080'", "c080 hex"},
        {"x'e0829f'", "e0829f hex"},
        {"x'f08080af'", "f08080af hex"},
        {"x'eda080'", "eda080 hex"},
        {"x'f4908080'", "f4908080 hex"},
        {"x'f888808080'", "f888808080 hex"},
        {"x'610062'", "610062 hex"},
        {"x'61006200ff'", "61006200ff hex"},
        {"x'00'", "00 hex"},
    };
    sqlite3 *db = other_open(*state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char sql[200];
        snprintf(sql, sizeof sql,
                 "DELETE FROM tw_task; INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', %s, 1)", rows[i].id);
        other_ask(db, sql);
        assert_string_equal(other_ask(db, "SELECT id || ' ' || id_form FROM tw_list"), rows[i].shown);
        assert_string_equal(other_ask(db, "SELECT typeof(id) || typeof(queue) FROM tw_list"), "texttext");
    }
    sqlite3_close(db);
}

static void the_list_has_a_queue_that_is_no_text_as_a_blob(void **state)
{
    sqlite3 *db = other_open(*state);
    other_ask(db, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('\xc3\xa9', 'a', 1), ('q', 'b', 2);"
                  "UPDATE tw_task SET queue = CAST(x'61ff' AS TEXT) WHERE queue = 'q'");
    assert_string_equal(other_ask(db, "SELECT typeof(queue) || queue FROM tw_list WHERE id = 'a'"),
                        "text\xc3\xa9");
    assert_string_equal(other_ask(db, "SELECT typeof(queue) || hex(queue) FROM tw_list WHERE id = 'b'"),
                        "blob61FF");
    sqlite3_close(db);
}

/* A bug: one payload that is text, and no UTF-8, made a whole list fail for other languages. */
static void each_payload_is_a_blob(void **state)
{
    static const char *const payloads[] = {"'plain'", "'\xc3\xa9'", "CAST(x'61ff' AS TEXT)", "x'00ff'", "''"};
    sqlite3 *db = other_open(*state);
    char sql[300];
    other_ask(db, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'a', 1)");
    assert_string_equal(other_ask(db, "SELECT typeof(payload) FROM tw_list"), "null");
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        snprintf(sql, sizeof sql,
                 "INSERT INTO tw_put(queue, id, due_ms, payload) VALUES ('q', 'a', 1, %s);"
                 "INSERT INTO tw_take(queue, take, lease_ms) VALUES ('q', 'take %d of it', 5)",
                 payloads[i], (int)i);
        other_ask(db, sql);
        for (int view = 0; view < 3; view++) {
            snprintf(sql, sizeof sql, "SELECT typeof(payload) || (payload = CAST(%s AS BLOB)) FROM %s",
                     payloads[i],
                     view == 0   ? "tw_task"
                     : view == 1 ? "tw_list"
                                 : "tw_taken");
            assert_string_equal(other_ask(db, sql), "blob1");
        }
        other_ask(db, "INSERT INTO tw_cancel(queue, id) VALUES ('q', 'a')");
    }
    sqlite3_close(db);
}

static void note_queue(void *arg, const char *queue)
{
    snprintf(arg, 32, "%s", queue);
}

/* A program may have written to the tables. The library makes no such queue, and reads one. */
static void a_queue_that_is_not_utf8_is_read_and_emptied_all_the_same(void **state)
{
    struct tw_store *store = store_of(state);
    struct seen seen = {.text = ""};
    struct tw_store_delayed task = {.queue = "a\xff", .id = tw_text("c"), .due_ms = 5};
    char queue[32] = "";
    uint64_t next_ms, counts[1];
    sqlite3 *db = other_open(*state);
    assert_int_equal(store_put(store, &task, 0), TW_EINVAL);
    assert_int_equal(store_pause(store, "a\xff"), TW_EINVAL);
    assert_string_equal(message(store), "queue is 'a\\xff': expected UTF-8");
    other_ask(db, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'a', 1), ('q', 'b', 2);"
                  "UPDATE tw_task SET queue = CAST(x'61ff' AS TEXT);"
                  "INSERT INTO tw_queue VALUES (CAST(x'61ff' AS TEXT), 1)");
    assert_int_equal(store_queues(store, note_queue, queue), 1);
    assert_string_equal(queue, "a\xff");
    assert_int_equal(store_scan(store, queue, NULL, see, &seen), 2);
    assert_string_equal(seen.text, "a@1 b@2");
    assert_int_equal(tw_store_get(store, tw_store_named(queue, "a"), see, &seen), 0);
    assert_int_equal(store_count(store, queue, false), 2);
    assert_int_equal(tw_store_next(store, queue, &next_ms), 0);
    assert_int_equal(tw_store_forecast(store, queue, 1000, 1, counts), 0);
    assert_int_equal(store_is_paused(store, queue), 1);
    assert_int_equal(store_resume(store, queue), 1);
    assert_int_equal(store_move_at(store, tw_store_named(queue, "a"), 3, 0), 1);
    assert_int_equal(tw_store_cancel(store, tw_store_named(queue, "b"), NULL), 0);
    other_ask(db, "UPDATE tw_task SET dead_ms = 1");
    assert_int_equal(store_replay(store, all_of(queue), 7), 1);
    assert_int_equal(tw_store_cancel(store, tw_store_named(queue, "a"), NULL), 0);
    assert_int_equal(store_purge(store, all_of(queue), 1), 0);
    assert_int_equal(store_queues(store, note_queue, queue), 0);
    sqlite3_close(db);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

/* The clock stands at the beginning of 1970, so small due times lie ahead. */
int main(void)
{
    clock_stop(1);
    static const struct CMUnitTest tests[] = {
        TEST(a_change_commits_with_the_row_of_the_caller),
        TEST(a_rollback_takes_the_change_back),
        TEST(the_file_may_be_attached_under_any_name),
        TEST(an_error_leaves_the_transaction_of_the_caller),
        TEST(a_change_that_the_connection_forbids_is_an_error),
        TEST(many_puts_keep_to_the_variables_of_the_connection),
        TEST(revisions_that_are_used_up_are_an_error),
        TEST(no_two_tasks_get_one_number),
        TEST(an_interrupted_call_has_changed_nothing_or_says_so),
        TEST(a_copy_in_memory_is_changed_too),
        TEST(the_last_rowid_of_the_caller_stays),
        TEST(a_failure_in_the_middle_takes_back_the_call_alone),
        TEST(a_caller_with_the_write_lock_is_told),
        TEST(a_lock_that_hinders_the_caller_is_explained),
        TEST(plain_sql_puts_moves_and_cancels),
        TEST(the_conflict_clause_of_the_caller_changes_nothing),
        TEST(conditions_in_sql),
        TEST(keepdue_in_sql_is_as_in_c),
        TEST(bad_numbers_of_the_file_are_refused),
        TEST(bad_values_in_sql_are_named_with_their_range),
        TEST(bad_values_of_the_other_views_are_named),
        TEST(a_pause_in_sql_is_as_in_c),
        TEST(the_borders_of_the_ranges_are_taken),
        TEST(rows_that_are_no_tasks_are_refused),
        TEST(a_statement_with_one_bad_row_changes_nothing),
        TEST(queues_with_equal_ids_do_not_meet),
        TEST(conditions_on_a_dead_task),
        TEST(the_list_for_people),
        TEST(the_list_has_each_id_as_text),
        TEST(the_list_has_a_queue_that_is_no_text_as_a_blob),
        TEST(each_payload_is_a_blob),
        TEST(a_queue_that_is_not_utf8_is_read_and_emptied_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
