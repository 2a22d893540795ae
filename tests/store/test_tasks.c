/* SPDX-License-Identifier: MIT
 *
 * Put, move, cancel, get and scan: each row of the table in store.h, conditions, bad arguments, batches.
 */
#include "clock.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tw_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

/* ---- the table of store.h -------------------------------------------------------------------------------- */

static void a_task_that_is_put_is_there_after_reopening(void **state)
{
    struct tw_store_delayed task = {.queue = "q",
                                    .id = {"a\0b", 3},
                                    .due_ms = 1234567890123,
                                    .payload = tw_text("hello"),
                                    .every_ms = 60000,
                                    .times = 7,
                                    .missed = TW_MISSED_SKIP,
                                    .tries = 4,
                                    .backoff_ms = 250,
                                    .factor_percent = 115,
                                    .backoff_max_ms = 900,
                                    .jitter = 33,
                                    .max_late_ms = 300};
    struct seen seen = {.text = ""};
    assert_int_equal(store_put(store_of(state), &task, 0), 1);
    store_reopen(*state);
    assert_int_equal(tw_store_get(store_of(state), (struct tw_store_name){"q", {"a\0b", 3}}, see, &seen), 0);
    assert_int_equal(seen.last.id.size, 3);
    assert_int_equal(seen.last.due_ms, 1234567890123);
    assert_string_equal(seen.payload, "hello");
    assert_int_equal(seen.last.payload.size, 5);
    assert_int_equal(seen.last.every_ms, 60000);
    assert_int_equal(seen.last.times, 7);
    assert_int_equal(seen.last.missed, TW_MISSED_SKIP);
    assert_int_equal(seen.last.tries, 4);
    assert_int_equal(seen.last.backoff_ms, 250);
    assert_int_equal(seen.last.factor_percent, 115);
    assert_int_equal(seen.last.backoff_max_ms, 900);
    assert_int_equal(seen.last.jitter, 33);
    assert_int_equal(seen.last.max_late_ms, 300);
    assert_int_equal(seen.last.attempt, 0);
    assert_int_equal(seen.last.state, TW_STATE_WAITING);
    clock_stop(1234567890123);
    assert_int_equal(tw_store_get(store_of(state), (struct tw_store_name){"q", {"a\0b", 3}}, see, &seen), 0);
    assert_int_equal(seen.last.state, TW_STATE_READY);
    clock_stop(1);
    assert_int_equal(tw_store_get(store_of(state), tw_store_named("q", "a"), see, &seen), TW_EGONE);
    assert_int_equal(tw_store_get(store_of(state), (struct tw_store_name){"other", {"a\0b", 3}}, see, &seen),
                     TW_EGONE);
}

static void a_put_replaces_everything_of_a_waiting_task(void **state)
{
    struct tw_store_delayed task = {.queue = "q",
                                    .id = tw_text("a"),
                                    .due_ms = 10,
                                    .payload = tw_text("old"),
                                    .every_ms = 5,
                                    .times = 3,
                                    .tries = 9,
                                    .backoff_ms = 8,
                                    .factor_percent = 10000,
                                    .backoff_max_ms = 3155760000000,
                                    .jitter = TW_STORE_NO_JITTER,
                                    .max_late_ms = TW_STORE_ON_TIME,
                                    .missed = TW_MISSED_BURST};
    struct seen before = {.text = ""}, after = {.text = ""};
    store_put(store_of(state), &task, 0);
    tw_store_get(store_of(state), tw_store_named("q", "a"), see, &before);
    assert_true(before.last.max_late_ms == TW_STORE_ON_TIME);
    assert_int_equal(before.last.jitter, TW_STORE_NO_JITTER);
    assert_int_equal(put(store_of(state), "a", 20), 1);
    tw_store_get(store_of(state), tw_store_named("q", "a"), see, &after);
    assert_true(after.last.max_late_ms == TW_FOREVER);
    assert_true(after.last.revision > before.last.revision);
    assert_int_equal(after.last.due_ms, 20);
    assert_int_equal(after.last.payload.size, 0);
    assert_int_equal(after.last.every_ms, 0);
    assert_int_equal(after.last.times, 1);
    assert_int_equal(after.last.missed, TW_MISSED_COALESCE);
    assert_int_equal(after.last.tries, 20);
    assert_int_equal(after.last.backoff_ms, 1000);
    assert_int_equal(after.last.factor_percent, 200);
    assert_int_equal(after.last.backoff_max_ms, 3600000);
    assert_int_equal(after.last.jitter, 10);
    assert_string_equal(scan(store_of(state), NULL), "a@20");
    store_put(store_of(state), &task, 0);
    tw_store_get(store_of(state), tw_store_named("q", "a"), see, &after);
    assert_string_equal(after.payload, "old");
    assert_int_equal(after.last.every_ms, 5);
    assert_int_equal(after.last.times, 3);
    assert_int_equal(after.last.missed, TW_MISSED_BURST);
    assert_int_equal(after.last.tries, 9);
    assert_int_equal(after.last.backoff_ms, 8);
    assert_int_equal(after.last.factor_percent, 10000);
    assert_int_equal(after.last.backoff_max_ms, 3155760000000);
    assert_int_equal(after.last.jitter, TW_STORE_NO_JITTER);
    assert_int_equal(after.last.max_late_ms, TW_STORE_ON_TIME);
}

static void a_move_keeps_all_but_the_time(void **state)
{
    struct tw_store_delayed task = {.queue = "q",
                                    .id = tw_text("a"),
                                    .due_ms = 10,
                                    .payload = tw_text("old"),
                                    .every_ms = 5,
                                    .times = TW_FOREVER};
    struct seen seen = {.text = ""};
    store_put(store_of(state), &task, 0);
    assert_int_equal(store_move_at(store_of(state), tw_store_named("q", "a"), 77, 0), 1);
    tw_store_get(store_of(state), tw_store_named("q", "a"), see, &seen);
    assert_string_equal(seen.text, "a@77");
    assert_string_equal(seen.payload, "old");
    assert_int_equal(seen.last.times, TW_FOREVER);
    assert_int_equal(seen.last.revision, 2);
    assert_int_equal(store_move_at(store_of(state), tw_store_named("q", "b"), 77, 0), TW_EGONE);
    assert_int_equal(store_move_at(store_of(state), tw_store_named("p", "a"), 77, 0), TW_EGONE);
}

static void a_cancelled_task_is_gone_at_once(void **state)
{
    put(store_of(state), "a", 10);
    put(store_of(state), "b", 10);
    assert_int_equal(cancel(store_of(state), "a"), TW_CANCEL_CANCELLED);
    assert_int_equal(cancel(store_of(state), "a"), TW_CANCEL_GONE);
    assert_string_equal(scan(store_of(state), NULL), "b@10");
    assert_int_equal(tw_store_cancel(store_of(state), tw_store_named("q", "b"), NULL), 0);
    assert_string_equal(scan(store_of(state), NULL), "");
}

/* The states that only a runner makes are written by hand here. */
static void the_table_holds_for_running_tasks(void **state)
{
    struct tw_store *store = store_of(state);
    struct seen seen = {.text = ""};
    sqlite3 *db = other_open(*state);
    put(store, "a", 10), put(store, "b", 10), put(store, "c", 10);
    other_ask(db, "UPDATE tw_meta SET run = 5;"
                  "UPDATE tw_task SET run = 5, attempt = 1, due_ms = 4");
    assert_string_equal(scan(store, NULL), "a@4* b@4* c@4*");
    assert_int_equal(tw_store_get(store, tw_store_named("q", "a"), see, &seen), 0);
    assert_int_equal(seen.last.next_ms, 10);
    assert_int_equal(put(store, "a", 30), 1);
    assert_int_equal(store_move_at(store, tw_store_named("q", "b"), 20, 0), 1);
    assert_int_equal(cancel(store, "c"), TW_CANCEL_AT_WORK);
    assert_string_equal(scan(store, NULL), "b@20* a@30*");
    assert_string_equal(other_ask(db, "SELECT sum(attempt) || sum(replaced) FROM tw_task"), "02");
    assert_string_equal(other_ask(db, "SELECT count(*) FROM tw_task WHERE next_ms = due_ms"), "2");
    tw_store_get(store, tw_store_named("q", "a"), see, &seen);
    assert_int_equal(seen.last.next_ms, 30);
    assert_true(seen.last.replaced && seen.last.attempt == 1);
    other_ask(db, "UPDATE tw_task SET run = 4"); /* of a process that is dead */
    assert_string_equal(scan(store, NULL), "b@20 a@30");
    assert_int_equal(cancel(store, "a"), TW_CANCEL_CANCELLED);
    sqlite3_close(db);
}

static void the_table_holds_for_dead_tasks(void **state)
{
    static const struct tw_store_range dead = {.states = TW_STATE_DEAD};
    struct tw_store *store = store_of(state);
    struct seen seen = {.text = ""};
    sqlite3 *db = other_open(*state);
    put(store, "a", 10), put(store, "b", 10), put(store, "c", 10);
    other_ask(db, "UPDATE tw_task SET dead_ms = 1000 - revision, error = 'no paper'");
    assert_string_equal(scan(store, NULL), "");
    assert_string_equal(scan(store, &dead), "c@10! b@10! a@10!"); /* in the order of their deaths */
    assert_int_equal(tw_store_get(store, tw_store_named("q", "a"), see, &seen), 0);
    assert_int_equal(seen.last.dead_ms, 999);
    assert_string_equal(seen.error, "no paper");
    assert_int_equal(put_if(store, "a", 30, TW_CONDITION_NX), 0);
    assert_int_equal(store_move_at(store, tw_store_named("q", "b"), 20, 0), TW_EDEAD);
    assert_int_equal(store_move_at(store, tw_store_named("q", "b"), 20, TW_CONDITION_GT), TW_EDEAD);
    assert_int_equal(put(store, "a", 30), 1);
    assert_int_equal(put_if(store, "b", 10, TW_CONDITION_GT), 0);
    assert_int_equal(put_if(store, "b", 11, TW_CONDITION_LT), 0);
    assert_string_equal(scan(store, &dead), "c@10! b@10!");
    assert_int_equal(put_if(store, "b", 11, TW_CONDITION_GT), 1);
    assert_int_equal(cancel(store, "c"), TW_CANCEL_CANCELLED);
    assert_string_equal(scan(store, &dead), "");
    assert_string_equal(scan(store, NULL), "b@11 a@30");
    assert_string_equal(other_ask(db, "SELECT count(*) FROM tw_task WHERE error IS NOT NULL"), "0");
    sqlite3_close(db);
}

/* ---- conditions ------------------------------------------------------------------------------------------ */

static void conditions_keep_the_task_as_it_was(void **state)
{
    struct tw_store *store = store_of(state);
    assert_int_equal(put_if(store, "a", 50, TW_CONDITION_XX), 0);
    assert_string_equal(scan(store, NULL), "");
    assert_int_equal(put_if(store, "a", 50, TW_CONDITION_NX), 1);
    assert_int_equal(put_if(store, "a", 60, TW_CONDITION_NX), 0);
    assert_int_equal(put_if(store, "a", 60, TW_CONDITION_XX), 1);
    assert_int_equal(put_if(store, "a", 60, TW_CONDITION_GT), 0);
    assert_int_equal(put_if(store, "a", 61, TW_CONDITION_GT), 1);
    assert_int_equal(put_if(store, "a", 61, TW_CONDITION_LT), 0);
    assert_int_equal(put_if(store, "a", 60, TW_CONDITION_LT), 1);
    assert_int_equal(put_if(store, "b", 1, TW_CONDITION_GT), 1);
    assert_int_equal(put_if(store, "c", 2, TW_CONDITION_LT), 1);
    assert_int_equal(store_move_at(store, tw_store_named("q", "a"), 60, TW_CONDITION_GT), 0);
    assert_int_equal(store_move_at(store, tw_store_named("q", "a"), 70, TW_CONDITION_GT), 1);
    assert_int_equal(store_move_at(store, tw_store_named("q", "a"), 70, TW_CONDITION_LT), 0);
    assert_int_equal(store_move_at(store, tw_store_named("q", "a"), 65, TW_CONDITION_LT), 1);
    assert_int_equal(store_move_at(store, tw_store_named("q", "z"), 65, TW_CONDITION_LT), TW_EGONE);
    assert_string_equal(scan(store, NULL), "b@1 c@2 a@65");
}

/* ---- KEEPDUE --------------------------------------------------------------------------------------------- */

/* A task with other options than the next one, and a payload. */
static const struct tw_store_delayed first = {.queue = "q",
                                              .id = {"a", 1},
                                              .due_ms = 50,
                                              .payload = {"old", 3},
                                              .every_ms = 5,
                                              .times = 3,
                                              .missed = TW_MISSED_BURST,
                                              .tries = 9,
                                              .backoff_ms = 8,
                                              .max_late_ms = 70};
static const struct tw_store_delayed second = {.queue = "q",
                                               .id = {"a", 1},
                                               .due_ms = 90,
                                               .payload = {"newer", 5},
                                               .every_ms = 6,
                                               .missed = TW_MISSED_SKIP,
                                               .tries = 4,
                                               .backoff_ms = 11,
                                               .max_late_ms = TW_STORE_ON_TIME};

/* The task has the options of the second put. */
static void has_second_options(const struct seen *seen)
{
    assert_string_equal(seen->payload, "newer");
    assert_int_equal(seen->last.every_ms, 6);
    assert_true(seen->last.times == TW_FOREVER && seen->last.max_late_ms == TW_STORE_ON_TIME);
    assert_int_equal(seen->last.missed, TW_MISSED_SKIP);
    assert_int_equal(seen->last.tries, 4);
    assert_int_equal(seen->last.backoff_ms, 11);
}

static void keepdue_gives_a_waiting_task_new_options_in_its_place(void **state)
{
    struct seen before = {.text = ""}, after = {.text = ""};
    assert_int_equal(store_put(store_of(state), &first, 0), 1);
    put(store_of(state), "b", 50);
    assert_int_equal(tw_store_get(store_of(state), tw_store_named("q", "a"), see, &before), 0);
    clock_stop(60); /* it is ready by now, which does not matter */
    assert_int_equal(store_put(store_of(state), &second, TW_CONDITION_KEEPDUE), 1);
    clock_stop(1);
    store_reopen(*state);
    assert_int_equal(tw_store_get(store_of(state), tw_store_named("q", "a"), see, &after), 0);
    has_second_options(&after);
    assert_int_equal(after.last.due_ms, 50);
    assert_int_equal(after.last.next_ms, 50);
    assert_int_equal(after.last.place_ms, 50);
    assert_int_equal(after.last.revision, before.last.revision);
    assert_string_equal(scan(store_of(state), NULL), "a@50 b@50");
    assert_int_equal(put_if(store_of(state), "a", 7, TW_CONDITION_KEEPDUE | TW_CONDITION_XX), 1);
    assert_int_equal(tw_store_get(store_of(state), tw_store_named("q", "a"), see, &after), 0);
    assert_int_equal(after.last.every_ms, 0);
    assert_int_equal(after.last.times, 1);
    assert_int_equal(after.last.payload.size, 0);
    assert_string_equal(scan(store_of(state), NULL), "a@50 b@50");
}

/* A retry is of a period, and its call stands for others. A task that runs once has no periods. */
static void keepdue_leaves_the_attempts_of_a_retry_alone(void **state)
{
    struct seen seen = {.text = ""};
    sqlite3 *db = other_open(*state);
    assert_int_equal(store_put(store_of(state), &first, 0), 1);
    other_ask(db, "UPDATE tw_meta SET run = 5; UPDATE tw_task SET attempt = 3, lapses = 1, missed_periods = 2,"
                  " run = 4, token = 44, error = 'full', next_ms = 80, place_ms = 80"); /* run 4 has ended */
    assert_int_equal(store_put(store_of(state), &second, TW_CONDITION_KEEPDUE), 1);
    assert_int_equal(tw_store_get(store_of(state), tw_store_named("q", "a"), see, &seen), 0);
    has_second_options(&seen);
    assert_int_equal(seen.last.state, TW_STATE_WAITING);
    assert_int_equal(seen.last.due_ms, 50);
    assert_int_equal(seen.last.next_ms, 80);
    assert_int_equal(seen.last.attempt, 3);
    assert_int_equal(seen.last.missed_periods, 1); /* as many as lie in the same time */
    assert_string_equal(seen.error, "full");
    assert_string_equal(other_ask(db, "SELECT lapses || ' ' || run || ' ' || token FROM tw_task"), "1 4 44");
    assert_int_equal(put_if(store_of(state), "a", 7, TW_CONDITION_KEEPDUE), 1);
    assert_string_equal(other_ask(db, "SELECT attempt || ' ' || missed_periods || ' ' || next_ms FROM tw_task"),
                        "3 0 80");
    sqlite3_close(db);
}

static void keepdue_lets_the_attempt_of_a_series_go_on(void **state)
{
    struct seen seen = {.text = ""};
    sqlite3 *db = other_open(*state);
    assert_int_equal(store_put(store_of(state), &first, 0), 1);
    other_ask(db, "UPDATE tw_meta SET run = 5; UPDATE tw_task SET run = 5, attempt = 2, token = 55");
    assert_int_equal(store_put(store_of(state), &second, TW_CONDITION_KEEPDUE), 1);
    assert_int_equal(tw_store_get(store_of(state), tw_store_named("q", "a"), see, &seen), 0);
    has_second_options(&seen);
    assert_true(seen.last.state == TW_STATE_LEASED && !seen.last.replaced);
    assert_int_equal(seen.last.due_ms, 50);
    assert_int_equal(seen.last.attempt, 2);
    assert_string_equal(other_ask(db, "SELECT revision || ' ' || token FROM tw_task"), "1 55");
    sqlite3_close(db);
}

/* One of the two runs once. So the new task stands behind the attempt, and is due now. */
static void keepdue_is_due_now_behind_another_attempt(void **state)
{
    struct tw_store *store = store_of(state);
    struct seen seen = {.text = ""};
    sqlite3 *db = other_open(*state);
    assert_int_equal(put(store, "a", 50), 1);
    other_ask(db, "UPDATE tw_meta SET run = 5; UPDATE tw_task SET run = 5, attempt = 2, token = 55");
    clock_stop(70);
    assert_int_equal(store_put(store, &second, TW_CONDITION_KEEPDUE), 1);
    assert_int_equal(tw_store_get(store, tw_store_named("q", "a"), see, &seen), 0);
    has_second_options(&seen);
    assert_true(seen.last.state == TW_STATE_LEASED && seen.last.replaced && seen.last.attempt == 2);
    assert_int_equal(seen.last.due_ms, 70);
    assert_int_equal(seen.last.next_ms, 70);
    assert_int_equal(seen.last.revision, 2);
    clock_stop(75);
    assert_int_equal(put_if(store, "a", 7, TW_CONDITION_KEEPDUE), 1); /* of the task behind */
    assert_string_equal(
        other_ask(db, "SELECT due_ms || ' ' || revision || ' ' || token || ' ' || replaced || every_ms"
                      " FROM tw_task"),
        "70 2 55 20");
    other_ask(db, "UPDATE tw_task SET replaced = 0, attempt = 1, every_ms = 5");
    assert_int_equal(put_if(store, "a", 7, TW_CONDITION_KEEPDUE), 1); /* the series ends */
    assert_string_equal(scan(store, NULL), "a@75*");
    assert_string_equal(other_ask(db, "SELECT attempt || replaced || ' ' || revision FROM tw_task"), "01 3");
    clock_stop(1);
    sqlite3_close(db);
}

static void keepdue_files_a_task_that_is_dead_or_missing(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    assert_int_equal(put_if(store, "a", 50, TW_CONDITION_KEEPDUE | TW_CONDITION_XX), 0);
    assert_int_equal(put_if(store, "a", 50, TW_CONDITION_KEEPDUE | TW_CONDITION_NX), 1);
    assert_int_equal(put_if(store, "a", 60, TW_CONDITION_KEEPDUE | TW_CONDITION_NX), 0);
    assert_int_equal(put_if(store, "b", 40, TW_CONDITION_KEEPDUE), 1);
    assert_string_equal(scan(store, NULL), "b@40 a@50");
    other_ask(db, "UPDATE tw_task SET dead_ms = 7, attempt = 2, error = 'no paper'");
    assert_int_equal(put_if(store, "a", 60, TW_CONDITION_KEEPDUE | TW_CONDITION_NX), 0);
    assert_int_equal(put_if(store, "a", 60, TW_CONDITION_KEEPDUE), 1);
    assert_string_equal(scan(store, NULL), "a@60");
    assert_string_equal(other_ask(db, "SELECT count(*) FROM tw_task WHERE due_ms = 60 AND attempt = 0"
                                      " AND error IS NULL"),
                        "1");
    sqlite3_close(db);
}

/* ---- order, pages, counts -------------------------------------------------------------------------------- */

static void equal_due_times_come_in_the_order_of_filing(void **state)
{
    struct tw_store *store = store_of(state);
    put(store, "a", 10), put(store, "b", 10), put(store, "c", 10), put(store, "d", 9);
    put(store, "a", 10);
    store_move_at(store, tw_store_named("q", "b"), 10, 0);
    assert_string_equal(scan(store, NULL), "d@9 c@10 a@10 b@10");
}

static void a_scan_goes_on_after_a_page(void **state)
{
    struct tw_store *store = store_of(state);
    struct tw_store_range range = {.count = 2};
    struct seen seen = {.text = ""};
    put(store, "a", 0), put(store, "b", 10), put(store, "c", 10), put(store, "d", 10), put(store, "e", 11);
    while (store_scan(store, "q", &range, see, &seen) == 2) {
        range.from_ms = seen.last.place_ms;
        range.after = seen.last.revision;
        strcat(seen.text, " |");
    }
    assert_string_equal(seen.text, "a@0 b@10 | c@10 d@10 | e@11");
    range = (struct tw_store_range){.from_ms = 10, .to_ms = 10};
    assert_string_equal(scan(store, &range), "b@10 c@10 d@10");
    range = (struct tw_store_range){.from_ms = 2, .count = 1};
    assert_string_equal(scan(store, &range), "b@10");
    range = (struct tw_store_range){.states = TW_STATE_LEASED};
    assert_string_equal(scan(store, &range), "");
}

static void counts_and_the_next_task(void **state)
{
    struct tw_store *store = store_of(state);
    uint64_t next = 7;
    assert_int_equal(tw_store_next(store, "q", &next), 0);
    assert_int_equal(next, TW_NEVER);
    put(store, "a", 30), put(store, "b", 20);
    assert_int_equal(tw_store_next(store, "q", &next), 0);
    assert_int_equal(next, 20);
    assert_int_equal(store_count(store, "q", false), 2);
    assert_int_equal(store_count(store, "q", true), 0);
    assert_int_equal(store_count(store, "p", false), 0);
}

/* ---- many changes ---------------------------------------------------------------------------------------- */

static struct tw_store_change change(enum tw_store_verb verb, const char *id, uint64_t due_ms)
{
    struct tw_store_delayed task = {.queue = "q", .id = tw_text(id), .due_ms = due_ms};
    return (struct tw_store_change){.verb = verb, .task = task, .result = 99};
}

static void a_batch_makes_all_changes_in_order(void **state)
{
    struct tw_store_change changes[] = {
        change(TW_STORE_VERB_PUT, "a", 1),    change(TW_STORE_VERB_PUT, "b", 2),
        change(TW_STORE_VERB_MOVE, "a", 3),   change(TW_STORE_VERB_MOVE, "x", 3),
        change(TW_STORE_VERB_CANCEL, "b", 0), change(TW_STORE_VERB_CANCEL, "b", 0),
        change(TW_STORE_VERB_PUT, "b", 2),
    };
    static const int results[] = {1, 1, 1, TW_EGONE, TW_CANCEL_CANCELLED, TW_CANCEL_GONE, 1};
    assert_int_equal(tw_store_apply(store_of(state), changes, 7), 0);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(outcome_of(&changes[i]), results[i]);
    assert_string_equal(scan(store_of(state), NULL), "b@2 a@3");
    assert_int_equal(tw_store_apply(store_of(state), changes, 0), 0);
}

static void a_batch_with_one_bad_change_changes_nothing(void **state)
{
    struct tw_store_change changes[] = {change(TW_STORE_VERB_PUT, "a", 1), change(TW_STORE_VERB_PUT, "", 2)};
    assert_int_equal(tw_store_apply(store_of(state), changes, 2), TW_EINVAL);
    assert_string_equal(message(store_of(state)), "change 1: id has 0 bytes: expected 1 to 960");
    assert_string_equal(scan(store_of(state), NULL), "");
}

static void bad_verbs_and_conditions_are_refused(void **state)
{
    struct tw_store *store = store_of(state);
    struct tw_store_change odd = change((enum tw_store_verb)77, "a", 1);
    struct seen seen = {.text = ""};
    put(store, "a", 1);
    assert_int_equal(tw_store_apply(store, &odd, 1), TW_EINVAL);
    assert_string_equal(message(store), "verb is '77': expected 0 to 2");
    odd = change(TW_STORE_VERB_PUT, "a", 1);
    odd.reserved[1] = 7;
    assert_int_equal(tw_store_apply(store, &odd, 1), TW_EINVAL);
    assert_string_equal(
        message(store),
        "tw_store_change.reserved[1] is 7: expected 0; zero the struct first, or take a library "
        "as new as the headers");
    odd = change(TW_STORE_VERB_CANCEL, "a", 1);
    odd.task.reserved[3] = 8;
    assert_int_equal(tw_store_apply(store, &odd, 1), TW_EINVAL);
    assert_non_null(strstr(message(store), "tw_store_delayed.reserved[3] is 8: expected 0"));
    assert_int_equal(store_put(store, &odd.task, 0), TW_EINVAL);
    assert_int_equal(store_scan(store, "q", &(struct tw_store_range){.reserved[0] = 9}, see, &seen), TW_EINVAL);
    assert_non_null(strstr(message(store), "tw_store_range.reserved[0] is 9: expected 0"));
    assert_int_equal(put_if(store, "a", 2, TW_CONDITION_NX | TW_CONDITION_GT), TW_EINVAL);
    assert_string_equal(message(store), "the conditions are NX and GT: expected one of NX, XX, GT and LT");
    assert_int_equal(put_if(store, "a", 2, TW_CONDITION_KEEPDUE | TW_CONDITION_XX | TW_CONDITION_LT),
                     TW_EINVAL);
    assert_string_equal(message(store), "the conditions are XX and LT: expected one of NX, XX, GT and LT");
    assert_int_equal(put_if(store, "a", 2, TW_CONDITION_KEEPDUE | TW_CONDITION_LT), TW_EINVAL);
    assert_string_equal(message(store),
                        "the conditions are KEEPDUE and LT: expected KEEPDUE alone, or with NX or XX");
    assert_int_equal(put_if(store, "a", 2, 32), TW_EINVAL);
    assert_string_equal(message(store), "conditions is '32': expected 0 or NX, XX, GT, LT or KEEPDUE");
    assert_int_equal(store_move_at(store, tw_store_named("q", "a"), 2, TW_CONDITION_KEEPDUE), TW_EINVAL);
    assert_string_equal(message(store), "conditions is '16': expected 0 or GT or LT");
    assert_int_equal(store_move_at(store, tw_store_named("q", "a"), 2, TW_CONDITION_NX), TW_EINVAL);
    assert_string_equal(message(store), "conditions is '1': expected 0 or GT or LT");
    odd = change(TW_STORE_VERB_CANCEL, "a", 1);
    odd.conditions = TW_CONDITION_XX;
    assert_int_equal(tw_store_apply(store, &odd, 1), TW_EINVAL);
    assert_int_equal(tw_store_get(store, (struct tw_store_name){"q", {"a", (size_t)1 << 32 | 1}}, see, &seen),
                     TW_EINVAL);
    assert_int_equal(store_scan(store, "q", &(struct tw_store_range){.states = 9}, see, &seen), TW_EINVAL);
    assert_string_equal(message(store),
                        "states is '9': expected 1 (waiting), 2 (ready) and 4 (leased), added, or 8 (dead)");
    assert_int_equal(
        store_scan(store, "q", &(struct tw_store_range){.from_ms = 2, .to_ms = 1, .after = 1}, see, &seen), 0);
    assert_string_equal(scan(store, NULL), "a@1");
}

static void a_result_that_is_an_error_has_its_message(void **state)
{
    struct tw_store *store = store_of(state);
    struct seen seen = {.text = ""};
    assert_int_equal(put(store, "", 1), TW_EINVAL);
    assert_int_equal(store_move_at(store, tw_store_named("q", "a"), 2, 0), TW_EGONE);
    assert_string_equal(message(store), tw_store_strerror(TW_EGONE));
    assert_int_equal(put(store, "", 1), TW_EINVAL);
    assert_int_equal(tw_store_get(store, tw_store_named("q", "a"), see, &seen), TW_EGONE);
    assert_string_equal(message(store), tw_store_strerror(TW_EGONE));
}

/* ---- bad arguments --------------------------------------------------------------------------------------- */

static void refused(struct tw_store *store, struct tw_store_delayed task, const char *text)
{
    if (task.queue == NULL)
        task.queue = "q";
    if (task.id.data == NULL)
        task.id = tw_text("a");
    assert_int_equal(store_put(store, &task, 0), TW_EINVAL);
    assert_string_equal(message(store), text);
    assert_string_equal(scan(store, NULL), "");
}

static void a_delay_counts_from_now(void **state)
{
    struct tw_store *store = store_of(state);
    struct tw_store_name name = tw_store_named("q", "a");
    struct seen seen = {.text = ""};
    bool made = false;
    put(store, "a", 5);
    assert_int_equal(tw_store_move_in(store, name, 1000, 0, &made), 0);
    assert_true(made);
    assert_int_equal(tw_store_get(store, name, see, &seen), 0);
    assert_int_equal(seen.last.due_ms, 1001); /* the clock stands at 1 */
    assert_int_equal(tw_store_move_in(store, name, 500, TW_CONDITION_GT, &made), 0);
    assert_false(made);
    assert_int_equal(tw_store_move_in(store, name, UINT64_MAX, 0, &made), TW_EINVAL);
    assert_string_equal(message(store), "delay_ms is '18446744073709551615': expected 0 to 253402300799998");
    assert_int_equal(tw_store_move_in(store, tw_store_named("q", "none"), 0, 0, &made), TW_EGONE);
}

static void an_outcome_may_be_left_out(void **state)
{
    struct tw_store *store = store_of(state);
    struct tw_store_delayed task = {.queue = "q", .id = tw_text("a"), .due_ms = 5};
    struct tw_store_name name = tw_store_named("q", "a");
    assert_int_equal(tw_store_put(store, &task, 0, NULL), 0);
    assert_int_equal(tw_store_move_at(store, name, 7, 0, NULL), 0);
    assert_int_equal(tw_store_promote(store, name, NULL), 0);
    assert_int_equal(tw_store_replay(store, name, 7, NULL), 0);
    assert_int_equal(tw_store_purge(store, name, 7, NULL), 0);
    assert_int_equal(tw_store_pause(store, "q", NULL), 0);
    assert_int_equal(tw_store_mark_restored(store, true, NULL), 0);
    assert_int_equal(store_is_paused(store, "q"), 1);
    assert_int_equal(tw_store_resume(store, "q", NULL), 0);
    assert_int_equal(store_is_paused(store, "q"), 0);
    assert_int_equal(store_is_restored(store), 1);
    assert_string_equal(scan(store, NULL), "a@7");
}

static void an_error_leaves_the_outcome_as_it_was(void **state)
{
    struct tw_store *store = store_of(state);
    struct tw_store_delayed task = {.queue = "", .id = tw_text("a"), .due_ms = 5};
    struct tw_store_name bad = tw_store_named("q", "");
    bool flag = true;
    uint64_t count = 7;
    assert_int_equal(tw_store_put(store, &task, 0, &flag), TW_EINVAL);
    assert_int_equal(tw_store_move_at(store, tw_store_named("q", "none"), 1, 0, &flag), TW_EGONE);
    assert_int_equal(tw_store_pause(store, "", &flag), TW_EINVAL);
    assert_int_equal(tw_store_resume(store, "", &flag), TW_EINVAL);
    assert_int_equal(tw_store_is_paused(store, "", &flag), TW_EINVAL);
    assert_int_equal(tw_store_promote(store, bad, &count), TW_EINVAL);
    assert_int_equal(tw_store_replay(store, bad, 5, &count), TW_EINVAL);
    assert_int_equal(tw_store_purge(store, bad, 5, &count), TW_EINVAL);
    assert_true(flag);
    assert_int_equal(count, 7);
}

static void bad_arguments_are_named_with_their_range(void **state)
{
    static char big[1000001];
    struct tw_store *store = store_of(state);
    refused(store, (struct tw_store_delayed){.queue = ""}, "queue has 0 bytes: expected 1 to 255");
    memset(big, 'x', 256);
    refused(store, (struct tw_store_delayed){.queue = big}, "queue has 256 bytes: expected 1 to 255");
    static const struct {
        const char *queue, *text;
    } bad[] = {{"\x80", "queue is '\\x80': expected UTF-8"},
               {"a\xc3", "queue is 'a\\xc3': expected UTF-8"},
               {"\xc0\xaf", "queue is '\\xc0\\xaf': expected UTF-8"},
               {"\xe0\x80\x80", "queue is '\\xe0\\x80\\x80': expected UTF-8"},
               {"\xed\xa0\x80", "queue is '\\xed\\xa0\\x80': expected UTF-8"},
               {"\xf4\x90\x80\x80", "queue is '\\xf4\\x90\\x80\\x80': expected UTF-8"},
               {"\xf5\x80\x80\x80", "queue is '\\xf5\\x80\\x80\\x80': expected UTF-8"},
               {"\xe2\x82", "queue is '\\xe2\\x82': expected UTF-8"},
               {"\xf0\x8f\xbf\xbf", "queue is '\\xf0\\x8f\\xbf\\xbf': expected UTF-8"},
               {"\xc3\x28", "queue is '\\xc3(': expected UTF-8"},
               {"\xc3\xa9\t\xff", "queue is '\xc3\xa9\\x09\\xff': expected UTF-8"},
               {"\xff", "queue is '\\xff': expected UTF-8"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused(store, (struct tw_store_delayed){.queue = bad[i].queue}, bad[i].text);
    refused(store, (struct tw_store_delayed){.id = {big, 961}}, "id has 961 bytes: expected 1 to 960");
    refused(store, (struct tw_store_delayed){.due_ms = TW_STORE_TIME_MAX + 1},
            "due_ms is '253402300800000': expected 0 to 253402300799999");
    refused(store, (struct tw_store_delayed){.payload = {big, sizeof big}},
            "payload has 1000001 bytes: expected at most 1000000");
    refused(store, (struct tw_store_delayed){.payload.size = 3}, "payload has 3 bytes: expected at most 0");
    refused(store, (struct tw_store_delayed){.every_ms = UINT64_C(3155760000001)},
            "every_ms is '3155760000001': expected 0 to 3155760000000");
    refused(store, (struct tw_store_delayed){.times = 1}, "times is 1: expected every_ms too");
    refused(store, (struct tw_store_delayed){.times = 2}, "times is 2: expected every_ms too");
    refused(store, (struct tw_store_delayed){.times = UINT64_C(1) << 63, .every_ms = 1},
            "times is '9223372036854775808': expected 0 to 9223372036854775807");
    refused(store, (struct tw_store_delayed){.missed = (enum tw_missed)3},
            "missed is '3': expected burst, skip or coalesce");
    refused(store, (struct tw_store_delayed){.missed = TW_MISSED_SKIP},
            "missed is skip: expected every_ms too");
    refused(store, (struct tw_store_delayed){.tries = 1000001}, "tries is '1000001': expected 0 to 1000000");
    refused(store, (struct tw_store_delayed){.backoff_ms = 3155760000001},
            "backoff_ms is '3155760000001': expected 0 to 3155760000000");
    refused(store, (struct tw_store_delayed){.factor_percent = 99},
            "factor_percent is '99': expected 0, or 100 to 10000");
    refused(store, (struct tw_store_delayed){.factor_percent = 10001},
            "factor_percent is '10001': expected 0, or 100 to 10000");
    refused(store, (struct tw_store_delayed){.backoff_max_ms = 3155760000001},
            "backoff_max_ms is '3155760000001': expected 0 to 3155760000000");
    refused(store, (struct tw_store_delayed){.jitter = 101}, "jitter is '101': expected 0 to 100");
    refused(store, (struct tw_store_delayed){.max_late_ms = 3155760000001},
            "max_late_ms is '3155760000001': expected 0 to 3155760000000");
    assert_int_equal(store_move_at(store, tw_store_named("q", "a"), UINT64_MAX, 0), TW_EINVAL);
    assert_int_equal(tw_store_cancel(store, tw_store_named("", "a"), NULL), TW_EINVAL);
}

static void the_longest_names_and_the_last_time_are_taken(void **state)
{
    char queue[256], id[960];
    struct seen seen = {.text = ""};
    memset(queue, 'q', 255), queue[255] = '\0', memset(id, 0xff, sizeof id);
    memcpy(queue, "\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80\xc2\x80", 12);
    struct tw_store_delayed task = {.queue = queue, .id = {id, sizeof id}, .due_ms = TW_STORE_TIME_MAX};
    assert_int_equal(store_put(store_of(state), &task, 0), 1);
    assert_int_equal(tw_store_get(store_of(state), (struct tw_store_name){queue, {id, sizeof id}}, see, &seen),
                     0);
    assert_int_equal(seen.last.due_ms, TW_STORE_TIME_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

/* ---- many changes ---------------------------------------------------------------------------------------- */

enum { MANY = 200 };
enum kind { ALL_NEW, ONE_TWICE, OTHER_VERBS, OPTIONS, OTHER_QUEUE, SOME_THERE, KINDS };

/* Makes puts to a queue, the most of them for tasks that are not there. */
static void fill_changes(struct tw_store_change *changes, char ids[][8], const char *queue, enum kind kind)
{
    for (int i = 0; i < MANY; i++) {
        snprintf(ids[i], sizeof ids[i], "%d", i);
        changes[i] = change(TW_STORE_VERB_PUT, ids[i], (uint64_t)(i * 7 % 50));
        changes[i].task.queue = queue;
        changes[i].task.payload = (struct tw_bytes){i % 3 > 0 ? ids[i] : NULL, (size_t)(i % 3 / 2)};
    }
    if (kind == ONE_TWICE)
        changes[150].task.id = tw_text(ids[140]);
    if (kind == OTHER_VERBS) {
        changes[70] = change(TW_STORE_VERB_MOVE, ids[3], 99);
        changes[71] = change(TW_STORE_VERB_CANCEL, ids[4], 0);
        changes[72] = change(TW_STORE_VERB_PUT, ids[5], 99);
        changes[72].conditions = TW_CONDITION_NX;
        changes[70].task.queue = changes[71].task.queue = changes[72].task.queue = queue;
    }
    if (kind == OPTIONS) {
        changes[10].task.every_ms = 10;
        changes[45].task.tries = 3;
        changes[80].task.backoff_ms = 4;
        changes[115].task.factor_percent = 150;
        changes[140].task.backoff_max_ms = 6;
        changes[175].task.jitter = 7;
        changes[199].task.max_late_ms = TW_STORE_ON_TIME;
        changes[100].task.max_late_ms = TW_FOREVER;
    }
    if (kind == OTHER_QUEUE)
        changes[90].task.queue = "p";
}

/* Files tasks before the changes: a dead one, one that a run has, and one with options. */
static void fill_before(sqlite3 *db, const char *queue)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "UPDATE tw_meta SET run = 5; INSERT INTO tw_put(queue, id, due_ms, every_ms, tries) VALUES"
             " ('%s', '100', 1, NULL, NULL), ('%s', '101', 1, NULL, NULL), ('%s', '102', 1, 7, 3);"
             "UPDATE tw_task SET dead_ms = 2, error = 'x' WHERE id = x'313030';"
             "UPDATE tw_task SET run = 5, token = 9, attempt = 2 WHERE id = x'313031'",
             queue, queue, queue);
    other_ask(db, sql);
}

static const char *const difference =
    "WITH tasks AS (SELECT queue, row_number() OVER (PARTITION BY queue ORDER BY revision) AS place, id, "
    "due_ms,"
    " next_ms, place_ms, attempt, lapses, run, token, replaced, dead_ms, every_ms, times, missed,"
    " missed_periods, tries, backoff_ms, factor, backoff_max_ms, jitter, max_late_ms, error, payload FROM "
    "tw_task)"
    " SELECT count(*) FROM (SELECT * FROM tasks WHERE queue <> 'p' GROUP BY place, id, due_ms, next_ms, "
    "place_ms,"
    " attempt, lapses, run, token, replaced, dead_ms, every_ms, times, missed, missed_periods, tries, "
    "backoff_ms,"
    " factor, backoff_max_ms, jitter, max_late_ms, error, payload HAVING count(*) <> 2)";

static void many_changes_are_as_each_alone(void **state)
{
    static struct tw_store_change together[MANY], alone[MANY];
    static char ids[MANY][8];
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    clock_stop(20);
    for (int kind = 0; kind < KINDS; kind++) {
        other_ask(db, "DELETE FROM tw_task");
        fill_changes(together, ids, "q", (enum kind)kind);
        fill_changes(alone, ids, "r", (enum kind)kind);
        if (kind == SOME_THERE) {
            fill_before(db, "q");
            fill_before(db, "r");
        }
        assert_int_equal(tw_store_apply(store, together, MANY), 0);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(tw_store_apply(store, &alone[i], 1), 0);
            assert_int_equal(outcome_of(&together[i]), outcome_of(&alone[i]));
        }
        assert_string_equal(other_ask(db, difference), "0");
        assert_string_equal(other_ask(db, "SELECT count(*) FROM tw_task WHERE queue = 'q'"),
                            kind == ALL_NEW || kind == OPTIONS || kind == SOME_THERE ? "200"
                            : kind == OTHER_VERBS                                    ? "196"
                                                                                     : "199");
    }
    sqlite3_close(db);
    clock_stop(1);
}

/* The clock stands at the beginning of 1970, so small due times lie ahead. */
int main(void)
{
    clock_stop(1);
    static const struct CMUnitTest tests[] = {
        TEST(a_task_that_is_put_is_there_after_reopening),
        TEST(a_put_replaces_everything_of_a_waiting_task),
        TEST(a_move_keeps_all_but_the_time),
        TEST(a_cancelled_task_is_gone_at_once),
        TEST(the_table_holds_for_running_tasks),
        TEST(the_table_holds_for_dead_tasks),
        TEST(conditions_keep_the_task_as_it_was),
        TEST(keepdue_gives_a_waiting_task_new_options_in_its_place),
        TEST(keepdue_leaves_the_attempts_of_a_retry_alone),
        TEST(keepdue_lets_the_attempt_of_a_series_go_on),
        TEST(keepdue_is_due_now_behind_another_attempt),
        TEST(keepdue_files_a_task_that_is_dead_or_missing),
        TEST(equal_due_times_come_in_the_order_of_filing),
        TEST(a_scan_goes_on_after_a_page),
        TEST(counts_and_the_next_task),
        TEST(a_batch_makes_all_changes_in_order),
        TEST(a_batch_with_one_bad_change_changes_nothing),
        TEST(bad_verbs_and_conditions_are_refused),
        TEST(a_result_that_is_an_error_has_its_message),
        TEST(a_delay_counts_from_now),
        TEST(an_outcome_may_be_left_out),
        TEST(an_error_leaves_the_outcome_as_it_was),
        TEST(bad_arguments_are_named_with_their_range),
        TEST(the_longest_names_and_the_last_time_are_taken),
        TEST(many_changes_are_as_each_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
