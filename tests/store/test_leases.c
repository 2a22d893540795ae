/* SPDX-License-Identifier: MIT
 *
 * Tasks that other programs take in SQL (tw_take), beside the calls of the library and a run of the file. The
 * contract's test tries the SQL itself (tests/contract), and test_workers its crowds.
 */
#include "clock.h"
#include "running.h"

#include <src/store/claim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <task/backoff.h>

enum { LEASE_MS = 5000, BACKOFF_MS = 1000 };

static struct tw_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

/* ---- the program ----------------------------------------------------------------------------------------- */

static char token[17]; /* of the task that was taken last */

/* Takes a task of the queue. Returns its id, "" if there was none. */
static const char *take(sqlite3 *db)
{
    static char id[64];
    static int takes;
    char sql[300];
    takes++;
    snprintf(sql, sizeof sql,
             "INSERT INTO tw_take(queue, take, worker, lease_ms) VALUES ('q', 'take %08d', 'w', %d);"
             "SELECT token FROM tw_taken WHERE take = 'take %08d'",
             takes, LEASE_MS, takes);
    const char *found = other_ask(db, sql);
    if (*found != '\0')
        snprintf(token, sizeof token, "%s", found);
    snprintf(sql, sizeof sql, "SELECT CAST(id AS TEXT) FROM tw_taken WHERE take = 'take %08d'", takes);
    snprintf(id, sizeof id, "%s", other_ask(db, sql));
    return id;
}

/* Inserts into tw_ack, tw_nack or tw_touch. Returns whether the token was good. */
static bool answer(sqlite3 *db, const char *view, const char *id, const char *columns, const char *values)
{
    char sql[300];
    snprintf(sql, sizeof sql, "INSERT INTO %s(queue, id, token%s) VALUES ('q', '%s', '%s'%s) RETURNING id",
             view, columns, id, token, values);
    return other_ask(db, sql)[0] != '\0';
}

static bool ack(sqlite3 *db, const char *id)
{
    return answer(db, "tw_ack", id, "", "");
}

static bool give_back(sqlite3 *db, const char *id)
{
    return answer(db, "tw_nack", id, ", how", ", 'back'");
}

/* ---- short forms ----------------------------------------------------------------------------------------- */

static void put_once(struct tw_store *store, const char *id)
{
    struct tw_store_delayed task = {.queue = "q",
                                    .id = tw_text(id),
                                    .due_ms = tw_store_now(),
                                    .backoff_ms = BACKOFF_MS,
                                    .jitter = TW_STORE_NO_JITTER};
    assert_int_equal(store_put(store, &task, 0), 1);
}

static const struct tw_store_task *get(struct tw_store *store, const char *id)
{
    static struct seen seen;
    seen = (struct seen){.text = ""};
    assert_int_equal(tw_store_get(store, tw_store_named("q", id), see, &seen), 0);
    return &seen.last;
}

static void keep_load(void *arg, const struct tw_store_load *load)
{
    *(struct tw_store_load *)arg = *load;
}

static struct tw_store_load load_of(struct tw_store *store)
{
    struct tw_store_load load = {0};
    assert_int_equal(tw_store_loads(store, "q", keep_load, &load), 0);
    return load;
}

/* ---- the statements -------------------------------------------------------------------------------------- */

static void each_column_is_checked(void **state)
{
    static const struct {
        const char *sql, *error;
    } bad[] = {
        {"tw_take(queue, take, lease_ms) VALUES (x'71', 'name of it', 5)",
         "tw_take: queue: expected text of 1 to 255 bytes without NUL"},
        {"tw_take(queue, take, lease_ms) VALUES ('q', 'short', 5)",
         "tw_take: take: expected a random name, ASCII or a blob of 8 to 255 bytes"},
        {"tw_take(queue, take, lease_ms) VALUES ('q', NULL, 5)",
         "tw_take: take: expected a random name, ASCII or a blob of 8 to 255 bytes"},
        {"tw_take(queue, take, worker, lease_ms) VALUES ('q', 'name of it', 7, 5)",
         "tw_take: worker: expected UTF-8 text of at most 255 bytes without NUL, or NULL"},
        {"tw_take(queue, take, lease_ms) VALUES ('q', 'name of \xc3\xa9', 5)",
         "tw_take: take: expected a random name, ASCII or a blob of 8 to 255 bytes"},
        {"tw_take(queue, take, lease_ms) VALUES ('q', 'name' || char(0) || 'of it', 5)",
         "tw_take: take: expected a random name, ASCII or a blob of 8 to 255 bytes"},
        {"tw_take(queue, take, worker, lease_ms) VALUES ('q', 'name of it', CAST(x'77c3' AS TEXT), 5)",
         "tw_take: worker: expected UTF-8 text of at most 255 bytes without NUL, or NULL"},
        {"tw_take(queue, take, worker, lease_ms) VALUES ('q', 'name of it', 'w' || char(0) || 'w', 5)",
         "tw_take: worker: expected UTF-8 text of at most 255 bytes without NUL, or NULL"},
        {"tw_take(queue, take) VALUES ('q', 'name of it')", "tw_take: lease_ms: expected 1 to 4294967295"},
        {"tw_take(queue, take, lease_ms) VALUES ('q', 'name of it', 4294967296)",
         "tw_take: lease_ms: expected 1 to 4294967295"},
        {"tw_take(queue, take, lease_ms, count) VALUES ('q', 'name of it', 5, 1001)",
         "tw_take: count: expected 1 to 1000"},
        {"tw_ack(queue, id, token) VALUES ('q', '', '0123456789abcdef')",
         "tw_ack: id: expected text or a blob of 1 to 1024 bytes"},
        {"tw_ack(queue, id, token) VALUES ('q', 'x', 7)",
         "tw_ack: token: expected the 16 hexadecimal digits that tw_taken shows"},
        {"tw_nack(queue, id, token) VALUES ('q', 'x', '0123456789abcdeg')",
         "tw_nack: token: expected the 16 hexadecimal digits that tw_taken shows"},
        {"tw_touch(queue, id, token, lease_ms) VALUES (NULL, 'x', '0123456789abcdef', 5)",
         "tw_touch: queue: expected text of 1 to 255 bytes without NUL"},
        {"tw_nack(queue, id, token, how) VALUES ('q', 'x', '0123456789abcdef', 'lost')",
         "tw_nack: how: expected failed, dead, back or NULL"},
        {"tw_nack(queue, id, token, how, error) VALUES ('q', 'x', '0123456789abcdef', 'back', 'no')",
         "tw_nack: error: expected NULL, as nothing has failed"},
        {"tw_nack(queue, id, token, how, next_ms) VALUES ('q', 'x', '0123456789abcdef', 'dead', 5)",
         "tw_nack: next_ms: expected NULL, as a dead task has no next attempt"},
        {"tw_nack(queue, id, token, error) VALUES ('q', 'x', '0123456789abcdef', x'00')",
         "tw_nack: error: expected text or NULL"},
        {"tw_nack(queue, id, token, next_ms) VALUES ('q', 'x', '0123456789abcdef', -1)",
         "tw_nack: next_ms: expected 0 to 253402300799999"},
        {"tw_touch(queue, id, token, lease_ms) VALUES ('q', 'x', '0123456789abcdef', 0)",
         "tw_touch: lease_ms: expected 1 to 4294967295"},
    };
    sqlite3 *db = other_open(*state);
    char sql[300];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(sql, sizeof sql, "INSERT INTO %s", bad[i].sql);
        assert_string_equal(other_refuses(db, sql), bad[i].error);
    }
    sqlite3_close(db);
}

/* Numbers may come as text, as some drivers bind them, and hexadecimal digits in capitals. */
static void values_come_in_several_forms(void **state)
{
    sqlite3 *db = other_open(*state);
    put(store_of(state), "x", 5);
    other_ask(db, "INSERT INTO tw_take VALUES ('q', x'0102030405060708', NULL, '30000', 1.0)");
    assert_string_equal(other_ask(db, "SELECT count(*) FROM tw_taken WHERE take = x'0102030405060708'"), "1");
    assert_string_equal(other_ask(db, "INSERT INTO tw_ack(queue, id, token) SELECT queue, CAST(id AS TEXT),"
                                      " upper(token) FROM tw_taken"),
                        "");
    assert_int_equal(store_count(store_of(state), "q", false), 0);
    sqlite3_close(db);
}

/* An error has at most 4096 bytes, and no part of a character. */
static void a_long_error_is_cut_between_two_characters(void **state)
{
    sqlite3 *db = other_open(*state);
    char values[200];
    for (int first = 0; first < 3; first++) { /* the character at the end has three bytes */
        put_once(store_of(state), "x");
        assert_string_equal(take(db), "x");
        snprintf(values, sizeof values,
                 ", substr('ab', 1, %d) || replace(hex(zeroblob(2000)), '0', char(8364))", first);
        assert_true(answer(db, "tw_nack", "x", ", error", values));
        assert_int_equal(atoi(other_ask(db, "SELECT length(CAST(error AS BLOB)) FROM tw_task")),
                         first + (4096 - first) / 3 * 3);
        assert_string_equal(other_ask(db, "SELECT substr(error, -1) = char(8364) FROM tw_task"), "1");
    }
    sqlite3_close(db);
}

/* A bug: a program in another language could not read the row of a task whose error was not UTF-8. */
static void an_error_that_is_not_utf8_can_be_read(void **state)
{
    static const struct {
        const char *hex, *kept;
    } errors[] = {
        {"636166e920e282ac20e282", "caf? \xe2\x82\xac ??"},
        {"c3a9", "\xc3\xa9"},
        {"f09f9880efbfbd", "\xf0\x9f\x98\x80\xef\xbf\xbd"},
        {"efbfbeefbfbf", "\xef\xbf\xbe\xef\xbf\xbf"},
        {"61c3a9a962", "a???b"},
        {"eda080", "???"},
        {"c080", "??"},
        {"f4908080", "????"},
        {"80ff", "??"},
        {"6100ff", "a"},
    };
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    char values[64];
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        put_once(store, "x");
        assert_string_equal(take(db), "x");
        snprintf(values, sizeof values, ", CAST(x'%s' AS TEXT)", errors[i].hex);
        assert_true(answer(db, "tw_nack", "x", ", error", values));
        assert_string_equal(other_ask(db, "SELECT error FROM tw_list"), errors[i].kept);
    }
    sqlite3_close(db);
}

/* A bug: such an error was lost. If no character begins near the end, it is cut at 4096 bytes, as in C. */
static void a_long_error_without_characters_is_cut(void **state)
{
    sqlite3 *db = other_open(*state);
    put_once(store_of(state), "x");
    assert_string_equal(take(db), "x");
    assert_true(
        answer(db, "tw_nack", "x", ", error", ", replace(hex(zeroblob(5000)), '00', CAST(x'80' AS TEXT))"));
    assert_string_equal(other_ask(db, "SELECT error = replace(hex(zeroblob(4096)), '00', '?') FROM tw_task"),
                        "1");
    sqlite3_close(db);
}

/* A bug: it was a text without letters. */
static void an_error_that_begins_with_nul_is_none(void **state)
{
    sqlite3 *db = other_open(*state);
    put_once(store_of(state), "x");
    assert_string_equal(take(db), "x");
    assert_true(answer(db, "tw_nack", "x", ", error", ", char(0) || 'x'"));
    assert_string_equal(other_ask(db, "SELECT error IS NULL FROM tw_task"), "1");
    sqlite3_close(db);
}

/* A take passes over at most so many tasks that have no call now, and the next one goes on. */
static void assert_passes_over(void *state, const char *options, const char *values)
{
    static const char *const ready = "SELECT count(*) FROM tw_list WHERE state = 'ready'";
    char sql[300];
    sqlite3 *db = other_open(state);
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)"
             " INSERT INTO tw_put(queue, id, due_ms, %s) SELECT 'q', i, 5, %s FROM"
             " (SELECT CAST(i AS TEXT) AS i FROM n)",
             options, values);
    other_ask(db, sql);
    put(((struct fixture *)state)->store, "good", 5);
    assert_string_equal(take(db), "");
    assert_string_equal(other_ask(db, ready), "501");
    assert_string_equal(take(db), "good");
    assert_string_equal(other_ask(db, ready), "0");
    sqlite3_close(db);
}

static void a_take_drops_a_thousand_tasks(void **state)
{
    assert_passes_over(*state, "max_late_ms", "0");
}

static void a_take_skips_the_periods_of_a_thousand_tasks(void **state)
{
    assert_passes_over(*state, "every_ms, missed", "3600000, 'skip'");
}

/* Somebody has removed the row of a task that a program has, as docs/store.md tells for damaged ones. */
static void a_lease_without_its_task_ends(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    clock_stop(0);
    put_once(store, "x");
    put_once(store, "y");
    assert_string_equal(take(db), "x");
    assert_string_equal(take(db), "y");
    other_ask(db, "DELETE FROM tw_task");
    put_once(store, "x");
    assert_string_equal(take(db), "x"); /* the new one */
    assert_true(ack(db, "x"));
    clock_pass(LEASE_MS);
    assert_string_equal(take(db), "");
    assert_string_equal(other_ask(db, "SELECT count(*) FROM tw_lease"), "0");
    sqlite3_close(db);
}

/* ---- looks ----------------------------------------------------------------------------------------------- */

static void each_look_shows_a_lease(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    uint64_t next_ms = 0, counts[2];
    clock_stop(0);
    uint64_t now_ms = tw_store_now();
    put_once(store, "x");
    put(store, "later", now_ms + 100000);
    assert_string_equal(take(db), "x");
    const struct tw_store_task *task = get(store, "x");
    assert_int_equal(task->state, TW_STATE_LEASED);
    assert_false(task->replaced);
    assert_int_equal(task->attempt, 1);
    assert_int_equal(task->next_ms, now_ms + LEASE_MS);
    struct tw_store_load load = load_of(store);
    assert_int_equal(load.tasks, 2);
    assert_int_equal(load.leased, 1);
    assert_int_equal(load.waiting, 1);
    assert_int_equal(load.ready, 0);
    assert_int_equal(load.next_ms, now_ms + 100000);
    assert_int_equal(store_count(store, "q", false), 2);
    assert_int_equal(tw_store_next(store, "q", &next_ms), 0); /* of a task that waits */
    assert_int_equal(next_ms, now_ms + 100000);
    assert_int_equal(tw_store_forecast(store, "q", 60000, 2, counts), 0);
    assert_int_equal(counts[0], 0);
    assert_int_equal(counts[1], 1);
    assert_string_equal(other_ask(db, "SELECT state FROM tw_list WHERE id = 'x'"), "leased");
    assert_int_equal(store_promote(store, tw_store_named("q", "x")), 0);
    assert_true(ack(db, "x"));
    assert_false(ack(db, "x"));
    assert_int_equal(store_count(store, "q", false), 1);
    sqlite3_close(db);
}

/* A bug would be: programs that wait for a change of the file wake each other by takes without a task. */
static void a_take_without_a_task_changes_nothing(void **state)
{
    sqlite3 *db = other_open(*state), *other = other_open(*state);
    char before[40];
    clock_stop(0);
    put(store_of(state), "later", tw_store_now() + 100000);
    snprintf(before, sizeof before, "%s", other_ask(other, "PRAGMA data_version"));
    assert_string_equal(take(db), "");
    assert_string_equal(other_ask(other, "PRAGMA data_version"), before);
    clock_pass(100000);
    assert_string_equal(take(db), "later");
    assert_string_not_equal(other_ask(other, "PRAGMA data_version"), before);
    sqlite3_close(db);
    sqlite3_close(other);
}

/* ---- waits ----------------------------------------------------------------------------------------------- */

/* The statements wait as src/task does, by the token that the program has seen: after failures and lapses. */
static void each_wait_has_the_jitter_of_its_token(void **state)
{
    static const struct tw__task_retry retry = {
        .tries = 20, .factor_percent = 150, .jitter = 33, .first_ms = 777777, .max_ms = 3600000};
    struct tw_store *store = store_of(state);
    struct tw_store_delayed task = {.queue = "q",
                                    .id = tw_text("x"),
                                    .due_ms = tw_store_now(),
                                    .backoff_ms = retry.first_ms,
                                    .factor_percent = retry.factor_percent,
                                    .jitter = retry.jitter};
    sqlite3 *db = other_open(*state);
    clock_stop(0);
    assert_int_equal(store_put(store, &task, 0), 1);
    for (uint32_t failures = 0; failures < 6;) {
        bool lapses = get(store, "x")->attempt % 2 == 1;
        assert_string_equal(take(db), "x");
        if (lapses)
            clock_pass(LEASE_MS);
        else
            assert_true(answer(db, "tw_nack", "x", ", how", ", 'failed'"));
        assert_string_equal(take(db), ""); /* ends the lease */
        uint64_t next_ms = get(store, "x")->next_ms;
        assert_int_equal(next_ms,
                         tw__task_retry_at(&retry, failures + 1, strtoull(token, NULL, 16), tw_store_now()));
        failures += !lapses;
        clock_pass(next_ms - tw_store_now());
    }
    sqlite3_close(db);
}

/* ---- changes --------------------------------------------------------------------------------------------- */

static void a_put_stands_behind_a_lease(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    clock_stop(0);
    uint64_t now_ms = tw_store_now();
    put_once(store, "x");
    assert_string_equal(take(db), "x");
    put(store, "x", now_ms + 500);
    assert_true(get(store, "x")->replaced);
    assert_int_equal(get(store, "x")->state, TW_STATE_LEASED);
    assert_int_equal(get(store, "x")->attempt, 1);
    assert_int_equal(get(store, "x")->due_ms, now_ms + 500);
    assert_int_equal(put_if(store, "x", now_ms + 400, TW_CONDITION_GT), 0);
    assert_int_equal(store_move_at(store, tw_store_named("q", "x"), now_ms + 700, 0), 1);
    assert_true(answer(db, "tw_touch", "x", ", lease_ms", ", 9000"));
    assert_int_equal(load_of(store).leased, 1);
    clock_pass(1000);
    assert_true(ack(db, "x"));
    const struct tw_store_task *task = get(store, "x");
    assert_int_equal(task->state, TW_STATE_READY);
    assert_int_equal(task->attempt, 0);
    assert_int_equal(task->due_ms, now_ms + 700);
    assert_int_equal(task->next_ms, now_ms + 1000); /* the end of the attempt */
    assert_string_equal(take(db), "x");
    assert_int_equal(cancel(store, "x"), TW_CANCEL_AT_WORK);
    assert_false(ack(db, "x"));
    sqlite3_close(db);
}

/* A call finds the task as it is when the lease has run out. */
static void a_lease_lapses_before_a_change(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    clock_stop(0);
    uint64_t now_ms = tw_store_now();
    for (const char *id = "a\0b\0c\0d\0e\0f\0"; *id != '\0'; id += 2) {
        put_once(store, id);
        assert_string_equal(take(db), id);
    }
    clock_pass(LEASE_MS);
    assert_int_equal(get(store, "a")->state, TW_STATE_LEASED); /* a look changes nothing */
    put_if(store, "a", now_ms + 90000, TW_CONDITION_KEEPDUE);
    assert_int_equal(get(store, "a")->next_ms, now_ms + LEASE_MS + BACKOFF_MS);
    assert_int_equal(get(store, "a")->lapses, 1);
    put(store, "b", now_ms + 90000);
    assert_false(get(store, "b")->replaced);
    assert_int_equal(get(store, "b")->lapses, 0);
    store_move_at(store, tw_store_named("q", "c"), now_ms + 90000, 0);
    assert_false(get(store, "c")->replaced);
    assert_int_equal(cancel(store, "d"), TW_CANCEL_CANCELLED);
    assert_int_equal(store_promote(store, tw_store_named("q", "e")), 1);
    assert_int_equal(get(store, "e")->state, TW_STATE_READY);
    assert_int_equal(get(store, "f")->state, TW_STATE_LEASED);
    assert_int_equal(store_promote(store, all_of("q")), 4);
    assert_int_equal(get(store, "f")->state, TW_STATE_READY);
    assert_true(ack(db, "f")); /* a late acknowledgement */
    sqlite3_close(db);
}

/* So does the last lease of a task that dies of it, before it is replayed. */
static void a_task_that_dies_of_its_lapse_is_replayed(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    clock_stop(0);
    put_once(store, "x");
    assert_string_equal(take(db), "x");
    other_ask(db, "UPDATE tw_task SET attempt = 17, lapses = 16");
    assert_string_equal(other_ask(db, "INSERT INTO tw_replay(queue, id) VALUES ('q', 'x') RETURNING id"), "");
    clock_pass(LEASE_MS);
    assert_string_equal(other_ask(db, "INSERT INTO tw_replay(queue, id, due_ms)"
                                      " VALUES ('q', 'x', '1900000000000') RETURNING id"),
                        "x");
    const struct tw_store_task *task = get(store, "x");
    assert_int_equal(task->state, TW_STATE_WAITING);
    assert_int_equal(task->due_ms, 1900000000000);
    assert_int_equal(task->attempt + task->lapses, 0);
    assert_null(task->error);
    sqlite3_close(db);
}

/* A bug: the name of a dead period is longer than a put allows, so SQL could not replay it. */
static void a_dead_period_with_a_long_name_is_replayed(void **state)
{
#define DEATH                                                                                                  \
    "INSERT INTO tw_take(queue, take, lease_ms) VALUES ('q', 'name of it', 60000);"                            \
    "INSERT INTO tw_nack(queue, id, token, how) SELECT queue, id, token, 'dead' FROM tw_taken;"                \
    "SELECT count(*) FROM tw_task WHERE dead_ms IS NOT NULL AND length(id) > 960"
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    uint64_t count = 0;
    clock_stop(0);
    other_ask(db, "INSERT INTO tw_put(queue, id, due_ms, every_ms) VALUES ('q', hex(zeroblob(480)), 5, 60000)");
    assert_string_equal(other_ask(db, DEATH), "1");
    assert_string_equal(other_ask(db, "INSERT INTO tw_replay(queue, id) SELECT queue, id FROM tw_task"
                                      " WHERE dead_ms IS NOT NULL RETURNING length(id) > 960"),
                        "1");
    other_ask(db, "DELETE FROM tw_task WHERE every_ms > 0");
    assert_string_equal(other_ask(db, DEATH), "1");
    assert_int_equal(tw_store_replay(store, all_of("q"), 5, &count), 0);
    assert_int_equal(count, 1);
    sqlite3_close(db);
#undef DEATH
}

/* The numbers of the library and those of the statements are one row of numbers. */
static void a_lapse_draws_its_number_among_others(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    clock_stop(0);
    put_once(store, "x");
    assert_string_equal(take(db), "x");
    clock_pass(LEASE_MS);
    struct tw_store_change changes[3] = {0};
    for (int i = 0; i < 3; i++)
        changes[i].task =
            (struct tw_store_delayed){.queue = "q", .id = tw_text((const char *[]){"a", "x", "b"}[i])};
    changes[1].conditions = TW_CONDITION_KEEPDUE;
    assert_int_equal(tw_store_apply(store, changes, 3), 0);
    assert_string_equal(other_ask(db, "SELECT group_concat(CAST(id AS TEXT), '') FROM"
                                      " (SELECT id FROM tw_task ORDER BY revision)"),
                        "axb");
    assert_string_equal(other_ask(db, "SELECT (SELECT max(revision) FROM tw_task) = revision FROM tw_meta"),
                        "1");
    sqlite3_close(db);
}

/* ---- a run ----------------------------------------------------------------------------------------------- */

static void a_run_leaves_leased_tasks_alone(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    struct calls calls;
    calls_init(&calls);
    clock_stop(0);
    put_once(store, "x");
    assert_string_equal(take(db), "x");
    start_with(store, &calls);
    put_once(store, "y");
    wait_for_calls(&calls, 1);
    clock_pass(LEASE_MS - 1);
    runner_idle(store);
    assert_string_equal(calls.text, "y/1");
    assert_true(answer(db, "tw_touch", "x", ", lease_ms", ", 5000"));
    runner_idle(store);
    clock_pass(LEASE_MS - 1);
    runner_idle(store);
    assert_int_equal(calls_of(&calls), 1);
    assert_true(ack(db, "x"));
    wait_for_answers(store, 1);
    assert_int_equal(store_count(store, "q", false), 0);
    sqlite3_close(db);
}

/* The run wakes when the lease has run out, and calls the handler after the backoff. */
static void a_run_ends_a_lease_and_calls_the_next_attempt(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    struct calls calls;
    calls_init(&calls);
    clock_stop(0);
    uint64_t now_ms = tw_store_now();
    put_once(store, "x");
    assert_string_equal(take(db), "x");
    start_with(store, &calls);
    runner_idle(store);
    clock_pass(LEASE_MS);
    EVENTUALLY(stats_of(store).lapsed == 1);
    assert_int_equal(get(store, "x")->state, TW_STATE_WAITING);
    assert_int_equal(get(store, "x")->next_ms, now_ms + LEASE_MS + BACKOFF_MS);
    runner_idle(store);
    clock_pass(BACKOFF_MS);
    wait_for_calls(&calls, 1);
    assert_string_equal(calls.text, "x/2");
    assert_string_equal(calls.last_error, "the lease ran out");
    wait_for_answers(store, 1);
    assert_false(ack(db, "x"));
    sqlite3_close(db);
}

/* So it does with an attempt that was replaced. */
static void a_run_ends_a_lease_and_calls_the_newer_task(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    struct calls calls;
    calls_init(&calls);
    clock_stop(0);
    put_once(store, "x");
    assert_string_equal(take(db), "x");
    start_with(store, &calls);
    put_once(store, "x");
    runner_idle(store);
    assert_int_equal(calls_of(&calls), 0);
    clock_pass(LEASE_MS);
    wait_for_calls(&calls, 1);
    assert_string_equal(calls.text, "x/1");
    assert_int_equal(calls.last.lapses, 0);
    sqlite3_close(db);
}

/* A task that was given back has its old number. The run finds it all the same, at its old place. */
static void a_run_finds_a_task_that_was_given_back(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    struct calls calls;
    calls_init(&calls);
    clock_stop(0);
    put_once(store, "x");
    assert_string_equal(take(db), "x");
    start_with(store, &calls);
    runner_idle(store);
    assert_true(give_back(db, "x"));
    runner_idle(store);
    wait_for_calls(&calls, 1);
    assert_string_equal(calls.text, "x/1");
    sqlite3_close(db);
}

/* The run has loaded the task before a program takes it and gives it back: one task, two entries, one call. */
static void a_task_that_comes_back_is_called_once(void **state)
{
    struct tw_store *store = store_of(state);
    struct tw_store_run_options one = {.workers = 1};
    sqlite3 *db = other_open(*state);
    struct calls calls;
    calls_init(&calls);
    calls.block = true;
    clock_stop(0);
    assert_int_equal(tw_store_handle(store, "q", 1, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, &one), 0);
    put_once(store, "first");
    wait_for_calls(&calls, 1);
    put_once(store, "x");
    put_once(store, "y");
    runner_idle(store);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(take(db), "x");
        assert_true(give_back(db, "x"));
        runner_idle(store);
    }
    unblock(&calls);
    wait_for_calls(&calls, 3);
    wait_for_answers(store, 3);
    runner_idle(store);
    assert_string_equal(calls.text, "first/1 x/1 y/1");
    sqlite3_close(db);
}

static int64_t until(sqlite3 *db)
{
    return atoll(other_ask(db, "SELECT until_ms FROM tw_meta"));
}

/* Programs cannot see the lock of a run. So the run says for how long it is alive, while it has jobs. */
static void a_run_says_that_it_is_alive(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    struct calls calls;
    calls_init(&calls);
    calls.block = true;
    clock_stop(0);
    start_with(store, &calls);
    clock_pass(TW__STORE_ALIVE_MS);
    int64_t until_ms = (int64_t)tw_store_now() + TW__STORE_ALIVE_MS;
    put_once(store, "x");
    wait_for_calls(&calls, 1);
    runner_idle(store);
    assert_int_equal(until(db), until_ms);
    clock_pass(TW__STORE_ALIVE_MS - TW__STORE_RENEW_MS - 1);
    runner_round(store);
    assert_int_equal(until(db), until_ms);
    clock_pass(1);
    EVENTUALLY(until(db) == (int64_t)tw_store_now() + TW__STORE_ALIVE_MS);
    assert_string_equal(take(db), "");
    assert_int_equal(get(store, "x")->state, TW_STATE_LEASED);
    for (int64_t step_ms = -100000; step_ms <= 200000; step_ms += 300000) {
        clock_step(step_ms);
        runner_idle(store);
        EVENTUALLY(until(db) == (int64_t)tw_store_now() + TW__STORE_ALIVE_MS);
        assert_int_equal(atoll(other_ask(db, "SELECT clock_ms FROM tw_meta")), tw_store_now());
        assert_string_equal(take(db), "");
        assert_int_equal(get(store, "x")->state, TW_STATE_LEASED);
    }
    unblock(&calls);
    wait_for_answers(store, 1);
    sqlite3_close(db);
}

/* A run that was stopped for longer has lost its attempts. Its answers leave the tasks as they are. */
static void the_attempts_of_a_silent_run_are_ended_by_a_take(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    struct calls calls;
    calls_init(&calls);
    calls.block = true;
    clock_stop(0);
    start_with(store, &calls);
    put_once(store, "x");
    wait_for_calls(&calls, 1);
    runner_idle(store);
    runner_look_away(true);
    other_ask(db, "UPDATE tw_meta SET until_ms = 0"); /* nobody has said anything for a long time */
    assert_string_equal(take(db), "");
    const struct tw_store_task *task = get(store, "x");
    assert_int_equal(task->state, TW_STATE_WAITING);
    assert_int_equal(task->lapses, 1);
    other_ask(db, "UPDATE tw_task SET next_ms = due_ms, place_ms = due_ms");
    assert_string_equal(take(db), "x");
    unblock(&calls);
    wait_for_answers(store, 1);
    runner_idle(store);
    assert_int_equal(get(store, "x")->state, TW_STATE_LEASED);
    assert_int_equal(get(store, "x")->attempt, 2);
    assert_true(ack(db, "x"));
    sqlite3_close(db);
}

static int deaths; /* that were told; the runner's thread writes it, and the test reads it after the stop */

static void hear(void *arg, int error, const char *news)
{
    (void)arg;
    (void)news;
    deaths += error == TW_EDEAD;
}

static void the_seventeenth_lapse_is_told_as_a_death(void **state)
{
    struct tw_store *store = store_of(state);
    struct tw_store_run_options options = {.on_error = hear};
    sqlite3 *db = other_open(*state);
    struct calls calls;
    calls_init(&calls);
    clock_stop(0);
    deaths = 0;
    put_once(store, "x");
    other_ask(db, "UPDATE tw_task SET attempt = 16, lapses = 16");
    assert_string_equal(take(db), "x");
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, &options), 0);
    runner_idle(store);
    clock_pass(LEASE_MS);
    runner_idle(store);
    assert_int_equal(get(store, "x")->state, TW_STATE_DEAD);
    assert_int_equal(stats_of(store).died, 1);
    assert_int_equal(stats_of(store).lapsed, 1);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(deaths, 1);
    assert_false(ack(db, "x"));
    sqlite3_close(db);
}

/* The clock is set back by an hour: no lease is longer than it was made. */
static void a_lease_does_not_grow_when_the_clock_goes_back(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    struct calls calls;
    calls_init(&calls);
    clock_stop(0);
    put_once(store, "x");
    put_once(store, "y");
    assert_string_equal(take(db), "x");
    clock_step(-3600000);
    assert_string_equal(take(db), ""); /* y waits again */
    assert_int_equal(get(store, "x")->next_ms, tw_store_now() + LEASE_MS);
    clock_step(-3600000);
    start_with(store, &calls);
    runner_idle(store);
    assert_int_equal(get(store, "x")->next_ms, tw_store_now() + LEASE_MS);
    assert_int_equal(calls_of(&calls), 0);
    assert_int_equal(tw_store_stop(store), 0); /* it would take the task before the look */
    assert_true(give_back(db, "x"));
    assert_int_equal(get(store, "x")->state, TW_STATE_READY);
    assert_int_equal(get(store, "x")->next_ms, tw_store_now());
    sqlite3_close(db);
}

/* A touch is later than all filing, and the clock is set back to a time between both. */
static void a_touched_lease_does_not_grow_when_the_clock_goes_back(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    clock_stop(0);
    put_once(store, "x");
    assert_string_equal(take(db), "x");
    clock_pass(LEASE_MS - 1);
    assert_true(answer(db, "tw_touch", "x", ", lease_ms", ", 5000"));
    clock_step(-1000);
    assert_string_equal(take(db), "");
    assert_int_equal(get(store, "x")->next_ms, tw_store_now() + LEASE_MS);
    sqlite3_close(db);
}

/* The clock is set back by an hour while a task waits behind a lease: it comes when the attempt ends. */
static void a_task_behind_a_lease_does_not_wait_for_the_old_clock(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    clock_stop(0);
    put_once(store, "x");
    assert_string_equal(take(db), "x");
    put(store, "x", 5);
    clock_step(-3600000);
    assert_string_equal(take(db), "");
    assert_true(ack(db, "x"));
    assert_string_equal(take(db), "x");
    put(store, "x", 5);
    clock_step(-3600000);
    assert_true(answer(db, "tw_nack", "x", ", how", ", 'failed'"));
    assert_string_equal(take(db), "x");
    sqlite3_close(db);
}

/* The time of its period is later than its old place, and the clock is set back to a time between both. */
static void a_task_that_was_given_back_is_ready_though_the_clock_has_gone_back(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    clock_stop(0);
    uint64_t now_ms = tw_store_now();
    struct tw_store_delayed task = {.queue = "q",
                                    .id = tw_text("x"),
                                    .due_ms = now_ms,
                                    .every_ms = 1000,
                                    .missed = TW_MISSED_BURST,
                                    .max_late_ms = 500};
    assert_int_equal(store_put(store, &task, 0), 1);
    clock_pass(20000);
    assert_string_equal(take(db), "x");
    clock_step(-10000);
    assert_true(give_back(db, "x"));
    assert_int_equal(get(store, "x")->state, TW_STATE_READY);
    assert_int_equal(get(store, "x")->next_ms, tw_store_now());
    assert_string_equal(take(db), "x");
    assert_int_equal(get(store, "x")->due_ms, now_ms + 20000);
    sqlite3_close(db);
}

/* A run was killed, and then the clock is set back by an hour. */
static void the_attempts_of_a_dead_run_end_though_the_clock_goes_back(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    clock_stop(0);
    put_once(store, "x");
    other_ask(db, "UPDATE tw_task SET run = 1, attempt = 1, token = 7");
    other_ask(db, "UPDATE tw_meta SET run = 1, until_ms = clock_ms + 30000");
    assert_string_equal(take(db), "");
    clock_step(-3600000);
    assert_string_equal(take(db), "");
    clock_pass(TW__STORE_ALIVE_MS - 1);
    assert_string_equal(take(db), "");
    assert_int_equal(get(store, "x")->lapses, 0);
    clock_pass(1);
    assert_string_equal(take(db), "");
    assert_int_equal(get(store, "x")->lapses, 1);
    sqlite3_close(db);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, clock_teardown)

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        TEST(each_column_is_checked),
        TEST(values_come_in_several_forms),
        TEST(a_long_error_is_cut_between_two_characters),
        TEST(an_error_that_is_not_utf8_can_be_read),
        TEST(a_long_error_without_characters_is_cut),
        TEST(an_error_that_begins_with_nul_is_none),
        TEST(a_take_drops_a_thousand_tasks),
        TEST(a_take_skips_the_periods_of_a_thousand_tasks),
        TEST(a_lease_without_its_task_ends),
        TEST(each_look_shows_a_lease),
        TEST(a_take_without_a_task_changes_nothing),
        TEST(each_wait_has_the_jitter_of_its_token),
        TEST(a_put_stands_behind_a_lease),
        TEST(a_lease_lapses_before_a_change),
        TEST(a_task_that_dies_of_its_lapse_is_replayed),
        TEST(a_dead_period_with_a_long_name_is_replayed),
        TEST(a_lapse_draws_its_number_among_others),
        TEST(a_run_leaves_leased_tasks_alone),
        TEST(a_run_ends_a_lease_and_calls_the_next_attempt),
        TEST(a_run_ends_a_lease_and_calls_the_newer_task),
        TEST(a_run_finds_a_task_that_was_given_back),
        TEST(a_task_that_comes_back_is_called_once),
        TEST(a_run_says_that_it_is_alive),
        TEST(the_attempts_of_a_silent_run_are_ended_by_a_take),
        TEST(the_seventeenth_lapse_is_told_as_a_death),
        TEST(a_lease_does_not_grow_when_the_clock_goes_back),
        TEST(a_touched_lease_does_not_grow_when_the_clock_goes_back),
        TEST(a_task_behind_a_lease_does_not_wait_for_the_old_clock),
        TEST(a_task_that_was_given_back_is_ready_though_the_clock_has_gone_back),
        TEST(the_attempts_of_a_dead_run_end_though_the_clock_goes_back),
    };
    (void)argc;
    choose_tests(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
