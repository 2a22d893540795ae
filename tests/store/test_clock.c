/* SPDX-License-Identifier: MIT
 *
 * The system's clock goes on, or is set, while a store runs. The test holds it (clock.h).
 */
#include "clock.h"
#include "running.h"

#include <src/store/runner.h>
#include <stdio.h>
#include <string.h>

enum { MINUTE_MS = 60000, HOUR_MS = 3600000 };

static int setup(void **state)
{
    clock_stop(0);
    return store_setup(state);
}

static int teardown(void **state)
{
    int error = store_teardown(state);
    clock_go();
    return error;
}

static struct tw_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

static void a_clock_that_is_set_forwards_makes_tasks_due(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    put(store, "near", tw_store_now() + 120000);
    put(store, "far", tw_store_now() + 2 * HOUR_MS);
    put(store, "later", tw_store_now() + 9 * HOUR_MS);
    start_with(store, &calls);
    runner_idle(store);
    assert_int_equal(attempts(store), 0);
    clock_step(3 * HOUR_MS);
    wait_for_calls(&calls, 2);
    assert_true(strcmp(calls.text, "near/1 far/1") == 0 || strcmp(calls.text, "far/1 near/1") == 0);
    runner_idle(store);
    assert_int_equal(attempts(store), 2);
    assert_int_equal(tw_store_stop(store), 0);
}

static void a_clock_that_is_set_back_lets_tasks_wait(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    put(store, "x", tw_store_now() + 150);
    put(store, "y", tw_store_now() + 2 * HOUR_MS);
    start_with(store, &calls);
    runner_idle(store);
    clock_step(-HOUR_MS);
    runner_idle(store);
    clock_pass(300);
    runner_idle(store);
    assert_int_equal(attempts(store), 0);
    put(store, "now", tw_store_now() + 20);
    runner_idle(store);
    clock_pass(20);
    assert_string_equal(wait_for_calls(&calls, 1), "now/1");
    clock_step(HOUR_MS);
    assert_string_equal(wait_for_calls(&calls, 2), "now/1 x/1");
    runner_idle(store);
    assert_int_equal(attempts(store), 2);
    assert_int_equal(tw_store_stop(store), 0);
}

/* A job that is under way meanwhile is neither lost nor called twice. */
static void a_step_leaves_jobs_alone(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    calls.block = true;
    calls.answer = TW_ANSWER_FAILED;
    calls.answers = 1;
    struct tw_store_delayed task = {
        .queue = "q", .id = tw_text("x"), .due_ms = tw_store_now(), .tries = 2, .backoff_ms = 20};
    assert_int_equal(store_put(store, &task, 0), 1);
    start_with(store, &calls);
    clock_pass(1);
    wait_for_calls(&calls, 1);
    clock_step(-HOUR_MS);
    runner_idle(store);
    clock_step(2 * HOUR_MS);
    runner_idle(store);
    assert_int_equal(attempts(store), 1);
    unblock(&calls);
    wait_for_answers(store, 1);
    runner_idle(store);
    assert_int_equal(attempts(store), 1);
    clock_pass(22); /* a wait may be longer by a tenth */
    assert_string_equal(wait_for_calls(&calls, 2), "x/1 x/2");
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(store_count(store, "q", false), 0);
}

/* Tasks beyond the ten minutes that are loaded come in time, and nothing happens in between. */
static void the_window_moves_on(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    struct tw_store_info stats;
    calls_init(&calls);
    uint64_t now_ms = tw_store_now();
    put(store, "a", now_ms + 5000);
    put(store, "b", now_ms + 16 * MINUTE_MS);
    start_with(store, &calls);
    runner_idle(store);
    tw_store_stats(store, &stats, sizeof stats);
    assert_int_equal(stats.loaded, 1);
    clock_pass(6000);
    wait_for_calls(&calls, 1);
    wait_for_answers(store, 1);
    clock_pass(8 * MINUTE_MS);
    runner_idle(store);
    tw_store_stats(store, &stats, sizeof stats);
    assert_int_equal(stats.loaded, 1);
    assert_int_equal(stats.taken, 1);
    clock_pass(8 * MINUTE_MS);
    assert_string_equal(wait_for_calls(&calls, 2), "a/1 b/1");
    assert_int_equal(tw_store_stop(store), 0);
}

/* The window ends ten minutes after it was loaded. A task that is put for its last millisecond is in it. */
static void a_task_at_the_edge_of_the_window_is_called(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    uint64_t now_ms = tw_store_now();
    assert_int_equal(tw_store_handle(store, "q", 1, note_call, &calls), 0); /* one after the other */
    assert_int_equal(tw_store_start(store, NULL), 0);
    put(store, "first", 5);
    runner_idle(store);
    clock_pass(1); /* the tick in which it comes */
    wait_for_calls(&calls, 1);
    for (uint64_t i = 0; i < 3; i++) {
        char id[2] = {(char)('a' + i), 0};
        put(store, id, now_ms + 599999 + i);
    }
    runner_idle(store);
    clock_step((int64_t)(now_ms + 600002 - tw_store_now()));
    assert_string_equal(wait_for_calls(&calls, 4), "first/1 a/1 b/1 c/1");
    assert_int_equal(tw_store_stop(store), 0);
}

/* The next call of a task lies beyond the window when it is known, and within it later. */
static void a_call_beyond_the_window_comes_once(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    uint64_t now_ms = tw_store_now();
    struct tw_store_delayed task = {
        .queue = "q", .id = tw_text("x"), .due_ms = now_ms, .every_ms = 20 * MINUTE_MS, .times = 2};
    assert_int_equal(store_put(store, &task, 0), 1);
    start_with(store, &calls);
    clock_pass(1);
    wait_for_calls(&calls, 1);
    wait_for_answers(store, 1);
    clock_step(12 * MINUTE_MS);
    runner_idle(store);
    clock_step(9 * MINUTE_MS);
    wait_for_calls(&calls, 2);
    wait_for_answers(store, 2);
    runner_idle(store);
    assert_int_equal(attempts(store), 2);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(store_count(store, "q", false), 0);
}

static void a_step_is_noticed_when_the_timer_is_set(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    calls.block = true;
    put(store, "far", tw_store_now() + HOUR_MS);
    put(store, "x", 5);
    start_with(store, &calls);
    clock_pass(1);
    wait_for_calls(&calls, 1);
    runner_idle(store);
    clock_step_quietly(2 * HOUR_MS);
    unblock(&calls);
    assert_string_equal(wait_for_calls(&calls, 2), "x/1 far/1");
    wait_for_answers(store, 2);
    EVENTUALLY(!clock_step_is_untold());
    assert_int_equal(tw_store_stop(store), 0);
}

/* Also after a step that makes no task due, whoever tells of it. */
static void everything_is_looked_at_after_a_step(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    runner_look_away(true);
    start_with(store, &calls);
    runner_idle(store);
    uint64_t looks = runner_looks(store);
    clock_step(1000);
    EVENTUALLY(runner_looks(store) == looks + 1);
    runner_idle(store);
    clock_step_quietly(1000);
    put(store, "x", tw_store_now() + 5000);
    runner_idle(store); /* it sets the timer for "x" */
    assert_false(clock_step_is_untold());
    looks = runner_looks(store);
    clock_hurry(HOUR_MS);
    EVENTUALLY(runner_looks(store) == looks + 1);
    runner_look_away(false);
    assert_int_equal(attempts(store), 0);
    assert_int_equal(tw_store_stop(store), 0);
}

/* ---- tasks that were not seen yet ------------------------------------------------------------------------ */

/* Puts a task on another connection. Nobody tells the runner of it. */
static void put_unnoticed(sqlite3 *db, const char *id, uint64_t due_ms)
{
    char sql[120];
    snprintf(sql, sizeof sql, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', '%s', %llu)", id,
             (unsigned long long)due_ms);
    other_ask(db, sql);
}

static void start_in_turn(struct tw_store *store, struct calls *calls)
{
    calls_init(calls);
    assert_int_equal(tw_store_handle(store, "q", 1, note_call, calls), 0); /* one after the other */
    assert_int_equal(tw_store_start(store, NULL), 0);
}

/* A bug: time went on though the file was not looked at, and earlier tasks came after later ones. */
static void unseen_tasks_come_before_later_ones(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    uint64_t now_ms = tw_store_now();
    put(store, "k", now_ms + 700);
    start_in_turn(store, &calls);
    runner_idle(store);
    runner_look_away(true);
    put_unnoticed(db, "e1", now_ms + 650);
    put_unnoticed(db, "e2", now_ms + 600);
    put_unnoticed(db, "e3", now_ms + 550);
    clock_pass(800);
    assert_string_equal(wait_for_calls(&calls, 4), "e3/1 e2/1 e1/1 k/1");
    runner_look_away(false);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* Whether a thread makes a commit, or waits for the lock that it needs. */
static bool commits(struct tw_store *store)
{
    pthread_mutex_lock(&store->writer.lock);
    bool led = store->writer.led;
    pthread_mutex_unlock(&store->writer.lock);
    return led;
}

/* The same while a commit of ours waits for a lock: the time of that wait is not seen by any look. */
static void unseen_tasks_come_before_later_ones_after_a_lock(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    uint64_t now_ms = tw_store_now();
    put(store, "a", now_ms + 1);
    put(store, "k", now_ms + 700);
    start_in_turn(store, &calls);
    calls.block = true;
    clock_pass(1);
    wait_for_calls(&calls, 1);
    runner_idle(store);
    runner_look_away(true);
    other_ask(db, "BEGIN IMMEDIATE");
    put_unnoticed(db, "e1", now_ms + 650);
    put_unnoticed(db, "e2", now_ms + 600);
    unblock(&calls);
    EVENTUALLY(commits(store)); /* the answer waits for the lock */
    clock_pass(800);
    other_ask(db, "COMMIT");
    assert_string_equal(wait_for_calls(&calls, 4), "a/1 e2/1 e1/1 k/1");
    runner_look_away(false);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* Both are seen together. The late one was put when its time had passed for long. */
static void a_task_that_was_put_too_late_is_behind_those_that_are_due(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    uint64_t now_ms = tw_store_now();
    put(store, "k1", now_ms + 10);
    put(store, "k2", now_ms + 20);
    start_in_turn(store, &calls);
    runner_idle(store);
    runner_look_away(true);
    put_unnoticed(db, "late", 5);
    clock_pass(20);
    assert_string_equal(wait_for_calls(&calls, 3), "k1/1 k2/1 late/1");
    runner_look_away(false);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* Also behind those of other queues. */
static void a_task_that_was_put_too_late_overtakes_no_queue(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    uint64_t now_ms = tw_store_now();
    calls_init(&calls);
    put(store, "k1", now_ms + 10);
    put(store, "k2", now_ms + 20);
    assert_int_equal(tw_store_handle(store, NULL, 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, &(struct tw_store_run_options){.workers = 1, .max_jobs = 1}), 0);
    runner_idle(store);
    runner_look_away(true);
    other_ask(db, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('another', 'late', 5)");
    clock_pass(20);
    assert_string_equal(wait_for_calls(&calls, 3), "k1/1 k2/1 late/1");
    runner_look_away(false);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* A look is for all tasks that are due together, and none is made while nothing is due. */
static void a_look_comes_with_the_time_that_it_is_for(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    uint64_t now_ms = tw_store_now();
    for (char id[2] = "a"; id[0] <= 'h'; id[0]++)
        put(store, id, now_ms + 1000);
    start_in_turn(store, &calls);
    runner_idle(store);
    runner_look_away(true);
    uint64_t looks = runner_looks(store);
    clock_pass(999);
    runner_round(store);
    assert_in_range(runner_looks(store), looks, looks + 4); /* where the wheel refiles them */
    clock_pass(1);
    wait_for_answers(store, 8);
    assert_in_range(runner_looks(store), looks + 1, looks + 5);
    runner_look_away(false);
    assert_int_equal(tw_store_stop(store), 0);
}

/* ---- the order in the file ------------------------------------------------------------------------------- */

/* Also in a file that nobody runs when the tasks come, by a call or by SQL, and among queues. */
static void a_task_that_is_filed_late_stays_behind_those_that_were_ready(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    uint64_t now_ms = tw_store_now();
    put(store, "a", now_ms + 10);
    clock_pass(20);
    put(store, "late", 5);
    put_unnoticed(db, "later", 4);
    put(store, "b", now_ms + 25);
    other_ask(db, "INSERT INTO tw_move(queue, id, due_ms) VALUES ('q', 'late', 6)");
    clock_pass(20);
    put(store, "last", 3);
    assert_string_equal(other_ask(db, "SELECT group_concat(id, ' ') FROM"
                                      " (SELECT id FROM tw_task ORDER BY place_ms, revision)"),
                        "a later late b last");
    sqlite3_close(db);
    start_in_turn(store, &calls);
    runner_idle(store);
    clock_pass(1);
    assert_string_equal(wait_for_calls(&calls, 5), "a/1 later/1 late/1 b/1 last/1");
    assert_int_equal(tw_store_stop(store), 0);
}

/* A task that was filed late has a place that lies ahead once the clock was set back. It is ready all the same,
 * for a run that begins and for one that is under way. */
static void a_late_task_is_called_after_the_clock_was_set_back(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    put(store, "before", 5);
    clock_step(-3 * (int64_t)HOUR_MS);
    start_in_turn(store, &calls);
    runner_idle(store);
    clock_pass(1);
    assert_string_equal(wait_for_calls(&calls, 1), "before/1");
    assert_int_equal(store_pause(store, "q"), 1);
    put(store, "x", 7);
    put(store, "y", 6);
    put(store, "waits", tw_store_now() + 5);
    runner_idle(store);
    clock_step(-3 * (int64_t)HOUR_MS);
    runner_idle(store);
    assert_int_equal(store_resume(store, "q"), 1);
    clock_pass(1);
    assert_string_equal(wait_for_calls(&calls, 3), "before/1 x/1 y/1");
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(store_count(store, "q", false), 1);
}

/* Gives a task back that was called `late_ms` after it was put, when the clock was set back meanwhile. It is
 * ready in its row too, for looks and for the next run. */
static void is_ready_when_given_back(struct tw_store *store, const struct tw_store_delayed *task,
                                     uint64_t late_ms, uint64_t back_ms)
{
    struct calls calls;
    struct seen seen = {.text = ""};
    calls_init(&calls);
    calls.answer = TW_ANSWER_LATER;
    assert_int_equal(store_put(store, task, 0), 1);
    clock_pass(late_ms);
    start_with(store, &calls);
    wait_for_calls(&calls, 1);
    clock_step(-(int64_t)back_ms);
    assert_int_equal(store_pause(store, "q"), 1);
    tw_job_answer(calls.kept[0], TW_ANSWER_BACK);
    runner_idle(store);
    tw_store_get(store, tw_store_named("q", "x"), see, &seen);
    assert_true(seen.last.next_ms == tw_store_now());
    assert_int_equal(seen.last.state, TW_STATE_READY);
    assert_int_equal(store_resume(store, "q"), 1);
    assert_string_equal(wait_for_calls(&calls, 2), "x/1 x/1");
    tw_job_answer(calls.kept[1], TW_ANSWER_DONE);
    assert_int_equal(tw_store_stop(store), 0);
}

static void a_task_that_is_given_back_after_the_clock_was_set_back_is_ready(void **state)
{
    is_ready_when_given_back(
        store_of(state), &(struct tw_store_delayed){.queue = "q", .id = tw_text("x"), .due_ms = tw_store_now()},
        0, 3 * HOUR_MS);
}

/* The time of the period is later than the place of the task. */
static void so_is_a_period_that_is_given_back(void **state)
{
    is_ready_when_given_back(store_of(state),
                             &(struct tw_store_delayed){.queue = "q",
                                                        .id = tw_text("x"),
                                                        .due_ms = tw_store_now(),
                                                        .every_ms = 1000,
                                                        .missed = TW_MISSED_BURST,
                                                        .max_late_ms = 500},
                             20000, 10000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(a_clock_that_is_set_forwards_makes_tasks_due),
        TEST(a_clock_that_is_set_back_lets_tasks_wait),
        TEST(a_step_leaves_jobs_alone),
        TEST(the_window_moves_on),
        TEST(a_task_at_the_edge_of_the_window_is_called),
        TEST(a_call_beyond_the_window_comes_once),
        TEST(a_step_is_noticed_when_the_timer_is_set),
        TEST(everything_is_looked_at_after_a_step),
        TEST(unseen_tasks_come_before_later_ones),
        TEST(a_task_that_is_filed_late_stays_behind_those_that_were_ready),
        TEST(a_late_task_is_called_after_the_clock_was_set_back),
        TEST(a_task_that_is_given_back_after_the_clock_was_set_back_is_ready),
        TEST(so_is_a_period_that_is_given_back),
        TEST(unseen_tasks_come_before_later_ones_after_a_lock),
        TEST(a_task_that_was_put_too_late_is_behind_those_that_are_due),
        TEST(a_task_that_was_put_too_late_overtakes_no_queue),
        TEST(a_look_comes_with_the_time_that_it_is_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
