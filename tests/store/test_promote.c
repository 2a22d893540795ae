/* SPDX-License-Identifier: MIT
 *
 * Promote: which tasks it takes, in which order, and when a run calls them.
 */
#include "clock.h"
#include "running.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tw_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

static int64_t promote(struct tw_store *store, const char *id)
{
    return store_promote(store, tw_store_named("q", id));
}

static int64_t promote_all(struct tw_store *store)
{
    return store_promote(store, all_of("q"));
}

/* Promotes a task, or all if the id is NULL. Returns how many were promoted. */
typedef int64_t promote_fn(struct tw_store *store, sqlite3 *db, const char *id);

static int64_t promote_by_call(struct tw_store *store, sqlite3 *db, const char *id)
{
    (void)db;
    return id != NULL ? promote(store, id) : promote_all(store);
}

/* Each promoted task has a new number. */
static int64_t promote_by_view(struct tw_store *store, sqlite3 *db, const char *id)
{
    static const char *const all =
        "INSERT INTO tw_promote(queue, id) SELECT queue, id FROM tw_look WHERE queue = 'q'"
        " AND state = 'waiting' ORDER BY place_ms, revision LIMIT 10000 RETURNING 1";
    char one[200];
    (void)store;
    snprintf(one, sizeof one, "INSERT INTO tw_promote(queue, id) VALUES ('q', '%s') RETURNING 1",
             id != NULL ? id : "");
    int64_t before = atoll(other_ask(db, "SELECT revision FROM tw_meta"));
    bool found = *other_ask(db, id != NULL ? one : all) != '\0';
    int64_t count = atoll(other_ask(db, "SELECT revision FROM tw_meta")) - before;
    assert_int_equal(found, count > 0);
    return count;
}

/* ---- the table ------------------------------------------------------------------------------------------- */

/* The states that only a runner makes are written by hand. */
static void make_states(struct tw_store *store, sqlite3 *db)
{
    static const char *const ids[] = {"ready", "leased",  "behind", "retry", "lapsed",
                                      "dead",  "waiting", "held",   "over"};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        put(store, ids[i], 100 - i);
    store_move_at(store, tw_store_named("q", "ready"), 40, 0);
    other_ask(db, "UPDATE tw_meta SET run = 5;"
                  "UPDATE tw_task SET run = 5, token = 55, attempt = 1 WHERE id = CAST('leased' AS BLOB);"
                  "UPDATE tw_task SET run = 5, token = 56, replaced = 1 WHERE id = CAST('behind' AS BLOB);"
                  "UPDATE tw_task SET attempt = 2, error = 'full', due_ms = 7 WHERE id = CAST('retry' AS BLOB);"
                  "UPDATE tw_task SET attempt = 1, run = 4, token = 44 WHERE id = CAST('lapsed' AS BLOB);"
                  "UPDATE tw_task SET attempt = 1, dead_ms = 9 WHERE id = CAST('dead' AS BLOB);"
                  "UPDATE tw_task SET replaced = -1, attempt = 1, token = due_ms,"
                  " place_ms = CASE due_ms WHEN 93 THEN 900 ELSE 49 END"
                  " WHERE id IN (CAST('held' AS BLOB), CAST('over' AS BLOB));"
                  "INSERT INTO tw_lease SELECT queue, id, place_ms, 9, due_ms, 'of a test', 'w' FROM tw_task"
                  " WHERE replaced < 0");
    clock_stop(50);
}

static const char *const all_but_waiting =
    "SELECT group_concat(CAST(id AS TEXT) || next_ms || place_ms || revision)"
    " FROM (SELECT * FROM tw_task WHERE next_ms <> 50 ORDER BY revision)";

/* A lease that has run out lapses before, and its task is a retry. */
static void waiting_tasks_alone_are_promoted(void **state, promote_fn *by)
{
    static const char *const others[] = {"ready", "leased", "behind", "dead", "missing", "held"};
    struct tw_store *store = store_of(state);
    struct seen before = {.text = ""}, after = {.text = ""};
    sqlite3 *db = other_open(*state);
    char old[512];
    make_states(store, db);
    assert_int_equal(tw_store_get(store, tw_store_named("q", "retry"), see, &before), 0);
    snprintf(old, sizeof old, "%s", other_ask(db, all_but_waiting));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(by(store, db, others[i]), 0);
    assert_string_equal(other_ask(db, all_but_waiting), old);
    assert_int_equal(by(store, db, "retry"), 1);
    assert_int_equal(by(store, db, "retry"), 0); /* it is ready */
    assert_true(by(store, db, "over") > 0);
    store_reopen(*state);
    store = store_of(state);
    assert_int_equal(tw_store_get(store, tw_store_named("q", "retry"), see, &after), 0);
    assert_int_equal(after.last.state, TW_STATE_READY);
    assert_int_equal(after.last.due_ms, 7);
    assert_int_equal(after.last.next_ms, 50);
    assert_int_equal(after.last.place_ms, 50);
    assert_int_equal(after.last.attempt, 2);
    assert_string_equal(after.error, "full");
    assert_true(after.last.revision > before.last.revision);
    assert_int_equal(by(store, db, NULL), 2); /* the earliest first */
    assert_int_equal(by(store, db, NULL), 0);
    assert_string_equal(other_ask(db, "SELECT group_concat(CAST(id AS TEXT) || due_ms || ' ' || token) FROM"
                                      " (SELECT * FROM tw_task WHERE next_ms = 50 ORDER BY revision)"),
                        "retry7 0,over92 92,waiting94 0,lapsed96 44");
    assert_string_equal(other_ask(db, "SELECT group_concat(CAST(id AS TEXT)) FROM"
                                      " (SELECT * FROM tw_task WHERE next_ms <> 50 ORDER BY id)"),
                        "behind,dead,held,leased,ready");
    assert_string_equal(other_ask(db, "SELECT lapses || error FROM tw_look WHERE lapses > 0"),
                        "1the lease ran out");
    clock_stop(1);
    sqlite3_close(db);
}

static void waiting_tasks_alone_are_promoted_by_a_call(void **state)
{
    waiting_tasks_alone_are_promoted(state, promote_by_call);
}

static void waiting_tasks_alone_are_promoted_by_the_view(void **state)
{
    waiting_tasks_alone_are_promoted(state, promote_by_view);
}

/* A call takes the first ten thousand. */
static void a_call_promotes_ten_thousand_tasks_at_most(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    other_ask(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10300)"
                  " INSERT INTO tw_put(queue, id, due_ms) SELECT 'q', CAST(i AS TEXT), 20000 - i FROM n;"
                  "INSERT INTO tw_put(queue, id, due_ms) VALUES ('p', 'other', 20)");
    assert_int_equal(promote_all(store), TW_STORE_ALL_MAX);
    assert_string_equal(other_ask(db, "SELECT min(due_ms) || ' ' || max(due_ms) || ' ' || count(*) FROM tw_task"
                                      " WHERE next_ms = 1 AND place_ms = 1"),
                        "9700 19699 10000");
    assert_string_equal(other_ask(db,
                                  "SELECT count(*) FROM tw_task AS one JOIN tw_task AS two"
                                  " ON two.revision = one.revision + 1 AND two.next_ms = 1 AND one.next_ms = 1"
                                  " WHERE two.due_ms = one.due_ms + 1"),
                        "9999");
    assert_int_equal(promote_all(store), 300);
    assert_int_equal(promote_all(store), 0);
    assert_string_equal(other_ask(db, "SELECT next_ms FROM tw_task WHERE queue = 'p'"), "20");
    sqlite3_close(db);
}

static void bad_names_are_refused(void **state)
{
    struct tw_store *store = store_of(state);
    assert_int_equal(promote(store, ""), TW_EINVAL);
    assert_string_equal(message(store), "id has 0 bytes: expected 1 to 1024");
    assert_int_equal(store_promote(store, all_of("")), TW_EINVAL);
    assert_string_equal(message(store), "queue has 0 bytes: expected 1 to 255");
    assert_int_equal(promote(store, "nobody"), 0);
    assert_int_equal(promote_all(store), 0);
}

/* ---- a run ----------------------------------------------------------------------------------------------- */

/* The one is loaded, and the other lies beyond the window. Their old times come later, and call nobody. */
static void a_run_calls_promoted_tasks_at_once(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    clock_stop(0);
    put(store, "far", tw_store_now() + 7200000);
    put(store, "near", tw_store_now() + 60000);
    assert_int_equal(tw_store_handle(store, "q", 1, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, NULL), 0);
    runner_idle(store);
    assert_int_equal(stats_of(store).loaded, 1);
    assert_int_equal(promote_all(store), 2);
    assert_string_equal(wait_for_calls(&calls, 2), "near/1 far/1");
    wait_for_answers(store, 2);
    runner_idle(store);
    clock_pass(8000000);
    runner_idle(store);
    assert_int_equal(attempts(store), 2);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(store_count(store, "q", false), 0);
}

static void a_promoted_retry_has_its_next_attempt_now(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    calls.answer = TW_ANSWER_FAILED;
    calls.answers = 1;
    calls.error = "broke";
    clock_stop(0);
    uint64_t due_ms = tw_store_now();
    struct tw_store_delayed series = {
        .queue = "q", .id = tw_text("x"), .due_ms = due_ms, .every_ms = 5000, .backoff_ms = 3600000};
    assert_int_equal(store_put(store, &series, 0), 1);
    start_with(store, &calls);
    wait_for_answers(store, 1);
    runner_idle(store);
    assert_int_equal(store_pause(store, "q"), 1);
    assert_int_equal(promote(store, "x"), 1);
    runner_idle(store);
    assert_int_equal(attempts(store), 1); /* a pause holds */
    assert_int_equal(store_resume(store, "q"), 1);
    wait_for_answers(store, 2);
    assert_string_equal(calls.text, "x/1 x/2");
    assert_string_equal(calls.last_error, "broke");
    assert_int_equal(calls.last.due_ms, due_ms);
    runner_idle(store);
    assert_int_equal(promote_all(store), 1); /* the next period, before its time */
    wait_for_answers(store, 3);
    assert_int_equal(calls.last.due_ms, due_ms + 5000);
    assert_int_equal(calls.last.late_ms, 0);
    assert_int_equal(tw_store_stop(store), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
#define TEST_RUN(name) cmocka_unit_test_setup_teardown(name, store_setup, clock_teardown)

/* The clock stands at the beginning of 1970, so small due times lie ahead. */
int main(void)
{
    clock_stop(1);
    static const struct CMUnitTest tests[] = {
        TEST(waiting_tasks_alone_are_promoted_by_a_call), TEST(waiting_tasks_alone_are_promoted_by_the_view),
        TEST(a_call_promotes_ten_thousand_tasks_at_most), TEST(bad_names_are_refused),
        TEST_RUN(a_run_calls_promoted_tasks_at_once),     TEST_RUN(a_promoted_retry_has_its_next_attempt_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
