/* SPDX-License-Identifier: MIT
 *
 * KEEPDUE while the tasks run: a program registers its tasks again, and its run goes on.
 */
#include "clock.h"
#include "running.h"

#include <stdio.h>
#include <string.h>

enum { PERIOD_MS = 10000 };

static struct tw_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

static struct tw_store_delayed task_of(const char *id, uint64_t due_ms, const char *payload)
{
    return (struct tw_store_delayed){
        .queue = "q", .id = tw_text(id), .due_ms = due_ms, .payload = tw_text(payload)};
}

static struct tw_store_delayed series_of(const char *payload, uint64_t every_ms, uint64_t times)
{
    struct tw_store_delayed task = task_of("x", tw_store_now(), payload);
    task.every_ms = every_ms;
    task.times = times;
    return task;
}

static void register_task(struct tw_store *store, struct tw_store_delayed task)
{
    assert_int_equal(store_put(store, &task, TW_CONDITION_KEEPDUE), 1);
}

static struct seen get(struct tw_store *store, const char *id)
{
    struct seen seen = {.text = ""};
    assert_int_equal(tw_store_get(store, tw_store_named("q", id), see, &seen), 0);
    return seen;
}

/* The runner has loaded the tasks, and does not load them again. The times of the later puts do not count,
 * neither for a task that waits nor for one that is ready. */
static void loaded_tasks_are_called_once_with_their_new_payload(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    uint64_t due_ms = tw_store_now() + 400;
    register_task(store, task_of("a", due_ms, "old"));
    register_task(store, task_of("b", due_ms, "old"));
    register_task(store, task_of("c", due_ms, "old"));
    assert_int_equal(tw_store_handle(store, "q", 1, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, NULL), 0);
    runner_idle(store);
    assert_int_equal(store_pause(store, "q"), 1);
    register_task(store, task_of("a", due_ms + 3600000, ""));
    other_ask(
        db, "INSERT INTO tw_put(queue, id, due_ms, payload, condition) VALUES ('q', 'c', 1, 'new', 'KEEPDUE')");
    runner_idle(store);
    assert_int_equal(stats_of(store).loaded, 3);
    clock_pass(500);
    register_task(store, task_of("a", 5, ""));
    runner_idle(store);
    assert_int_equal(stats_of(store).loaded, 3);
    assert_int_equal(store_resume(store, "q"), 1);
    runner_idle(store);
    assert_string_equal(wait_for_calls(&calls, 3), "a/1 b/1 c/1");
    assert_string_equal(calls.last_payload, "new");
    wait_for_answers(store, 3);
    runner_idle(store);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(calls.count, 3);
    assert_int_equal(store_count(store, "q", false), 0);
    sqlite3_close(db);
}

/* A series is at work and is registered again, and then its call ends with this answer. */
static void register_at_work(struct tw_store *store, struct calls *calls, enum tw_answer answer,
                             struct tw_store_delayed before, struct tw_store_delayed after)
{
    calls_init(calls);
    calls->answer = TW_ANSWER_LATER;
    calls->answers = 1;
    calls->error = "broke";
    assert_int_equal(store_put(store, &before, 0), 1);
    start_with(store, calls);
    wait_for_calls(calls, 1);
    EVENTUALLY(kept_of(calls) == 1);
    after.due_ms += 77; /* it does not count */
    register_task(store, after);
    runner_idle(store);
    assert_true(get(store, "x").last.state == TW_STATE_LEASED && !get(store, "x").last.replaced);
    assert_int_equal(attempts(store), 1);
    tw_job_answer(calls->kept[0], answer);
    EVENTUALLY(stats_of(store).jobs == 0);
    runner_idle(store);
}

/* The new period counts from the due time of the present one, and the new number of calls is what is left. */
static void the_next_period_of_a_series_at_work_is_new(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    uint64_t due_ms = tw_store_now();
    register_at_work(store, &calls, TW_ANSWER_DONE, series_of("old", PERIOD_MS, 1), series_of("new", 2500, 0));
    struct seen seen = get(store, "x");
    assert_int_equal(seen.last.due_ms, due_ms + 2500);
    assert_true(seen.last.every_ms == 2500 && seen.last.times == TW_FOREVER && seen.last.attempt == 0);
    clock_pass(2500);
    wait_for_answers(store, 2);
    assert_string_equal(calls.text, "x/1 x/1");
    assert_string_equal(calls.last_payload, "new");
    assert_int_equal(calls.last.due_ms, due_ms + 2500);
    assert_int_equal(tw_store_stop(store), 0);
}

static void a_series_at_work_may_get_its_last_call(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    register_at_work(store, &calls, TW_ANSWER_DONE, series_of("old", PERIOD_MS, 0), series_of("new", 2500, 1));
    assert_int_equal(store_count(store, "q", false), 0);
    assert_int_equal(tw_store_stop(store), 0);
}

/* The second failure is the last one of the new tries, and the wait is the new one. */
static void a_failure_of_a_series_at_work_counts_for_its_new_tries(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    uint64_t due_ms = tw_store_now();
    struct tw_store_delayed before = series_of("old", PERIOD_MS, 0), after = series_of("new", 2500, 0);
    before.tries = 1;
    after.tries = 2;
    after.backoff_ms = 500;
    register_at_work(store, &calls, TW_ANSWER_FAILED, before, after);
    struct seen seen = get(store, "x");
    assert_true(seen.last.due_ms == due_ms && seen.last.attempt == 1);
    assert_true(seen.last.next_ms >= due_ms + 450 && seen.last.next_ms <= due_ms + 550);
    assert_string_equal(seen.error, "broke");
    pthread_mutex_lock(&calls.lock);
    calls.answer = TW_ANSWER_DEAD;
    calls.answers = 0;
    pthread_mutex_unlock(&calls.lock);
    clock_pass(550);
    wait_for_answers(store, 2);
    assert_string_equal(calls.text, "x/1 x/2");
    assert_string_equal(calls.last_payload, "new");
    assert_int_equal(get(store, "x").last.due_ms, due_ms + 2500);
    assert_int_equal(store_count(store, "q", true), 1);
    assert_int_equal(tw_store_stop(store), 0);
}

static void a_job_that_is_given_back_comes_with_the_new_payload(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    register_at_work(store, &calls, TW_ANSWER_BACK, series_of("old", PERIOD_MS, 0), series_of("new", 2500, 0));
    wait_for_answers(store, 1);
    assert_string_equal(calls.text, "x/1 x/1");
    assert_string_equal(calls.last_payload, "new");
    assert_int_equal(tw_store_stop(store), 0);
}

/* The run sees a task that stands behind, and calls it when the attempt has ended. */
static void a_task_that_runs_once_runs_again(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    calls.answer = TW_ANSWER_LATER;
    calls.answers = 1;
    uint64_t due_ms = tw_store_now();
    register_task(store, task_of("x", due_ms, "old"));
    start_with(store, &calls);
    wait_for_calls(&calls, 1);
    EVENTUALLY(kept_of(&calls) == 1);
    clock_pass(100);
    register_task(store, task_of("x", due_ms + 3600000, "new"));
    clock_pass(100);
    register_task(store, task_of("x", due_ms + 3600000, "newest"));
    runner_idle(store);
    struct seen seen = get(store, "x");
    assert_true(seen.last.replaced && seen.last.due_ms == due_ms + 100);
    assert_int_equal(attempts(store), 1);
    tw_job_answer(calls.kept[0], TW_ANSWER_FAILED);
    wait_for_answers(store, 2);
    assert_string_equal(calls.text, "x/1 x/1");
    assert_string_equal(calls.last_payload, "newest");
    assert_int_equal(calls.last.due_ms, due_ms + 100);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(store_count(store, "q", false), 0);
}

/* The process that had both tasks was killed. Its program registers them before the next run begins. */
static void tasks_of_a_process_that_was_killed(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    uint64_t due_ms = tw_store_now();
    struct tw_store_delayed series = series_of("old", PERIOD_MS, 0), again = series_of("new", PERIOD_MS, 0);
    assert_int_equal(store_put(store, &series, 0), 1);
    assert_int_equal(put(store, "once", due_ms), 1);
    other_ask(db, "UPDATE tw_meta SET run = 7; UPDATE tw_task SET run = 7, attempt = 1, token = 5");
    store_reopen(*state);
    store = store_of(state);
    register_task(store, again);
    register_task(store, task_of("once", due_ms, "new"));
    assert_true(get(store, "once").last.replaced && !get(store, "x").last.replaced);
    assert_int_equal(tw_store_handle(store, "q", 1, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, NULL), 0);
    wait_for_answers(store, 1);
    assert_string_equal(calls.last_payload, "new");
    assert_int_equal(calls.last.lapses, 0);
    runner_idle(store);
    clock_pass(1100); /* the wait after a lapse, with its jitter */
    wait_for_answers(store, 2);
    assert_string_equal(calls.text, "once/1 x/2");
    assert_string_equal(calls.last_payload, "new");
    assert_int_equal(calls.last.lapses, 1);
    assert_int_equal(tw_store_stop(store), 0);
    assert_string_equal(get(store, "x").payload, "new");
    assert_int_equal(get(store, "x").last.due_ms, due_ms + PERIOD_MS);
    sqlite3_close(db);
}

static int stopped_setup(void **state)
{
    clock_stop(0);
    return store_setup(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stopped_setup, clock_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(loaded_tasks_are_called_once_with_their_new_payload),
        TEST(the_next_period_of_a_series_at_work_is_new),
        TEST(a_series_at_work_may_get_its_last_call),
        TEST(a_failure_of_a_series_at_work_counts_for_its_new_tries),
        TEST(a_job_that_is_given_back_comes_with_the_new_payload),
        TEST(a_task_that_runs_once_runs_again),
        TEST(tasks_of_a_process_that_was_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
