/* SPDX-License-Identifier: MIT
 *
 * Each write of ours raises `changes` of tw_meta: through the views, by the calls of the library, and by a run.
 * By that number a run sees that a backup was restored (test_restore.c).
 */
#include "clock.h"
#include "running.h"

#include <stdio.h>
#include <stdlib.h>

enum { SOON_MS = 1000, HOUR_MS = 3600000 };

static uint64_t changes_of(sqlite3 *db)
{
    return strtoull(other_ask(db, "SELECT changes FROM tw_meta"), NULL, 10);
}

/* Requires that `changes` has risen since it was read, and reads it again. */
static void expect_more(uint64_t *changes, sqlite3 *db, const char *write)
{
    uint64_t before = *changes;
    *changes = changes_of(db);
    if (*changes <= before)
        fail_msg("%s: changes is %llu, as before", write, (unsigned long long)*changes);
}

/* ---- views and calls ------------------------------------------------------------------------------------- */

/* A waiting task, a leased one, a dead one, and a queue that is paused. Nobody runs them. */
static const char *const some_tasks =
    "DELETE FROM tw_task; DELETE FROM tw_queue;"
    "INSERT INTO tw_put(queue, id, due_ms, every_ms) VALUES ('q', 'waiting', 4102444800000, 60000),"
    " ('q', 'leased', 5, NULL), ('q', 'dead', 5, NULL);"
    "INSERT INTO tw_queue(name, paused) VALUES ('paused', 1);"
    "UPDATE tw_meta SET run = 5;"
    "UPDATE tw_task SET run = 5, token = 55, attempt = 1 WHERE id = x'6c6561736564';"
    "UPDATE tw_task SET attempt = 1, dead_ms = 9 WHERE id = x'64656164'";

struct writer {
    struct tw_store *store;
    sqlite3 *db;
};

/* Each returns how many tasks or queues were changed. */
static int64_t call_put(const struct writer *writer)
{
    return put(writer->store, "new", 5);
}

static int64_t call_keepdue(const struct writer *writer)
{
    return put_if(writer->store, "waiting", 5, TW_CONDITION_KEEPDUE);
}

static int64_t call_move(const struct writer *writer)
{
    return store_move_at(writer->store, tw_store_named("q", "waiting"), 5, 0);
}

static int64_t call_cancel(const struct writer *writer)
{
    return cancel(writer->store, "waiting") == TW_CANCEL_CANCELLED;
}

static int64_t call_cancel_of_a_leased_task(const struct writer *writer)
{
    return cancel(writer->store, "leased") == TW_CANCEL_AT_WORK;
}

static int64_t call_apply_on(const struct writer *writer)
{
    struct tw_store_change change = {.verb = TW_STORE_VERB_CANCEL,
                                     .task = {.queue = "q", .id = tw_text("dead")}};
    return tw_store_apply_on(writer->db, NULL, &change, 1, NULL, 0) == 0 &&
           outcome_of(&change) == TW_CANCEL_CANCELLED;
}

static int64_t call_pause(const struct writer *writer)
{
    return store_pause(writer->store, "q");
}

static int64_t call_resume(const struct writer *writer)
{
    return store_resume(writer->store, "paused");
}

static int64_t call_mark(const struct writer *writer)
{
    return store_restored(writer->store, true);
}

static int64_t call_unmark(const struct writer *writer)
{
    return store_restored(writer->store, false);
}

static int64_t call_replay(const struct writer *writer)
{
    return store_replay(writer->store, all_of("q"), 5);
}

static int64_t call_promote(const struct writer *writer)
{
    return store_promote(writer->store, all_of("q"));
}

static int64_t call_purge(const struct writer *writer)
{
    return store_purge(writer->store, all_of("q"), UINT64_MAX >> 1);
}

/* A bug: without `changes` of a cancel in SQL all tests passed. */
static void each_view_and_each_call_raises_changes(void **state)
{
    static const struct {
        const char *name; /* SQL, if there is no call */
        int64_t (*call)(const struct writer *writer);
    } writes[] = {
        {"INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'new', 5)", NULL},
        {"INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'waiting', 5)", NULL},
        {"INSERT INTO tw_put(queue, id, due_ms, condition) VALUES ('q', 'waiting', 5, 'KEEPDUE')", NULL},
        {"INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'leased', 5)", NULL},
        {"INSERT INTO tw_move(queue, id, due_ms) VALUES ('q', 'waiting', 5)", NULL},
        {"INSERT INTO tw_cancel(queue, id) VALUES ('q', 'waiting')", NULL},
        {"INSERT INTO tw_cancel(queue, id) VALUES ('q', 'leased')", NULL},
        {"INSERT INTO tw_cancel(queue, id) VALUES ('q', 'dead')", NULL},
        {"INSERT INTO tw_promote(queue, id) VALUES ('q', 'waiting')", NULL},
        {"INSERT INTO tw_pause(queue, paused) VALUES ('q', 1)", NULL},
        {"INSERT INTO tw_pause(queue, paused) VALUES ('paused', 0)", NULL},
        {"INSERT INTO tw_replay(queue, id) VALUES ('q', 'dead')", NULL},
        {"put", call_put},
        {"put with KEEPDUE", call_keepdue},
        {"move", call_move},
        {"cancel", call_cancel},
        {"cancel of a leased task", call_cancel_of_a_leased_task},
        {"apply_on", call_apply_on},
        {"pause", call_pause},
        {"resume", call_resume},
        {"mark", call_mark},
        {"unmark", call_unmark},
        {"replay", call_replay},
        {"promote", call_promote},
        {"purge", call_purge},
    };
    struct writer writer = {((struct fixture *)*state)->store, other_open(*state)};
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        other_ask(writer.db, some_tasks);
        uint64_t changes = changes_of(writer.db);
        if (writes[i].call == NULL)
            other_ask(writer.db, writes[i].name);
        else if (writes[i].call(&writer) != 1)
            fail_msg("%s: expected 1 change: %s", writes[i].name, message(writer.store));
        expect_more(&changes, writer.db, writes[i].name);
    }
    sqlite3_close(writer.db);
}

/* ---- leases ---------------------------------------------------------------------------------------------- */

/* A bug: no test saw that a take and its answers raise `changes`. */
static void a_take_and_each_answer_in_sql_raise_changes(void **state)
{
#define TAKE "INSERT INTO tw_take(queue, take, lease_ms) VALUES ('q', 'name of it', 60000)"
#define FOUND " FROM tw_taken WHERE take = 'name of it'"
    static const char *const answers[] = {
        "INSERT INTO tw_ack(queue, id, token) SELECT queue, id, token" FOUND,
        "INSERT INTO tw_nack(queue, id, token) SELECT queue, id, token" FOUND,
        "INSERT INTO tw_nack(queue, id, token, how) SELECT queue, id, token, 'dead'" FOUND,
        "INSERT INTO tw_nack(queue, id, token, how) SELECT queue, id, token, 'back'" FOUND,
        "INSERT INTO tw_touch(queue, id, token, lease_ms) SELECT queue, id, token, 7" FOUND,
    };
    sqlite3 *db = other_open(*state);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        other_ask(db, "INSERT INTO tw_cancel(queue, id) VALUES ('q', 'a');"
                      "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'a', 5)");
        uint64_t changes = changes_of(db);
        other_ask(db, TAKE);
        expect_more(&changes, db, "a take");
        other_ask(db, TAKE); /* it has its task already */
        assert_int_equal(changes_of(db), changes);
        other_ask(db, answers[i]);
        expect_more(&changes, db, answers[i]);
    }
    other_ask(db, "INSERT INTO tw_cancel(queue, id) VALUES ('q', 'a')");
    uint64_t changes = changes_of(db);
    other_ask(db, TAKE); /* there is no task */
    assert_int_equal(changes_of(db), changes);
    other_ask(db, "UPDATE tw_meta SET clock_ms = 253402300799999");
    other_ask(db, TAKE);
    expect_more(&changes, db, "new places");
    sqlite3_close(db);
#undef TAKE
#undef FOUND
}

/* ---- runs ------------------------------------------------------------------------------------------------ */

/* The task "kept" of a run falls due, and its job waits for its answer. */
static void claim_next(struct tw_store *store, struct calls *calls)
{
    int n = kept_of(calls) + 1;
    runner_idle(store);
    clock_pass(SOON_MS);
    wait_for_calls(calls, n);
    EVENTUALLY(kept_of(calls) == n);
}

static void each_answer_of_a_run_raises_changes(void **state)
{
    static const struct {
        const char *name;
        enum tw_answer answer;
        uint64_t every_ms;
    } answers[] = {{"done", TW_ANSWER_DONE, 0},     {"done, and it repeats", TW_ANSWER_DONE, HOUR_MS},
                   {"failed", TW_ANSWER_FAILED, 0}, {"dead", TW_ANSWER_DEAD, 0},
                   {"back", TW_ANSWER_BACK, 0},     {"dead, and it repeats", TW_ANSWER_DEAD, HOUR_MS}};
    struct tw_store *store = ((struct fixture *)*state)->store;
    sqlite3 *db = other_open(*state);
    struct calls calls;
    calls_init(&calls);
    calls.answer = TW_ANSWER_LATER;
    clock_stop(0);
    start_with(store, &calls);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct tw_store_delayed task = {
            .queue = "q", .id = tw_text("kept"), .due_ms = tw_store_now() + SOON_MS};
        task.every_ms = answers[i].every_ms;
        assert_int_equal(store_put(store, &task, 0), 1);
        uint64_t changes = changes_of(db);
        claim_next(store, &calls);
        expect_more(&changes, db, "a claim");
        tw_job_retry_at(calls.kept[i], tw_store_now() + HOUR_MS);
        tw_job_answer(calls.kept[i], answers[i].answer);
        EVENTUALLY(stats_of(store).done + stats_of(store).failed + stats_of(store).back == i + 1);
        expect_more(&changes, db, answers[i].name);
    }
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* A run writes without a handler too: it ends the attempts of earlier runs, drops tasks that are too late, and
 * gives tasks new places when the clock was set back. */
static void a_run_that_calls_nothing_raises_changes(void **state)
{
    struct tw_store *store = ((struct fixture *)*state)->store;
    sqlite3 *db = other_open(*state);
    struct calls calls;
    calls_init(&calls);
    clock_stop(0);
    other_ask(db, some_tasks);
    assert_int_equal(store_pause(store, "paused"), 0);
    uint64_t changes = changes_of(db);
    start_with(store, &calls);
    runner_idle(store);
    expect_more(&changes, db, "the beginning of a run");
    struct tw_store_delayed late = {
        .queue = "q", .id = tw_text("late"), .due_ms = tw_store_now() + SOON_MS / 2, .max_late_ms = 1};
    assert_int_equal(store_put(store, &late, 0), 1);
    struct tw_store_delayed filed = {.queue = "paused", .id = tw_text("filed"), .due_ms = 5};
    assert_int_equal(store_put(store, &filed, 0), 1);
    runner_idle(store);
    changes = changes_of(db);
    clock_pass(SOON_MS / 2 + 2);
    EVENTUALLY(stats_of(store).dropped == 1);
    expect_more(&changes, db, "a drop");
    clock_step(-HOUR_MS);
    runner_idle(store);
    expect_more(&changes, db, "new places");
    assert_int_equal(calls_of(&calls), 0);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, clock_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(each_view_and_each_call_raises_changes),
        TEST(a_take_and_each_answer_in_sql_raise_changes),
        TEST(each_answer_of_a_run_raises_changes),
        TEST(a_run_that_calls_nothing_raises_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
