/* SPDX-License-Identifier: MIT
 *
 * Looking at many tasks at once: pages among equal due times, forecast and queues. Running the tasks of many
 * queues.
 */
#include "clock.h"
#include "running.h"
#include "support.h"

#include <src/store/runner.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/support/extent.h>

static struct tw_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

/* Puts n tasks "0", "1", ... of a queue, task i due at due_ms + i * step_ms, in one commit. */
static void put_many(struct tw_store *store, const char *queue, int n, uint64_t due_ms, uint64_t step_ms)
{
    struct tw_store_change *changes = calloc((size_t)n, sizeof *changes);
    char(*ids)[16] = calloc((size_t)n, sizeof *ids);
    for (int i = 0; i < n; i++) {
        int size = snprintf(ids[i], sizeof ids[i], "%d", i);
        changes[i].task = (struct tw_store_delayed){
            .queue = queue, .id = {ids[i], (size_t)size}, .due_ms = due_ms + (uint64_t)i * step_ms};
    }
    assert_int_equal(tw_store_apply(store, changes, (size_t)n), 0);
    free(ids);
    free(changes);
}

/* ---- pages ----------------------------------------------------------------------------------------------- */

struct page {
    int next;
    struct tw_store_task last;
};

static void expect_next(void *arg, const struct tw_store_task *task)
{
    struct page *page = arg;
    char id[16];
    int size = snprintf(id, sizeof id, "%d", page->next++);
    assert_int_equal(task->id.size, size);
    assert_memory_equal(task->id.data, id, (size_t)size);
    page->last = *task;
}

static void pages_among_equal_due_times_lose_nothing(void **state)
{
    struct tw_store_range range = {.count = 7};
    struct page page = {0};
    put_many(store_of(state), "q", 100, 5, 0);
    while (store_scan(store_of(state), "q", &range, expect_next, &page) > 0) {
        range.from_ms = page.last.place_ms;
        range.after = page.last.revision;
    }
    assert_int_equal(page.next, 100);
}

static void pages_of_dead_tasks_too(void **state)
{
    struct tw_store_range range = {.count = 7, .states = TW_STATE_DEAD};
    struct page page = {0};
    sqlite3 *db = other_open(*state);
    put_many(store_of(state), "q", 50, 5, 1);
    other_ask(db, "UPDATE tw_task SET dead_ms = 9");
    while (store_scan(store_of(state), "q", &range, expect_next, &page) > 0) {
        range.from_ms = page.last.dead_ms;
        range.after = page.last.revision;
    }
    assert_int_equal(page.next, 50);
    assert_int_equal(store_count(store_of(state), "q", true), 50);
    assert_int_equal(store_count(store_of(state), "q", false), 0);
    sqlite3_close(db);
}

static void see_queue(void *arg, const char *queue)
{
    strcat(strcat(arg, queue), " ");
}

/* A run asks at rest whether any task is left, and reads one row for that. */
static void a_scan_of_all_queues_goes_from_one_to_the_next(void **state)
{
    struct tw_store *store = store_of(state);
    struct seen seen = {.text = ""};
    sqlite3 *db = other_open(*state);
    put_many(store, "b", 2, 7, 1);
    put_many(store, "a", 3, 8, 1);
    other_ask(db, "UPDATE tw_task SET dead_ms = due_ms WHERE due_ms = 8");
    assert_int_equal(store_scan(store, NULL, NULL, see, &seen), 3);
    assert_string_equal(seen.text, "1@9 2@10 0@7");
    seen.text[0] = '\0';
    assert_int_equal(store_scan(store, NULL, &(struct tw_store_range){.count = 1}, see, &seen), 1);
    assert_string_equal(seen.text, "1@9");
    seen.text[0] = '\0';
    assert_int_equal(store_scan(store, NULL, &(struct tw_store_range){.states = TW_STATE_DEAD}, see, &seen), 2);
    assert_string_equal(seen.text, "0@8! 1@8!");
    assert_int_equal(tw_store_scan(store, NULL, &(struct tw_store_range){.after = 3}, see, &seen), TW_EINVAL);
    assert_string_equal(message(store), "after is '3': expected 0 for all queues");
    sqlite3_close(db);
}

/* ---- forecast -------------------------------------------------------------------------------------------- */

enum { HOUR_MS = 3600000 };

/* Steps of an hour: the test may take a while, and its tasks lie in the middle of their steps. */
static void put_at_hour(struct tw_store *store, const char *id, double hours, struct tw_store_delayed more)
{
    more.queue = "q";
    more.id = tw_text(id);
    more.due_ms = (uint64_t)((int64_t)tw_store_now() + (int64_t)(hours * HOUR_MS));
    assert_int_equal(store_put(store, &more, 0), 1);
}

static void expect_forecast(struct tw_store *store, const char *expected)
{
    uint64_t counts[6];
    char text[128] = "";
    assert_int_equal(tw_store_forecast(store, "q", HOUR_MS, 6, counts), 0);
    for (int i = 0; i < 6; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%llu ", (unsigned long long)counts[i]);
    assert_string_equal(text, expected);
}

static void a_forecast_counts_each_step(void **state)
{
    struct tw_store *store = store_of(state);
    expect_forecast(store, "0 0 0 0 0 0 ");
    put_at_hour(store, "overdue", -30, (struct tw_store_delayed){0});
    put_at_hour(store, "soon", 0.5, (struct tw_store_delayed){0});
    put_at_hour(store, "later", 2.5, (struct tw_store_delayed){0});
    put_at_hour(store, "beyond", 6.5, (struct tw_store_delayed){0});
    put_at_hour(store, "dead", 0.5, (struct tw_store_delayed){0});
    put_at_hour(store, "leased", 0.5, (struct tw_store_delayed){0});
    put_at_hour(store, "replaced", 0.5, (struct tw_store_delayed){0});
    expect_forecast(store, "4 0 1 0 0 0 ");
    sqlite3 *db = other_open(*state);
    other_ask(db, "UPDATE tw_meta SET run = 1;"
                  "UPDATE tw_task SET dead_ms = 5 WHERE id = CAST('dead' AS BLOB);"
                  "UPDATE tw_task SET run = 1, token = 1, replaced = 1 WHERE id = CAST('replaced' AS BLOB);"
                  "UPDATE tw_task SET run = 1, token = 1, next_ms = 5, place_ms = 5"
                  " WHERE id = CAST('leased' AS BLOB)");
    expect_forecast(store, "1 0 1 0 0 0 ");
    sqlite3_close(db);
}

static void expect_one_twice(void *arg)
{
    expect_forecast(arg, "0 0 1 0 0 0 ");
    expect_forecast(arg, "0 0 1 0 0 0 ");
}

/* A past bug: a task counted that was ready or leased, if its place lay ahead. */
static void a_forecast_sees_waiting_tasks_alone_after_the_clock_was_set_back(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    clock_stop(0);
    put_at_hour(store, "waiting", 2.5, (struct tw_store_delayed){0});
    put_at_hour(store, "leased", 1.5, (struct tw_store_delayed){0});
    put_at_hour(store, "leased, in periods", 1.5, (struct tw_store_delayed){.every_ms = HOUR_MS});
    expect_forecast(store, "0 2 2 1 1 1 ");
    other_ask(db, "UPDATE tw_meta SET run = 1;"
                  "UPDATE tw_task SET run = 1, token = 1 WHERE CAST(id AS TEXT) LIKE 'leased%'");
    assert_int_equal(tw_store_snapshot(store, expect_one_twice, store), 0);
    other_ask(db, "UPDATE tw_meta SET run = 2"); /* the attempts have lapsed */
    expect_forecast(store, "0 2 2 1 1 1 ");
    other_ask(db, "DELETE FROM tw_task WHERE run > 0");
    expect_forecast(store, "0 0 1 0 0 0 ");
    clock_pass(1);
    put_at_hour(store, "ready", -1.5, (struct tw_store_delayed){0});
    put_at_hour(store, "ready, in periods", -1.5, (struct tw_store_delayed){.every_ms = HOUR_MS});
    clock_stop(tw_store_now() - HOUR_MS);
    put_at_hour(store, "soon", 0.5, (struct tw_store_delayed){0});
    expect_forecast(store, "1 0 0 1 0 0 ");
    sqlite3_close(db);
    clock_go();
}

static void a_forecast_counts_each_call_of_a_repeating_task(void **state)
{
    struct tw_store *store = store_of(state);
    put_at_hour(store, "a", 1.5, (struct tw_store_delayed){.every_ms = 2 * HOUR_MS});
    expect_forecast(store, "0 1 0 1 0 1 ");
    put_at_hour(store, "a", 0.4, (struct tw_store_delayed){.every_ms = HOUR_MS / 4, .times = 6});
    expect_forecast(store, "3 3 0 0 0 0 ");
    put_at_hour(store, "a", 2.5, (struct tw_store_delayed){.every_ms = HOUR_MS, .times = 1});
    expect_forecast(store, "0 0 1 0 0 0 ");
}

/* The task waits until so long after its `due`: as a retry or, with attempt 0, because it was given back. */
static void hold(sqlite3 *db, unsigned attempt, unsigned missed_periods, double hours)
{
    char sql[200];
    snprintf(
        sql, sizeof sql,
        "UPDATE tw_task SET attempt = %u, missed_periods = %u, next_ms = due_ms + %d, place_ms = due_ms + %d",
        attempt, missed_periods, (int)(hours * HOUR_MS), (int)(hours * HOUR_MS));
    other_ask(db, sql);
}

/* Due each hour since half past nine hours ago, and given back until a few minutes before its next period. */
static void put_back(struct tw_store *store, sqlite3 *db, struct tw_store_delayed more)
{
    more.every_ms = HOUR_MS;
    put_at_hour(store, "a", -9.5, more);
    hold(db, 0, 0, 9.9);
}

/* The calls that were missed are one call, or one each with BURST, or none with SKIP. A series that is ready
 * does not wait. */
static void a_forecast_counts_missed_periods_by_their_policy(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    put_at_hour(store, "a", -9.5, (struct tw_store_delayed){.every_ms = HOUR_MS});
    expect_forecast(store, "0 0 0 0 0 0 ");
    put_back(store, db, (struct tw_store_delayed){.missed = TW_MISSED_BURST});
    expect_forecast(store, "11 1 1 1 1 1 ");
    put_back(store, db, (struct tw_store_delayed){.missed = TW_MISSED_SKIP});
    expect_forecast(store, "1 1 1 1 1 1 ");
    put_back(store, db, (struct tw_store_delayed){.missed = TW_MISSED_COALESCE});
    expect_forecast(store, "2 1 1 1 1 1 ");
    sqlite3_close(db);
}

static void a_missed_call_is_one_of_the_calls_in_all(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    put_back(store, db, (struct tw_store_delayed){.times = 5, .missed = TW_MISSED_COALESCE});
    expect_forecast(store, "2 1 1 1 0 0 ");
    put_back(store, db, (struct tw_store_delayed){.times = 12, .missed = TW_MISSED_BURST});
    expect_forecast(store, "11 1 0 0 0 0 ");
    sqlite3_close(db);
}

/* Due each hour since half an hour ago, and the first attempt has failed. The retry is so long after `due`. */
static void put_retry(struct tw_store *store, sqlite3 *db, double hours, unsigned missed_periods,
                      struct tw_store_delayed more)
{
    more.every_ms = HOUR_MS;
    put_at_hour(store, "a", -0.5, more);
    hold(db, 1, missed_periods, hours);
}

/* A bug: the periods between the failed attempt and its retry were taken for periods of that call. They get a
 * call of their own, right after the retry. */
static void a_forecast_of_a_retry_knows_the_periods_of_its_call(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    put_retry(store, db, 4, 0, (struct tw_store_delayed){.missed = TW_MISSED_COALESCE});
    expect_forecast(store, "0 0 0 2 1 1 ");
    put_retry(store, db, 4, 3, (struct tw_store_delayed){.missed = TW_MISSED_COALESCE});
    expect_forecast(store, "0 0 0 2 1 1 ");
    put_retry(store, db, 4, 4, (struct tw_store_delayed){.missed = TW_MISSED_COALESCE});
    expect_forecast(store, "0 0 0 1 1 1 ");
    put_retry(store, db, 2, 4, (struct tw_store_delayed){.missed = TW_MISSED_COALESCE});
    expect_forecast(store, "0 1 0 0 1 1 ");
    put_retry(store, db, 4, 0, (struct tw_store_delayed){.missed = TW_MISSED_COALESCE, .times = 1});
    expect_forecast(store, "0 0 0 1 0 0 ");
    put_retry(store, db, 4, 0, (struct tw_store_delayed){.missed = TW_MISSED_COALESCE, .times = 2});
    expect_forecast(store, "0 0 0 2 0 0 ");
    put_retry(store, db, 4, 0, (struct tw_store_delayed){.missed = TW_MISSED_BURST});
    expect_forecast(store, "0 0 0 5 1 1 ");
    put_retry(store, db, 4, 0, (struct tw_store_delayed){.missed = TW_MISSED_SKIP});
    expect_forecast(store, "0 0 0 1 1 1 ");
    put_retry(store, db, 1.7, 0, (struct tw_store_delayed){.missed = TW_MISSED_SKIP});
    expect_forecast(store, "0 3 1 1 1 1 ");
    sqlite3_close(db);
}

/* The border of a step belongs to the step before it. */
static void a_forecast_ends_where_it_says(void **state)
{
    struct tw_store *store = store_of(state);
    uint64_t counts[100], all = 0;
    clock_stop(0);
    put(store, "a", tw_store_now() + 4 * HOUR_MS);
    put(store, "b", tw_store_now() + 4 * HOUR_MS + 1);
    assert_int_equal(tw_store_forecast(store, "q", HOUR_MS, 4, counts), 0);
    assert_int_equal(counts[0] + counts[1] + counts[2], 0);
    assert_int_equal(counts[3], 1);
    struct tw_store_delayed last = {
        .queue = "q", .id = tw_text("last"), .due_ms = TW_STORE_TIME_MAX, .every_ms = HOUR_MS};
    store_put(store, &last, 0);
    assert_int_equal(tw_store_forecast(store, "q", 3155760000000, 100, counts), 0);
    for (int i = 0; i < 100; i++)
        all += counts[i];
    assert_int_equal(all, 3);
    clock_go();
}

/* Somebody has written rows that the views refuse. Their places lie half a millisecond and half an hour
 * ahead. */
static void odd_rows_end_no_program(void **state)
{
    static const char *const names[] = {"printf('%300c', 'x')", "CAST(x'610062' AS TEXT)", "x'6162'", "''"};
    struct tw_store *store = store_of(state);
    uint64_t counts[1];
    sqlite3 *db = other_open(*state);
    clock_stop(5);
    other_ask(db, "PRAGMA ignore_check_constraints=ON;"
                  "INSERT INTO tw_task(revision, queue, id, due_ms, next_ms, place_ms, every_ms) VALUES "
                  "(1, 'q', x'61', 5.5, 5.5, 5.5, 0.5), (2, 'q', x'62', 1800000, 1800000, 1800000, 0.5)");
    assert_int_equal(tw_store_forecast(store, "q", HOUR_MS, 1, counts), 0);
    assert_int_equal(counts[0], 2);
    clock_go();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char sql[256], seen[64] = "";
        snprintf(
            sql, sizeof sql,
            "DELETE FROM tw_task; INSERT INTO tw_task(revision, queue, id, due_ms, next_ms, place_ms) VALUES "
            "(1, %s, "
            "x'61', 5, 5, 5)",
            names[i]);
        other_ask(db, sql);
        assert_true(store_queues(store, see_queue, seen) <= 0);
    }
    sqlite3_close(db);
}

static void a_forecast_refuses_bad_steps(void **state)
{
    struct tw_store *store = store_of(state);
    uint64_t counts[1] = {7};
    assert_int_equal(tw_store_forecast(store, "q", 0, 1, counts), TW_EINVAL);
    assert_string_equal(message(store), "step_ms is '0': expected 1 to 3155760000000");
    assert_int_equal(tw_store_forecast(store, "q", 1, 0, counts), TW_EINVAL);
    assert_string_equal(message(store), "steps is '0': expected 1 to 10000");
    assert_int_equal(tw_store_forecast(store, "q", 1, 10001, counts), TW_EINVAL);
    assert_int_equal(tw_store_forecast(store, "q", 3155760000001, 1, counts), TW_EINVAL);
    assert_int_equal(counts[0], 7);
    assert_int_equal(tw_store_forecast(store, "q", 3155760000000, 1, counts), 0);
    assert_int_equal(counts[0], 0);
}

/* ---- queues ---------------------------------------------------------------------------------------------- */

static void queues_are_named_once(void **state)
{
    char text[64] = "";
    assert_int_equal(store_queues(store_of(state), see_queue, text), 0);
    put_many(store_of(state), "orders", 10, 1, 1);
    put_many(store_of(state), "mails", 10, 1, 1);
    put_many(store_of(state), "o", 1, 1, 1);
    assert_int_equal(store_queues(store_of(state), see_queue, text), 3);
    assert_string_equal(text, "mails o orders ");
}

static void note_load(void *arg, const struct tw_store_load *load)
{
    char next[24] = "never", *text = arg;
    if (load->next_ms != TW_NEVER)
        snprintf(next, sizeof next, "%llu", (unsigned long long)load->next_ms);
    sprintf(text + strlen(text), "%s %d+%d*%d!%d next %s%s; ", load->queue, (int)load->waiting,
            (int)load->ready, (int)load->leased, (int)load->dead, next, load->paused ? " paused" : "");
}

/* waiting+ready*leased!dead */
static void loads_are_those_of_each_queue(void **state)
{
    struct tw_store *store = store_of(state);
    char text[256] = "";
    sqlite3 *db = other_open(*state);
    assert_int_equal(store_loads(store, NULL, note_load, text), 0);
    assert_string_equal(text, "");
    put_many(store, "q", 4, 5, 1);
    put(store, "later", TW_STORE_TIME_MAX - 1);
    put_many(store, "r", 1, TW_STORE_TIME_MAX, 1);
    assert_int_equal(store_pause(store, "p"), 1);
    other_ask(db, "UPDATE tw_meta SET run = 5;"
                  "UPDATE tw_task SET run = 5 WHERE queue = 'q' AND id = CAST('0' AS BLOB);"
                  "UPDATE tw_task SET run = 4 WHERE queue = 'q' AND id = CAST('1' AS BLOB);"
                  "UPDATE tw_task SET dead_ms = 7 WHERE queue = 'q' AND id = CAST('3' AS BLOB)");
    assert_int_equal(store_loads(store, NULL, note_load, text), 3);
    assert_string_equal(text, "p 0+0*0!0 next never paused; q 1+2*1!1 next 253402300799998; "
                              "r 1+0*0!0 next 253402300799999; ");
    text[0] = '\0';
    assert_int_equal(store_loads(store, "none", note_load, text), 1);
    assert_string_equal(text, "none 0+0*0!0 next never; ");
    assert_int_equal(store_loads(store, "", note_load, text), TW_EINVAL);
    sqlite3_close(db);
}

/* What a snapshot sees, while another connection writes. */
struct snapshot {
    struct tw_store *store;
    sqlite3 *db;
    pthread_t other;
    int64_t before, after, wrong, outside;
    uint64_t next_ms;
    char text[256];
};

static void *count_outside(void *arg)
{
    struct snapshot *snapshot = arg;
    snapshot->outside = store_count(snapshot->store, "q", false);
    return NULL;
}

static void look_twice(void *arg)
{
    struct snapshot *snapshot = arg;
    struct tw_store_range none = {.states = 64};
    snapshot->before = store_count(snapshot->store, "q", false);
    other_ask(snapshot->db, "DELETE FROM tw_task WHERE id = CAST('0' AS BLOB)");
    assert_int_equal(pthread_create(&snapshot->other, NULL, count_outside, snapshot), 0);
    snapshot->wrong = store_scan(snapshot->store, "q", &none, NULL, NULL);
    snapshot->after = store_count(snapshot->store, "q", false);
    assert_int_equal(store_loads(snapshot->store, NULL, note_load, snapshot->text), 1);
    assert_int_equal(tw_store_next(snapshot->store, "q", &snapshot->next_ms), 0);
}

/* A look of another thread waits, and is as new as any. A look that is refused leaves the others as they
 * are. */
static void a_snapshot_is_one_moment(void **state)
{
    struct snapshot snapshot = {.store = store_of(state), .db = other_open(*state)};
    put_many(snapshot.store, "q", 4, 5, 1);
    assert_int_equal(tw_store_snapshot(snapshot.store, look_twice, &snapshot), 0);
    eventually_joined(snapshot.other);
    assert_int_equal(snapshot.before, 4);
    assert_int_equal(snapshot.after, 4);
    assert_int_equal(snapshot.wrong, TW_EINVAL);
    assert_string_equal(snapshot.text, "q 0+4*0!0 next never; ");
    assert_true(snapshot.next_ms == TW_NEVER);
    assert_int_equal(snapshot.outside, 3);
    assert_int_equal(store_count(snapshot.store, "q", false), 3);
    sqlite3_close(snapshot.db);
}

static void see_nothing(void *arg, const struct tw_store_task *task)
{
    (void)arg;
    (void)task;
}

static void run_out_of_memory(void *arg)
{
    struct snapshot *snapshot = arg;
    snapshot->before = store_count(snapshot->store, "q", false);
    sqlite3_hard_heap_limit64(sqlite3_memory_used() + (1 << 16));
    snapshot->wrong = store_scan(snapshot->store, "q", NULL, see_nothing, NULL);
    sqlite3_hard_heap_limit64(0);
    snapshot->after = store_count(snapshot->store, "q", false);
}

/* SQLite ends the transaction when a look lacks memory, and a look after it would see another moment. */
static void a_snapshot_that_has_ended_shows_nothing_more(void **state)
{
    struct snapshot snapshot = {.store = store_of(state), .db = other_open(*state)};
    for (int i = 0; i < 3; i++)
        other_ask(snapshot.db, "INSERT INTO tw_put(queue, id, due_ms, payload)"
                               " VALUES ('q', hex(randomblob(8)), 5, zeroblob(900000))");
    assert_int_equal(tw_store_snapshot(snapshot.store, run_out_of_memory, &snapshot), 0);
    assert_int_equal(snapshot.before, 3);
    assert_int_equal(snapshot.wrong, TW_ENOMEM);
    assert_int_equal(snapshot.after, TW_ENOMEM);
    assert_int_equal(store_count(snapshot.store, "q", false), 3);
    sqlite3_close(snapshot.db);
}

static void all_queues_are_counted_at_once(void **state)
{
    struct tw_store *store = store_of(state);
    uint64_t next_ms = 1, later_ms = tw_store_now() + HOUR_MS;
    sqlite3 *db = other_open(*state);
    assert_int_equal(store_count(store, NULL, false), 0);
    assert_int_equal(tw_store_next(store, NULL, &next_ms), 0);
    assert_true(next_ms == TW_NEVER);
    put_many(store, "orders", 10, later_ms, 1);
    put_many(store, "mails", 10, later_ms + 2, 1);
    put_many(store, "prints", 1, later_ms + 1, 1);
    put_many(store, "ready", 1, 5, 1);
    assert_int_equal(store_count(store, NULL, false), 22);
    assert_int_equal(store_count(store, NULL, true), 0);
    assert_int_equal(tw_store_next(store, NULL, &next_ms), 0);
    assert_int_equal(next_ms, later_ms);
    other_ask(db, "UPDATE tw_task SET dead_ms = 5 WHERE queue = 'orders'");
    assert_int_equal(store_count(store, NULL, false), 12);
    assert_int_equal(store_count(store, NULL, true), 10);
    assert_int_equal(tw_store_next(store, NULL, &next_ms), 0);
    assert_int_equal(next_ms, later_ms + 1);
    sqlite3_close(db);
}

/* ---- running the tasks of many queues -------------------------------------------------------------------- */

/* The calls of one worker. */
struct sequence {
    atomic_int calls;
    atomic_bool wrong; /* a call came after one that was due later */
    atomic_uint_least64_t due_ms;
};

static enum tw_answer note_in_turn(void *arg, struct tw_job *job)
{
    struct sequence *sequence = arg;
    if (job->due_ms < atomic_exchange(&sequence->due_ms, job->due_ms))
        atomic_store(&sequence->wrong, true);
    atomic_fetch_add(&sequence->calls, 1);
    return TW_ANSWER_DONE;
}

static void start_one_worker(struct tw_store *store, struct sequence *sequence)
{
    struct tw_store_run_options options = {.workers = 1, .max_loaded = 1000};
    assert_int_equal(tw_store_handle(store, NULL, 0, note_in_turn, sequence), 0);
    assert_int_equal(tw_store_start(store, &options), 0);
}

static void wait_for_sequence(struct sequence *sequence, int n)
{
    EVENTUALLY_TOLD(atomic_load(&sequence->calls) >= n, "%d calls came, expected %d",
                    atomic_load(&sequence->calls), n);
    assert_false(atomic_load(&sequence->wrong));
}

/* Each has one task, and their due times have another order than their names. */
static void tasks_of_many_queues_come_in_order(void **state)
{
    enum { QUEUES = 3000 };
    struct tw_store *store = store_of(state);
    struct sequence sequence = {0};
    sqlite3 *db = other_open(*state);
    clock_stop(1);
    other_ask(db,
              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
              " INSERT INTO tw_put(queue, id, due_ms) SELECT 'user:' || i, 'x', 1000 + i * 7919 % 3001 FROM n");
    clock_go();
    start_one_worker(store, &sequence);
    wait_for_sequence(&sequence, QUEUES);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(atomic_load(&sequence.calls), QUEUES);
    assert_string_equal(other_ask(db, "SELECT count(*) FROM tw_task"), "0");
    sqlite3_close(db);
}

/* More tasks than there are entries for, so that the queues are loaded piece by piece. */
static void large_queues_are_loaded_in_order(void **state)
{
    enum { TASKS = 3000 };
    struct tw_store *store = store_of(state);
    struct sequence sequence = {0};
    clock_stop(1);
    put_many(store, "a", TASKS, 1000, 2);
    put_many(store, "b", TASKS, 1001, 2);
    put_many(store, "c", 1, 2000, 1);
    clock_pass(HOUR_MS); /* then it stands: a task that is loaded late waits for no later millisecond */
    start_one_worker(store, &sequence);
    wait_for_sequence(&sequence, 2 * TASKS + 1);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(atomic_load(&sequence.calls), 2 * TASKS + 1);
    clock_go();
}

/* A batch of claims may be larger than the loaded part of a queue, and takes nothing of another queue whose
 * turn is behind the rest. There are so many queues that a part is 16 tasks. */
static void no_claim_overtakes_tasks_that_are_not_loaded(void **state)
{
    enum { TASKS = 3000, QUEUES = 60 };
    struct tw_store *store = store_of(state);
    struct sequence sequence = {0};
    char queue[16];
    clock_stop(1);
    put_many(store, "dense", TASKS, 1000, 1);
    for (int i = 0; i < QUEUES; i++) {
        snprintf(queue, sizeof queue, "user:%d", i);
        put_many(store, queue, 1, 1000 + (uint64_t)i * TASKS / QUEUES, 1);
    }
    clock_go();
    start_one_worker(store, &sequence);
    wait_for_sequence(&sequence, TASKS + QUEUES);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(atomic_load(&sequence.calls), TASKS + QUEUES);
}

/* Passes a millisecond, in which tasks that were loaded late are called, unless the test has come to its end.
 */
static bool passed(bool there)
{
    if (!there)
        clock_pass(1);
    return there;
}

/* The queue is loaded up to the task "999". One that comes then is loaded if it is due before, and else in its
 * turn. */
static void news_of_a_queue_that_is_loaded_in_part_come_in_order(void **state)
{
    enum { TASKS = 3000, LOADED = 1000 };
    struct tw_store *store = store_of(state);
    struct sequence sequence = {0};
    clock_stop(0);
    uint64_t due_ms = tw_store_now() + 10000;
    put_many(store, "q", TASKS, due_ms, 2);
    start_one_worker(store, &sequence);
    runner_idle(store);
    assert_int_equal(stats_of(store).loaded, LOADED);
    put(store, "last of the part", due_ms + 2 * (LOADED - 1));
    put(store, "after it", due_ms + 2 * LOADED + 1);
    runner_idle(store);
    assert_int_equal(stats_of(store).loaded, LOADED);
    put(store, "early", due_ms + 1);
    runner_idle(store);
    assert_int_equal(stats_of(store).loaded, LOADED + 1);
    clock_pass(60000);
    EVENTUALLY_TOLD(passed(atomic_load(&sequence.calls) >= TASKS + 3), "%d calls came",
                    atomic_load(&sequence.calls));
    assert_false(atomic_load(&sequence.wrong));
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(atomic_load(&sequence.calls), TASKS + 3);
    clock_go();
}

enum { SERIES = 20 };

struct series {
    atomic_int calls, of[SERIES]; /* of all tasks, and of the series "sa", "sb", ... */
    enum tw_answer first;
};

static enum tw_answer note_series(void *arg, struct tw_job *job)
{
    struct series *series = arg;
    const char *id = job->id.data;
    atomic_fetch_add(&series->calls, 1);
    if (job->id.size != 2 || id[0] != 's')
        return TW_ANSWER_DONE;
    return atomic_fetch_add(&series->of[id[1] - 'a'], 1) == 0 ? series->first : TW_ANSWER_DONE;
}

/* A bug: a series was filed for a due time that its queue was not loaded up to, and then loaded there once
 * more. So one period was called twice at once. The series come when they are late already, so that their
 * places among the entries are later than their due times, and their second periods are all over the queue.
 * Each has two. */
static void late_series_are_called_once(struct tw_store *store, enum tw_answer first)
{
    enum { TASKS = 3000, STEP = 100 };
    struct series series = {.first = first};
    int calls = TASKS + SERIES * (first == TW_ANSWER_BACK ? 3 : 2);
    char id[2] = "s";
    clock_stop(0);
    uint64_t begin_ms = tw_store_now() - TASKS * STEP;
    put_many(store, "q", TASKS, begin_ms, STEP);
    assert_int_equal(store_pause(store, "q"), 1);
    assert_int_equal(tw_store_handle(store, NULL, 0, note_series, &series), 0);
    assert_int_equal(tw_store_start(store, &(struct tw_store_run_options){.workers = 1, .max_loaded = 1000}),
                     0);
    runner_idle(store);
    for (int i = 0; i < SERIES; i++) {
        id[1] = (char)('a' + i);
        struct tw_store_delayed task = {.queue = "q",
                                        .id = {id, 2},
                                        .due_ms = begin_ms,
                                        .every_ms = STEP * (1000 + 100 * (uint64_t)i),
                                        .times = 2,
                                        .missed = TW_MISSED_BURST};
        assert_int_equal(store_put(store, &task, 0), 1);
    }
    runner_idle(store);
    assert_int_equal(store_resume(store, "q"), 1);
    EVENTUALLY_TOLD(passed(atomic_load(&series.calls) >= calls), "%d calls came, expected %d",
                    atomic_load(&series.calls), calls);
    wait_for_answers(store, TASKS + 2 * SERIES);
    runner_idle(store);
    assert_int_equal(stats_of(store).loaded, 0);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(atomic_load(&series.calls), calls);
    clock_go();
}

static void late_series_of_a_large_queue_are_called_once(void **state)
{
    late_series_are_called_once(store_of(state), TW_ANSWER_DONE);
}

static void late_series_that_are_given_back_are_called_once_more(void **state)
{
    late_series_are_called_once(store_of(state), TW_ANSWER_BACK);
}

/* The runner has gone to sleep, and nothing wakes it: the test may look at its memory. */
static uint64_t known_queues(struct tw_store *store)
{
    runner_look_away(true);
    runner_idle(store);
    uint64_t count = store->run->runner->window.queues.count;
    runner_look_away(false);
    runner_idle(store); /* it went to sleep without an eye on the files */
    return count;
}

/* A leak: each queue that had ever had a task stayed in memory. */
static void queues_without_tasks_are_forgotten(void **state)
{
    struct tw_store *store = store_of(state);
    struct sequence sequence = {0};
    char sql[200];
    sqlite3 *db = other_open(*state);
    start_one_worker(store, &sequence);
    for (int round = 0; round < 4; round++) {
        atomic_store(&sequence.due_ms, 0);
        snprintf(sql, sizeof sql,
                 "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
                 " INSERT INTO tw_put(queue, id, due_ms) SELECT 'user:' || i || ':%d', 'x', 5 FROM n",
                 round);
        other_ask(db, sql);
        wait_for_sequence(&sequence, 500 * (round + 1));
        wait_for_answers(store, 500 * ((uint64_t)round + 1));
        assert_int_equal(known_queues(store), 0);
    }
    put(store, "far", tw_store_now() + 4 * HOUR_MS);
    put(store, "near", tw_store_now() + 60000);
    assert_int_equal(known_queues(store), 1); /* that of both */
    assert_int_equal(cancel(store, "near"), TW_CANCEL_CANCELLED);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* None of them is known before its time comes near. Each has more tasks than the sweep passes over. */
static void queues_are_found_when_their_time_comes_near(void **state)
{
    enum { QUEUES = 50, TASKS = 12, MINUTE_MS = 60000 };
    struct tw_store *store = store_of(state);
    struct sequence sequence = {0};
    char queue[16];
    clock_stop(0);
    uint64_t due_ms = tw_store_now() + 16 * MINUTE_MS;
    for (int i = 0; i < QUEUES; i++) {
        snprintf(queue, sizeof queue, "user:%d", i);
        put_many(store, queue, TASKS, due_ms, 1);
    }
    start_one_worker(store, &sequence);
    assert_int_equal(known_queues(store), 0);
    clock_pass(8 * MINUTE_MS);
    assert_int_equal(known_queues(store), QUEUES);
    assert_int_equal(stats_of(store).loaded, QUEUES * TASKS);
    put_many(store, "late", 1, due_ms + 5, 1);
    clock_pass(9 * MINUTE_MS);
    wait_for_sequence(&sequence, QUEUES * TASKS + 1);
    wait_for_answers(store, QUEUES * TASKS + 1);
    assert_int_equal(known_queues(store), 0);
    assert_int_equal(tw_store_stop(store), 0);
    clock_go();
}

/* A pause holds for a queue that was forgotten meanwhile. */
static void a_forgotten_queue_stays_paused(void **state)
{
    struct tw_store *store = store_of(state);
    struct sequence sequence = {0};
    assert_int_equal(store_pause(store, "q"), 1);
    start_one_worker(store, &sequence);
    assert_int_equal(known_queues(store), 0);
    put(store, "x", 5);
    put_many(store, "r", 1, 5, 1);
    wait_for_sequence(&sequence, 1);
    runner_idle(store);
    assert_string_equal(scan(store, NULL), "x@5");
    assert_int_equal(cancel(store, "x"), TW_CANCEL_CANCELLED);
    atomic_store(&sequence.due_ms, 0);
    assert_int_equal(store_resume(store, "q"), 1);
    put(store, "y", 5);
    wait_for_sequence(&sequence, 2);
    wait_for_answers(store, 2);
    assert_int_equal(known_queues(store), 0);
    assert_int_equal(tw_store_stop(store), 0);
}

/* ---- a hundred thousand queues --------------------------------------------------------------------------- */

enum { PAUSES = 100000, CROWD_PART = 1000 };

/* The number of queues. For sanitizers, and with TW_DEBUG 2, where each call checks all tasks that are loaded,
 * it is a fifth: twenty times as many as a run loads. */
static int crowd(void)
{
    return TW_DEBUG > 1 ? 20000 : (int)extent(20000, 100000, 100000);
}

/* Puts a task into each queue of a crowd, "user:0", "user:1", .... Their due times have another order. */
static void put_crowd(struct tw_store *store)
{
    static struct tw_store_change changes[CROWD_PART];
    static char queues[CROWD_PART][16];
    uint64_t queues_in_all = (uint64_t)crowd();
    clock_stop(1);
    for (uint64_t i = 0; i < queues_in_all; i++) {
        size_t at = i % CROWD_PART;
        snprintf(queues[at], sizeof queues[at], "user:%d", (int)i);
        changes[at].task = (struct tw_store_delayed){
            .queue = queues[at], .id = tw_text("x"), .due_ms = 1000 + i * 7919 % (queues_in_all + 3)};
        if (at == CROWD_PART - 1)
            assert_int_equal(tw_store_apply(store, changes, CROWD_PART), 0);
    }
    clock_go();
}

static void a_hundred_thousand_queues_are_called_in_order(void **state)
{
    struct tw_store *store = store_of(state);
    struct sequence sequence = {0};
    put_crowd(store);
    start_one_worker(store, &sequence);
    wait_for_sequence(&sequence, crowd());
    wait_for_answers(store, crowd());
    assert_int_equal(known_queues(store), 0);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(atomic_load(&sequence.calls), crowd());
    assert_int_equal(store_count(store, NULL, false), 0);
}

/* Each tenth queue is paused at first. */
static void the_paused_of_a_hundred_thousand_queues_wait(void **state)
{
    struct tw_store *store = store_of(state);
    int paused = crowd() / 10;
    struct sequence sequence = {0};
    sqlite3 *db = other_open(*state);
    put_crowd(store);
    other_ask(db, "INSERT INTO tw_queue SELECT queue, 1 FROM tw_task WHERE queue LIKE 'user:%0'");
    start_one_worker(store, &sequence);
    wait_for_sequence(&sequence, crowd() - paused);
    wait_for_answers(store, crowd() - paused);
    assert_int_equal(known_queues(store), paused);
    assert_int_equal(atomic_load(&sequence.calls), crowd() - paused);
    assert_int_equal(atoi(other_ask(db, "SELECT count(*) FROM tw_task WHERE queue LIKE 'user:%0'")), paused);
    atomic_store(&sequence.due_ms, 0);
    other_ask(db, "DELETE FROM tw_queue");
    wait_for_sequence(&sequence, crowd());
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(atomic_load(&sequence.calls), crowd());
    assert_int_equal(store_count(store, NULL, false), 0);
    sqlite3_close(db);
}

/* How many steps SQLite has made to read all pauses, as in known_queues(). */
static int pause_steps(struct tw_store *store)
{
    runner_look_away(true);
    runner_idle(store);
    const struct tw__store_db *db = &store->run->runner->window.db;
    int steps = sqlite3_stmt_status(db->statement[TW__STORE_PAUSED], SQLITE_STMTSTATUS_VM_STEP, 0);
    runner_look_away(false);
    runner_idle(store);
    return steps;
}

/* A bug: each look read them all, for 24 ms. */
static void pauses_of_queues_without_tasks_cost_a_look_nothing(void **state)
{
    struct tw_store *store = store_of(state);
    struct sequence sequence = {0};
    sqlite3 *db = other_open(*state);
    other_ask(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
                  " INSERT INTO tw_queue SELECT 'user:' || i, 1 FROM n");
    assert_int_equal(store_pause(store, "q"), 1);
    start_one_worker(store, &sequence);
    int steps = pause_steps(store);
    assert_true(steps >= PAUSES);
    put(store, "x", 5);
    put_many(store, "r", 1, 5, 1);
    put_many(store, "user:7", 1, 5, 1);
    wait_for_sequence(&sequence, 1);
    runner_idle(store);
    assert_int_equal(atomic_load(&sequence.calls), 1);
    assert_int_equal(store_resume(store, "q"), 1);
    wait_for_sequence(&sequence, 2);
    assert_int_equal(pause_steps(store), steps);
    other_ask(db, "DELETE FROM tw_queue");
    wait_for_sequence(&sequence, 3);
    assert_int_equal(pause_steps(store), steps);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* ---- the room of the window ------------------------------------------------------------------------------ */

/* Puts tasks of many queues, each with the same number of them, which are due in a few minutes. */
static void put_queues(sqlite3 *db, int queues, int tasks)
{
    char sql[400];
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
             " INSERT INTO tw_put(queue, id, due_ms)"
             " SELECT 'user:' || (i / %d), CAST(i AS TEXT), %llu + i FROM n",
             queues * tasks - 1, tasks, (unsigned long long)tw_store_now() + 300000);
    other_ask(db, sql);
}

static void start_small(struct tw_store *store, struct calls *calls)
{
    calls_init(calls);
    clock_stop(0);
    assert_int_equal(tw_store_handle(store, NULL, 0, note_call, calls), 0);
    assert_int_equal(tw_store_start(store, &(struct tw_store_run_options){.max_loaded = 1000}), 0);
    runner_idle(store);
}

/* Entries that have memory, as in known_queues(). That memory stays until the run ends. */
static uint64_t entries_in_memory(struct tw_store *store)
{
    runner_look_away(true);
    runner_idle(store);
    const struct tw__store_window *window = &store->run->runner->window;
    uint64_t count = window->loaded;
    for (const struct tw__link *link = window->free.next; link != &window->free; link = link->next)
        count++;
    runner_look_away(false);
    runner_idle(store);
    return count;
}

/* A bug: the first queues that a run found got shares that were too large, and four to seven times max_loaded
 * tasks were in memory for a moment. */
static void the_first_sweep_loads_no_more_than_its_room(void **state)
{
    enum { QUEUES = 50, TASKS = 1000, LOADED = 1000 };
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    put_queues(db, QUEUES, TASKS);
    start_small(store, &calls);
    assert_in_range(stats_of(store).loaded, LOADED / 2, LOADED);
    assert_in_range(entries_in_memory(store), LOADED, 3 * LOADED);
    assert_int_equal(known_queues(store), QUEUES);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
    clock_go();
}

/* A bug: the first queues of a new run had shares as if there were no others. With 16 tasks for each queue
 * there are 1,600; the run had loaded 4,000. */
static void the_first_queues_have_no_more_than_their_share(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    put_queues(db, 100, 200);
    start_small(store, &calls);
    assert_in_range(stats_of(store).loaded, 1600, 3200);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
    clock_go();
}

/* A bug: 40 tasks of one queue are more than twice its share, if there are many queues. Then all queues were
 * dropped and read anew, though the window has room. */
static void a_burst_of_one_queue_among_many_drops_no_other(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    put_queues(db, 500, 2);
    start_small(store, &calls);
    uint64_t moves_ms = store->run->runner->window.load_at_ms;
    clock_pass(1000);
    put_many(store, "user:7", 40, tw_store_now() + 400000, 1);
    runner_idle(store);
    put_many(store, "user:8", 1, tw_store_now() + 400000, 1);
    runner_idle(store);
    assert_int_equal(stats_of(store).loaded, 1041);
    assert_int_equal(store->run->runner->window.load_at_ms, moves_ms);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
    clock_go();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

/* ---- claims ---------------------------------------------------------------------------------------------- */

/* Puts n tasks that are due a second from now on. Of each eight one will be cancelled, one is soon too late,
 * one waits for a later period then, and one needs little room. */
static void put_different(struct tw_store *store, int n)
{
    static const char payload[1000];
    char id[16];
    for (int i = 0; i < n; i++) {
        snprintf(id, sizeof id, "%d", i);
        struct tw_store_delayed task = {.queue = "q",
                                        .id = tw_text(id),
                                        .due_ms = tw_store_now() + 1000 + (uint64_t)i,
                                        .payload = {payload, i % 8 == 7 ? 0 : sizeof payload},
                                        .max_late_ms = i % 8 == 3 ? 1 : 0,
                                        .every_ms = i % 8 == 5 ? 400 : 0,
                                        .missed = i % 8 == 5 ? TW_MISSED_SKIP : TW_MISSED_COALESCE};
        assert_int_equal(store_put(store, &task, 0), 1);
    }
}

/* There is no room for all of them at once, and the next ones wait for the ends of the first. */
static void tasks_that_are_due_together_have_their_own_fates(void **state)
{
    enum { N = 2 * TW__STORE_MANY, CALLED = N / 8 * 5 };
    struct tw_store *store = store_of(state);
    struct tw_store_run_options options = {.workers = N, .max_bytes = 20500};
    struct calls calls;
    char id[16];
    calls_init(&calls);
    calls.block = true;
    clock_stop(0);
    put_different(store, N);
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, &options), 0);
    runner_idle(store);
    for (int i = 1; i < N; i += 8) {
        snprintf(id, sizeof id, "%d", i);
        assert_int_equal(cancel(store, id), TW_CANCEL_CANCELLED);
    }
    clock_pass(2000);
    wait_for_calls(&calls, 25);
    runner_idle(store);
    assert_int_equal(calls_of(&calls), 25);
    unblock(&calls);
    wait_for_answers(store, CALLED);
    runner_idle(store);
    for (int i = 0; i < N; i++) {
        snprintf(id, sizeof id, i == 0 ? "%d/1" : " %d/1", i);
        assert_int_equal(strstr(calls.text, id) != NULL, i % 8 != 1 && i % 8 != 3 && i % 8 != 5);
    }
    assert_int_equal(calls_of(&calls), CALLED);
    assert_int_equal(stats_of(store).dropped, N / 8);
    assert_int_equal(stats_of(store).skipped, 3 * N / 8);
    assert_int_equal(tw_store_stop(store), 0);
    assert_non_null(store->writer.db.statement[TW__STORE_CLAIM_ROWS]);
    assert_int_equal(store_count(store, "q", false), N / 8);
}

/* A backup that nobody has noticed gives the number of a task that is loaded to a task of another queue, which
 * is loaded too. Both claims are in one group, and the first is that of the old task. */
static void a_number_that_another_queue_has_now_calls_no_stranger(void **state)
{
    struct tw_store *store = store_of(state);
    struct tw_store_run_options options = {.workers = 256, .max_loaded = 1000};
    struct calls old, new;
    sqlite3 *db = other_open(*state);
    calls_init(&old);
    calls_init(&new);
    clock_stop(0);
    put_many(store, "new", 900, tw_store_now() + 1000, 1);
    put_many(store, "old", 1, tw_store_now() + 1600, 1);
    assert_int_equal(tw_store_handle(store, "old", 0, note_call, &old), 0);
    assert_int_equal(tw_store_handle(store, "new", 0, note_call, &new), 0);
    assert_int_equal(tw_store_start(store, &options), 0);
    runner_idle(store);
    other_ask(db, "UPDATE tw_task SET queue = 'new', id = CAST('moved' AS BLOB), place_ms = place_ms + 1,"
                  " next_ms = next_ms + 1, due_ms = due_ms + 1 WHERE queue = 'old'");
    clock_pass(1300);
    wait_for_calls(&new, 301);
    runner_idle(store);
    clock_pass(900);
    wait_for_answers(store, 901);
    runner_idle(store);
    assert_int_equal(calls_of(&old), 0);
    assert_int_equal(calls_of(&new), 901);
    assert_int_equal(tw_store_stop(store), 0);
    assert_non_null(store->writer.db.statement[TW__STORE_CLAIM_ROWS]);
    sqlite3_close(db);
}

/* ---- answers --------------------------------------------------------------------------------------------- */

/* Of each eight tasks one is cancelled, one put anew and one moved, or its row has another attempt. */
static void change_some(struct tw_store *store, sqlite3 *db, int n, uint64_t due_ms)
{
    char id[16], sql[100];
    for (int i = 0; i < n; i++) {
        snprintf(id, sizeof id, "%d", i);
        snprintf(sql, sizeof sql, "UPDATE tw_task SET token = 1 WHERE id = CAST('%d' AS BLOB)", i);
        if (i % 8 == 3)
            assert_int_equal(cancel(store, id), TW_CANCEL_AT_WORK);
        else if (i % 8 == 5)
            assert_int_equal(put(store, id, due_ms), 1);
        else if (i % 16 == 7)
            assert_int_equal(store_move_at(store, tw_store_named("q", id), due_ms, 0), 1);
        else if (i % 16 == 15)
            other_ask(db, sql);
    }
}

/* Starts a run that claims n tasks of "q" in one commit. Each has a worker, and waits for its answer. */
static void claim_together(struct tw_store *store, struct calls *calls, uint32_t n)
{
    struct tw_store_run_options options = {.workers = n};
    calls_init(calls);
    calls->answer = TW_ANSWER_LATER;
    clock_stop(0);
    put_many(store, "q", (int)n, 5, 0);
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, calls), 0);
    assert_int_equal(tw_store_start(store, &options), 0);
    EVENTUALLY(kept_of(calls) == (int)n);
}

/* Because somebody holds the lock, the answers are written in two commits at most. `other`: the number of the
 * job with this answer. */
static void answer_together(struct tw_store *store, sqlite3 *db, struct calls *calls, int other,
                            enum tw_answer answer)
{
    int n = kept_of(calls);
    other_ask(db, "BEGIN IMMEDIATE");
    for (int i = 0; i < n; i++)
        tw_job_answer(calls->kept[i], i == other ? answer : TW_ANSWER_DONE);
    other_ask(db, "COMMIT");
    wait_for_answers(store, n);
    assert_int_equal(tw_store_stop(store), 0);
}

static void answers_of_many_tasks_end_their_own_attempts_alone(void **state)
{
    enum { N = 96 };
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    claim_together(store, &calls, N);
    assert_string_equal(other_ask(db, "SELECT count(DISTINCT token) || ' ' || sum(attempt = 1 AND run = 1 AND "
                                      "due_ms = 5 AND next_ms = 5) FROM tw_task"),
                        "96 96");
    change_some(store, db, N, tw_store_now() + HOUR_MS);
    answer_together(store, db, &calls, N, TW_ANSWER_DONE);
    assert_non_null(store->writer.db.statement[TW__STORE_CLAIM_MANY]);
    assert_non_null(store->writer.db.statement[TW__STORE_DONE_MANY]);
    assert_string_equal(other_ask(db,
                                  "SELECT count(*) || ' ' || sum(attempt = 0 AND run = 0 AND token = 0 AND"
                                  " replaced = 0 AND CAST(id AS TEXT) % 8 IN (5, 7)) || ' ' ||"
                                  " sum(attempt = 1 AND run = 1 AND token = 1 AND CAST(id AS TEXT) % 16 = 15)"
                                  " FROM tw_task"),
                        "24 18 6");
    sqlite3_close(db);
}

/* The commits may part the long row in two, and each part has rests. */
static void many_answers_behind_a_short_row_are_written_together(void **state)
{
    enum { SHORT = TW__STORE_MANY - 1, LONG = 3 * TW__STORE_MANY };
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    claim_together(store, &calls, SHORT + 1 + LONG);
    answer_together(store, db, &calls, SHORT, TW_ANSWER_DEAD);
    sqlite3_stmt *many = store->writer.db.statement[TW__STORE_DONE_MANY];
    assert_non_null(many);
    assert_in_range(sqlite3_stmt_status(many, SQLITE_STMTSTATUS_RUN, 0), 2, 3);
    assert_int_equal(store_count(store, "q", false), 0);
    assert_int_equal(store_count(store, "q", true), 1);
    sqlite3_close(db);
}

/* A bug: the tokens of a commit follow each other, and so did the waits of tasks that failed together. */
static void tasks_that_fail_together_wait_for_different_times(void **state)
{
    enum { N = 64 };
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    calls.answer = TW_ANSWER_FAILED;
    clock_stop(0);
    other_ask(db, "UPDATE tw_meta SET backoff_ms = 3600000, jitter = 10");
    put_many(store, "q", N, 5, 0);
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, NULL), 0);
    wait_for_answers(store, N);
    assert_int_equal(tw_store_stop(store), 0);
    assert_string_equal(other_ask(db, "SELECT count(*) < 8 FROM tw_task AS a JOIN tw_task AS b"
                                      " ON b.next_ms - a.next_ms = 1"),
                        "1");
    sqlite3_close(db);
}

int main(int count, char **arguments)
{
    (void)count;
    static const struct CMUnitTest tests[] = {
        TEST(pages_among_equal_due_times_lose_nothing),
        TEST(pages_of_dead_tasks_too),
        TEST(a_scan_of_all_queues_goes_from_one_to_the_next),
        TEST(a_forecast_counts_each_step),
        TEST(a_forecast_sees_waiting_tasks_alone_after_the_clock_was_set_back),
        TEST(a_forecast_counts_each_call_of_a_repeating_task),
        TEST(a_forecast_counts_missed_periods_by_their_policy),
        TEST(a_missed_call_is_one_of_the_calls_in_all),
        TEST(a_forecast_of_a_retry_knows_the_periods_of_its_call),
        TEST(a_forecast_ends_where_it_says),
        TEST(odd_rows_end_no_program),
        TEST(a_forecast_refuses_bad_steps),
        TEST(queues_are_named_once),
        TEST(loads_are_those_of_each_queue),
        TEST(a_snapshot_is_one_moment),
        TEST(a_snapshot_that_has_ended_shows_nothing_more),
        TEST(all_queues_are_counted_at_once),
        TEST(tasks_of_many_queues_come_in_order),
        TEST(large_queues_are_loaded_in_order),
        TEST(no_claim_overtakes_tasks_that_are_not_loaded),
        TEST(news_of_a_queue_that_is_loaded_in_part_come_in_order),
        TEST(late_series_of_a_large_queue_are_called_once),
        TEST(late_series_that_are_given_back_are_called_once_more),
        TEST(queues_without_tasks_are_forgotten),
        TEST(queues_are_found_when_their_time_comes_near),
        TEST(the_first_sweep_loads_no_more_than_its_room),
        TEST(a_forgotten_queue_stays_paused),
        TEST(a_hundred_thousand_queues_are_called_in_order),
        TEST(the_paused_of_a_hundred_thousand_queues_wait),
        TEST(pauses_of_queues_without_tasks_cost_a_look_nothing),
        TEST(the_first_queues_have_no_more_than_their_share),
        TEST(a_burst_of_one_queue_among_many_drops_no_other),
        TEST(tasks_that_are_due_together_have_their_own_fates),
        TEST(a_number_that_another_queue_has_now_calls_no_stranger),
        TEST(answers_of_many_tasks_end_their_own_attempts_alone),
        TEST(many_answers_behind_a_short_row_are_written_together),
        TEST(tasks_that_fail_together_wait_for_different_times),
    };
    choose_tests(arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
