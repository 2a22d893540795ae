/* SPDX-License-Identifier: MIT
 *
 * How old is the file? A backup is restored into a file while its tasks run, and new tasks get numbers that
 * were in use before. And the mark of a restored file, whose tasks nobody calls.
 */
#include "clock.h"
#include "running.h"
#include "src/store/change.h"
#include "src/store/claim.h"
#include "src/store/commit.h"
#include "tests/support/eventually.h"

#include <stdatomic.h>
#include <stdio.h>

enum { SOON_MS = 1000, HOUR_MS = 3600000 };

static struct tw_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

/* The first job stays until the test answers it. */
static void keep_first(struct calls *calls)
{
    calls_init(calls);
    calls->answer = TW_ANSWER_LATER;
    calls->answers = 1;
}

static void wait_for_kept(struct calls *calls, int n)
{
    wait_for_calls(calls, n);
    EVENTUALLY(kept_of(calls) == n);
}

/* Starts a run, whose job "a" stays until the test answers it. */
static void keep_a(struct tw_store *store, struct calls *calls)
{
    keep_first(calls);
    put(store, "a", 5);
    start_with(store, calls);
    wait_for_kept(calls, 1);
}

/* No task is left. */
static void stop_empty(struct tw_store *store, sqlite3 *db)
{
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(store_count(store, "q", false), 0);
    sqlite3_close(db);
}

/* The runner looks at the file, which it had looked away from. */
static void look_again(struct tw_store *store)
{
    runner_look_away(false);
    runner_idle(store);
}

/* ---- rows under other numbers ---------------------------------------------------------------------------- */

/* A bug: a claim took the row of its number, whatever it was. */
static void a_claim_takes_no_row_of_another_queue(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    clock_stop(0);
    put(store, "moved", tw_store_now() + SOON_MS);
    start_with(store, &calls);
    runner_idle(store);
    other_ask(db, "UPDATE tw_task SET queue = 'other'");
    put(store, "x", tw_store_now() + SOON_MS);
    runner_idle(store);
    clock_pass(SOON_MS);
    assert_string_equal(wait_for_calls(&calls, 1), "x/1");
    wait_for_answers(store, 1);
    assert_int_equal(tw_store_stop(store), 0);
    assert_string_equal(other_ask(db, "SELECT queue || ': ' || id || ' is ' || state FROM tw_list"),
                        "other: moved is ready");
    sqlite3_close(db);
}

/* A bug: an answer removed the row of its number, whatever it was. The row is one of another task, or a new one
 * of the same task, which no run has claimed. */
static void an_answer_removes_no_row_that_it_does_not_know(void **state)
{
    static const char *const ids[] = {"b", "a"};
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    calls.answer = TW_ANSWER_LATER;
    start_with(store, &calls);
    for (int i = 0; i < 2; i++) {
        char sql[200], expected[40];
        put(store, "a", 5);
        wait_for_kept(&calls, i + 1);
        uint64_t due_ms = tw_store_now() + HOUR_MS;
        snprintf(sql, sizeof sql,
                 "UPDATE tw_task SET id = CAST('%s' AS BLOB), run = 0, attempt = 0, due_ms = %llu, next_ms = "
                 "%llu, place_ms = %llu",
                 ids[i], (unsigned long long)due_ms, (unsigned long long)due_ms, (unsigned long long)due_ms);
        other_ask(db, sql);
        tw_job_answer(calls.kept[i], TW_ANSWER_DONE);
        wait_for_answers(store, (uint64_t)i + 1);
        snprintf(expected, sizeof expected, "%s@%llu", ids[i], (unsigned long long)due_ms);
        assert_string_equal(scan(store, NULL), expected);
        other_ask(db, "DELETE FROM tw_task");
    }
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* ---- backups --------------------------------------------------------------------------------------------- */

static void copy_all(sqlite3 *from, sqlite3 *to)
{
    sqlite3_backup *copy = sqlite3_backup_init(to, "main", from, "main");
    assert_non_null(copy);
    assert_int_equal(sqlite3_backup_step(copy, -1), SQLITE_DONE);
    assert_int_equal(sqlite3_backup_finish(copy), SQLITE_OK);
}

static sqlite3 *back_up(sqlite3 *db)
{
    sqlite3 *backup;
    assert_int_equal(sqlite3_open(":memory:", &backup), SQLITE_OK);
    copy_all(db, backup);
    return backup;
}

/* Restores a backup into the file. The runner does not look before the test says so. */
static void restore_unseen(struct tw_store *store, sqlite3 *backup, sqlite3 *db)
{
    runner_idle(store);
    runner_look_away(true);
    runner_round(store);
    copy_all(backup, db);
    sqlite3_close(backup);
}

/* The same by a program that writes the pages itself: then the number of the schema is not raised. */
static void restore_pages_unseen(struct tw_store *store, sqlite3 *backup, sqlite3 *db)
{
    char sql[60];
    snprintf(sql, sizeof sql, "PRAGMA schema_version = %s", other_ask(db, "PRAGMA schema_version"));
    restore_unseen(store, backup, db);
    other_ask(db, sql);
}

/* Puts n tasks by plain SQL. */
static void put_many(sqlite3 *db, const char *id, int n, uint64_t due_ms)
{
    char sql[120];
    for (int i = 0; i < n; i++) {
        snprintf(sql, sizeof sql, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', '%s%d', %llu)", id, i,
                 (unsigned long long)due_ms);
        other_ask(db, sql);
    }
}

/* Restores a backup from before n puts. The runner has not looked since. */
static void lose_puts(struct tw_store *store, sqlite3 *db, int n)
{
    sqlite3 *backup = back_up(db);
    put_many(db, "lost", n, tw_store_now() + HOUR_MS);
    restore_unseen(store, backup, db);
}

/* The same, of a run whose job "a" stays until the test answers it. */
static void keep_a_and_lose(struct tw_store *store, struct calls *calls, sqlite3 *db, int n)
{
    keep_a(store, calls);
    runner_idle(store);
    clock_stop(0);
    lose_puts(store, db, n);
}

/* With this connection others put three tasks, between the next commit of the run that fails and its look;
 * NULL: nobody does. */
static sqlite3 *_Atomic putting;

void __real_tw__store_claim_undo(struct tw__store_batch *batch);
void __wrap_tw__store_claim_undo(struct tw__store_batch *batch);

void __wrap_tw__store_claim_undo(struct tw__store_batch *batch)
{
    sqlite3 *db = atomic_exchange(&putting, NULL);
    if (db != NULL)
        put_many(db, "made", 3, tw_store_now() + SOON_MS);
    __real_tw__store_claim_undo(batch);
}

/* A bug: new tasks got numbers that the run had seen, and it never looked at them. */
static void a_task_put_after_a_restore_is_called(void **state)
{
    static const struct {
        int lost, made;
    } rounds[] = {{1, 1}, {2, 1}, {3, 3}, {9, 2}};
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    int called = 0;
    calls_init(&calls);
    clock_stop(0);
    start_with(store, &calls);
    for (size_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++) {
        runner_idle(store);
        lose_puts(store, db, rounds[i].lost);
        put_many(db, "made", rounds[i].made, tw_store_now() + SOON_MS);
        look_again(store);
        clock_pass(SOON_MS);
        called += rounds[i].made;
        wait_for_calls(&calls, called);
        wait_for_answers(store, (uint64_t)called);
    }
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(calls.count, called);
    sqlite3_close(db);
}

/* A bug: more changes in the copy, before it was restored, than were lost hid the restore from the run, and it
 * never looked at the first of the new tasks. */
static void a_backup_that_was_changed_before_its_restore_is_noticed(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    clock_stop(0);
    start_with(store, &calls);
    runner_idle(store);
    sqlite3 *backup = back_up(db);
    put_many(db, "lost", 1, tw_store_now() + HOUR_MS);
    put_many(backup, "made", 3, tw_store_now() + SOON_MS);
    restore_unseen(store, backup, db);
    look_again(store);
    clock_pass(SOON_MS);
    wait_for_calls(&calls, 3);
    wait_for_answers(store, 3);
    stop_empty(store, db);
}

/* A new table looks like a restore. Then the run reads the file anew, and counts itself anew, but a job under
 * way stays that of its task. */
static void a_new_table_of_the_program_changes_no_call(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    keep_a(store, &calls);
    runner_idle(store);
    clock_stop(0);
    put(store, "b", tw_store_now() + SOON_MS);
    assert_string_equal(other_ask(db, "SELECT run FROM tw_meta"), "1");
    other_ask(db, "CREATE TABLE orders(id)");
    runner_idle(store);
    assert_string_equal(other_ask(db, "SELECT run FROM tw_meta"), "2");
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    wait_for_answers(store, 1);
    clock_pass(SOON_MS);
    assert_string_equal(wait_for_calls(&calls, 2), "a/1 b/1");
    wait_for_answers(store, 2);
    stop_empty(store, db);
}

/* Starts a run with a task that is due soon, and backs the file up. */
static sqlite3 *back_up_waiting(struct tw_store *store, struct calls *calls, sqlite3 *db)
{
    clock_stop(0);
    start_with(store, calls);
    put(store, "a", tw_store_now() + SOON_MS);
    runner_idle(store);
    return back_up(db);
}

/* A cancel takes no new number for a task, so `changes` alone tells that the file has the task again. The run
 * had it in memory, and has dropped it when it was due. */
static void a_task_cancelled_by_sql_is_called_after_a_restore(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    sqlite3 *backup = back_up_waiting(store, &calls, db);
    other_ask(db, "INSERT INTO tw_cancel(queue, id) VALUES ('q', 'a')");
    runner_idle(store);
    clock_pass(SOON_MS);
    restore_pages_unseen(store, backup, db);
    assert_int_equal(calls_of(&calls), 0);
    look_again(store);
    assert_string_equal(wait_for_calls(&calls, 1), "a/1");
    wait_for_answers(store, 1);
    stop_empty(store, db);
}

/* Others put the mark and take it away unseen. */
static void the_mark_of_a_restore_makes_a_run_read_anew(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    clock_stop(0);
    assert_int_equal(tw_store_handle(store, "q", 1, note_call, &calls), 0); /* one after the other */
    assert_int_equal(tw_store_start(store, NULL), 0);
    runner_idle(store);
    lose_puts(store, db, 1);
    put_many(db, "made", 3, tw_store_now() + SOON_MS);
    assert_int_equal(store_restored(store, true), 1);
    assert_int_equal(store_restored(store, false), 1);
    look_again(store);
    clock_pass(SOON_MS);
    assert_string_equal(wait_for_calls(&calls, 3), "made0/1 made1/1 made2/1");
    wait_for_answers(store, 3);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* A job has the number that a new task gets after the restore. It hides the task no more, and its answer leaves
 * it as it is. */
static void a_job_of_before_a_restore_neither_hides_nor_removes_a_new_task(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    keep_first(&calls);
    start_with(store, &calls);
    runner_idle(store);
    sqlite3 *backup = back_up(db);
    put(store, "a", 5);
    wait_for_kept(&calls, 1);
    clock_stop(0);
    restore_unseen(store, backup, db);
    put_many(db, "b", 1, tw_store_now() + SOON_MS);
    assert_string_equal(other_ask(db, "SELECT revision FROM tw_task"), "1"); /* the number of the job */
    look_again(store);
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    wait_for_answers(store, 1);
    clock_pass(SOON_MS);
    assert_string_equal(wait_for_calls(&calls, 2), "a/1 b0/1");
    wait_for_answers(store, 2);
    stop_empty(store, db);
}

/* The task of a job is in the backup too, as it was before its claim. It is called again when the job has
 * ended. */
static void a_task_that_runs_during_a_restore_is_called_again_after_its_end(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    keep_first(&calls);
    sqlite3 *backup = back_up_waiting(store, &calls, db);
    clock_pass(SOON_MS);
    wait_for_kept(&calls, 1);
    restore_unseen(store, backup, db);
    look_again(store);
    clock_pass(1);
    runner_idle(store);
    assert_int_equal(calls_of(&calls), 1);
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    wait_for_answers(store, 1);
    clock_pass(1);
    assert_string_equal(wait_for_calls(&calls, 2), "a/1 a/1");
    wait_for_answers(store, 2);
    stop_empty(store, db);
}

/* The backup has the attempt of a job, which is given back then. A restore takes all entries away, so a look
 * finds the task. */
static void a_job_that_is_given_back_after_a_restore_is_called_again(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    keep_a_and_lose(store, &calls, db, 1);
    look_again(store);
    assert_int_equal(calls_of(&calls), 1);
    tw_job_answer(calls.kept[0], TW_ANSWER_BACK);
    assert_string_equal(wait_for_calls(&calls, 2), "a/1 a/1");
    wait_for_answers(store, 1);
    stop_empty(store, db);
}

/* The backup has an earlier number of the run, which was taken for the number of another run. */
static void a_run_goes_on_after_a_backup_from_before_its_beginning(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    put(store, "old", tw_store_now() + HOUR_MS);
    sqlite3 *backup = back_up(db);
    start_with(store, &calls);
    put(store, "lost", 5);
    wait_for_calls(&calls, 1);
    wait_for_answers(store, 1);
    clock_stop(0);
    restore_unseen(store, backup, db);
    put_many(db, "made", 1, tw_store_now() + SOON_MS);
    look_again(store);
    clock_pass(SOON_MS);
    assert_string_equal(wait_for_calls(&calls, 2), "lost/1 made0/1");
    wait_for_answers(store, 2);
    assert_string_equal(other_ask(db, "SELECT run FROM tw_meta"), "1");
    assert_int_equal(stats_of(store).errors, 0);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(store_count(store, "q", false), 1);
    sqlite3_close(db);
}

/* A bug: a larger number was taken for that of another run, and the run ended. No other can begin while this
 * one has the lock. */
static void a_run_goes_on_after_a_backup_of_a_later_run(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    clock_stop(0);
    start_with(store, &calls);
    put(store, "made", tw_store_now() + SOON_MS);
    sqlite3 *backup = back_up(db);
    other_ask(backup, "UPDATE tw_meta SET run = 9");
    restore_unseen(store, backup, db);
    look_again(store);
    clock_pass(SOON_MS);
    assert_string_equal(wait_for_calls(&calls, 1), "made/1");
    wait_for_answers(store, 1);
    assert_string_equal(other_ask(db, "SELECT run FROM tw_meta"), "10");
    assert_int_equal(stats_of(store).errors, 0);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* A bug: the run's own commits made up for the changes that were lost, and then nobody could tell. */
static void a_commit_of_the_run_before_its_look_hides_no_restore(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    keep_a_and_lose(store, &calls, db, 1);
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    wait_for_answers(store, 1);
    put_many(db, "made", 1, tw_store_now() + SOON_MS);
    look_again(store);
    clock_pass(SOON_MS);
    assert_string_equal(wait_for_calls(&calls, 2), "a/1 made0/1");
    wait_for_answers(store, 2);
    stop_empty(store, db);
}

/* Starts a run of two jobs, of which "a" is kept first. Two workers keep what they have in any order. */
static void put_and_keep(struct tw_store *store, struct calls *calls)
{
    put(store, "a", 5);
    start_with(store, calls);
    wait_for_kept(calls, 1);
    put(store, "b", 6);
    wait_for_kept(calls, 2);
}

/* A bug: so did two commits of the run, of which the backup has the first. It had "b" as running for ever. */
static void a_backup_from_between_two_commits_of_the_run_is_noticed(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    keep_first(&calls);
    calls.answers = 2;
    put_and_keep(store, &calls);
    runner_idle(store);
    clock_stop(0);
    assert_int_equal(store_pause(store, "q"), 1);
    runner_look_away(true);
    runner_round(store);
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    wait_for_answers(store, 1);
    sqlite3 *backup = back_up(db);
    tw_job_answer(calls.kept[1], TW_ANSWER_DONE);
    wait_for_answers(store, 2);
    copy_all(backup, db);
    sqlite3_close(backup);
    assert_string_equal(scan(store, NULL), "b@6*");
    look_again(store);
    assert_string_equal(scan(store, NULL), "b@6");
    assert_int_equal(cancel(store, "b"), TW_CANCEL_CANCELLED);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(calls.count, 2);
    sqlite3_close(db);
}

/* A bug: the run's commit had noticed the restore, and forgot it. Before its look others made more changes than
 * were lost. */
static void a_restore_that_a_commit_of_the_run_has_noticed_counts(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    keep_a_and_lose(store, &calls, db, 2);
    atomic_store(&putting, db);
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    wait_for_answers(store, 1);
    assert_null(atomic_load(&putting));
    look_again(store);
    clock_pass(SOON_MS);
    wait_for_calls(&calls, 4); /* of several workers, in any order */
    wait_for_answers(store, 4);
    stop_empty(store, db);
}

/* A bug: a backup of this very run has tasks that its jobs had once, and those of jobs under way. Nobody runs
 * the first ones any more. */
static void only_tasks_of_jobs_under_way_run_after_a_restore(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    keep_first(&calls);
    calls.answers = 2;
    put_and_keep(store, &calls);
    runner_idle(store);
    clock_stop(0);
    assert_string_equal(scan(store, NULL), "a@5* b@6*");
    assert_int_equal(store_pause(store, "q"), 1);
    sqlite3 *backup = back_up(db);
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    wait_for_answers(store, 1);
    restore_unseen(store, backup, db);
    look_again(store);
    assert_string_equal(scan(store, NULL), "b@6* a@5");
    assert_int_equal(cancel(store, "a"), TW_CANCEL_CANCELLED);
    tw_job_answer(calls.kept[1], TW_ANSWER_DONE);
    wait_for_answers(store, 2);
    assert_string_equal(scan(store, NULL), "");
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(calls.count, 2);
    sqlite3_close(db);
}

/* The backup has a task that stands behind an attempt. That attempt has ended, so the task has its turn. */
static void a_task_behind_an_attempt_of_before_a_restore_is_called(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    keep_a(store, &calls);
    put(store, "a", 7);
    runner_idle(store);
    sqlite3 *backup = back_up(db);
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    wait_for_calls(&calls, 2);
    wait_for_answers(store, 2);
    assert_string_equal(scan(store, NULL), "");
    restore_unseen(store, backup, db);
    assert_string_equal(scan(store, NULL), "a@7*");
    look_again(store);
    assert_string_equal(wait_for_calls(&calls, 3), "a/1 a/1 a/1");
    wait_for_answers(store, 3);
    assert_string_equal(scan(store, NULL), "");
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* A tw__store_work_fn: a run begins, and a put shares its commit. */
static int begin_and_put(struct tw__store_db *db, void *arg)
{
    struct tw__store_job *none = NULL;
    struct tw__store_table empty = {.jobs = &none, .mask = 0};
    struct tw__store_count count = {.table = &empty};
    int error = tw__store_count_run(db, &count);
    return error == 0 ? tw__store_change_all(db, arg, 1) : error;
}

/* A bug: the put took the run before for the present one, and nobody ended the attempt. */
static void a_put_beside_the_begin_of_a_run_replaces_no_attempt(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    struct tw_store_change change = {.task = {.queue = "q", .id = tw_text("a"), .due_ms = 7}};
    put(store, "a", 5);
    other_ask(db, "UPDATE tw_meta SET run = 3");
    other_ask(db, "UPDATE tw_task SET run = 3, attempt = 1, token = 9");
    assert_string_equal(scan(store, NULL), "a@5*");
    assert_int_equal(tw__store_commit(store, begin_and_put, &change, true), 0);
    assert_int_equal(outcome_of(&change), 1);
    assert_string_equal(other_ask(db, "SELECT run || '/' || token || '/' || replaced FROM tw_task"), "0/0/0");
    assert_string_equal(scan(store, NULL), "a@7");
    sqlite3_close(db);
}

/* The backup has the task from before this answer to its first job. The job after that is under way. */
static void no_later_answer_counts(const struct fixture *fixture, enum tw_answer answer, uint64_t every_ms,
                                   uint64_t pass_ms)
{
    struct tw_store *store = fixture->store;
    struct calls calls;
    sqlite3 *db = other_open(fixture);
    clock_stop(0);
    struct tw_store_delayed task = {.queue = "q", .id = tw_text("r"), .due_ms = tw_store_now() + SOON_MS};
    char expected[40];
    snprintf(expected, sizeof expected, "r@%llu", (unsigned long long)task.due_ms);
    keep_first(&calls);
    calls.answers = 2;
    calls.retry_ms = task.due_ms;
    task.every_ms = every_ms;
    task.tries = 3;
    assert_int_equal(store_put(store, &task, 0), 1);
    start_with(store, &calls);
    runner_idle(store);
    clock_pass(SOON_MS);
    wait_for_kept(&calls, 1);
    assert_int_equal(store_pause(store, "q"), 1); /* so that the task of the backup is not called */
    runner_idle(store);
    sqlite3 *backup = back_up(db);
    assert_int_equal(store_resume(store, "q"), 1);
    tw_job_answer(calls.kept[0], answer);
    wait_for_answers(store, 1);
    runner_idle(store);
    clock_pass(pass_ms);
    wait_for_kept(&calls, 2);
    restore_unseen(store, backup, db);
    look_again(store);
    assert_string_equal(scan(store, NULL), expected);
    tw_job_answer(calls.kept[1], TW_ANSWER_DEAD);
    wait_for_answers(store, 2);
    assert_string_equal(scan(store, NULL), expected);
    assert_int_equal(cancel(store, "r"), TW_CANCEL_CANCELLED);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* A bug: the answer was written to an earlier call of the series. */
static void an_answer_counts_for_its_call_alone(void **state)
{
    no_later_answer_counts(*state, TW_ANSWER_DONE, SOON_MS, SOON_MS);
}

/* The two attempts are due in the same millisecond. */
static void an_answer_counts_for_its_attempt_alone(void **state)
{
    no_later_answer_counts(*state, TW_ANSWER_FAILED, 0, 1);
}

static bool passed(bool there)
{
    if (!there)
        clock_pass(1);
    return there;
}

/* A bug: it began for the row of the earlier call. The runner does not look, and the job waits for the end of
 * "b". */
static void a_job_does_not_begin_for_an_earlier_call(void **state)
{
    struct tw_store *store = store_of(state);
    const struct tw_store_run_options one_worker = {.workers = 1};
    struct calls calls;
    sqlite3 *db = other_open(*state);
    keep_first(&calls);
    calls.answers = 3;
    clock_stop(0);
    clock_halt();
    uint64_t due_ms = tw_store_now() + SOON_MS;
    struct tw_store_delayed task = {.queue = "q", .id = tw_text("r"), .due_ms = due_ms, .every_ms = SOON_MS};
    assert_int_equal(store_put(store, &task, 0), 1);
    put(store, "b", due_ms + SOON_MS - 1);
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, &one_worker), 0);
    runner_idle(store);
    clock_pass(SOON_MS);
    wait_for_kept(&calls, 1);
    runner_idle(store);
    sqlite3 *backup = back_up(db);
    calls.block = true;
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    wait_for_answers(store, 1);
    runner_idle(store);
    clock_pass(SOON_MS);
    wait_for_calls(&calls, 2);
    EVENTUALLY(attempts(store) == 3);
    restore_unseen(store, backup, db);
    unblock(&calls);
    EVENTUALLY(passed(kept_of(&calls) == 3));
    assert_string_equal(calls.text, "r/1 b/1 r/2"); /* the backup has its first attempt */
    assert_int_equal(calls.last.due_ms, due_ms);
    tw_job_answer(calls.kept[1], TW_ANSWER_DONE);
    tw_job_answer(calls.kept[2], TW_ANSWER_DONE);
    wait_for_answers(store, 3);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* The run writes an answer before it has looked, and its number is not that of the file any more. */
static void an_answer_before_the_look_after_a_restore_is_no_error(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    keep_first(&calls);
    clock_stop(0);
    put(store, "x", tw_store_now() + SOON_MS);
    sqlite3 *backup = back_up(db);
    start_with(store, &calls);
    runner_idle(store);
    clock_pass(SOON_MS);
    wait_for_kept(&calls, 1);
    restore_unseen(store, backup, db);
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    wait_for_answers(store, 1);
    clock_pass(1);
    assert_string_equal(wait_for_calls(&calls, 2), "x/1 x/1");
    runner_look_away(false);
    wait_for_answers(store, 2);
    assert_int_equal(stats_of(store).errors, 0);
    stop_empty(store, db);
}

/* ---- the mark -------------------------------------------------------------------------------------------- */

static void a_marked_file_is_not_run_until_it_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct calls calls;
    calls_init(&calls);
    assert_int_equal(store_is_restored(fixture->store), 0);
    assert_int_equal(store_restored(fixture->store, false), 0);
    put(fixture->store, "a", 5);
    assert_int_equal(store_restored(fixture->store, true), 1);
    assert_int_equal(store_restored(fixture->store, true), 0);
    store_reopen(fixture);
    assert_int_equal(store_is_restored(fixture->store), 1);
    clock_stop(0);
    start_with(fixture->store, &calls);
    put(fixture->store, "b", tw_store_now() + SOON_MS);
    runner_idle(fixture->store);
    clock_pass(SOON_MS);
    runner_idle(fixture->store);
    assert_int_equal(attempts(fixture->store), 0);
    assert_int_equal(cancel(fixture->store, "a"), TW_CANCEL_CANCELLED);
    assert_int_equal(store_restored(fixture->store, false), 1);
    runner_idle(fixture->store);
    clock_pass(1);
    assert_string_equal(wait_for_calls(&calls, 1), "b/1");
    wait_for_answers(fixture->store, 1);
    assert_int_equal(store_is_restored(fixture->store), 0);
    assert_int_equal(tw_store_stop(fixture->store), 0);
}

/* A bug: a backup that was made while tasks ran has them as running, and an operator could not cancel them. A
 * job that is under way when the mark comes keeps its task. */
static char noted[80];

static void note_scan(void *store)
{
    snprintf(noted, sizeof noted, "%s", scan(store, NULL));
}

static void a_mark_leaves_no_task_running_without_a_job(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    keep_a(store, &calls);
    runner_idle(store);
    sqlite3 *backup = back_up(db);
    runner_before_look(note_scan, store);
    assert_int_equal(store_restored(store, true), 1);
    runner_idle(store);
    assert_string_equal(noted, "a@5*"); /* before the run has seen the mark */
    assert_string_equal(scan(store, NULL), "a@5*");
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    wait_for_answers(store, 1);
    assert_int_equal(store_count(store, "q", false), 0);
    assert_int_equal(tw_store_stop(store), 0);
    copy_all(backup, db);
    sqlite3_close(backup);
    assert_string_equal(scan(store, NULL), "a@5*");
    assert_int_equal(store_restored(store, true), 1);
    assert_string_equal(scan(store, NULL), "a@5");
    assert_int_equal(cancel(store, "a"), TW_CANCEL_CANCELLED);
    sqlite3_close(db);
}

/* So it is with an attempt that was replaced. */
static void a_mark_keeps_a_replaced_attempt_only_if_it_is_under_way(void **state)
{
    static const uint64_t later_ms = 4102444800000;
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    keep_a(store, &calls);
    put(store, "a", later_ms);
    runner_idle(store);
    sqlite3 *backup = back_up(db);
    assert_int_equal(store_restored(store, true), 1);
    runner_idle(store);
    assert_string_equal(scan(store, NULL), "a@4102444800000*");
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    wait_for_answers(store, 1);
    assert_string_equal(scan(store, NULL), "a@4102444800000");
    assert_int_equal(tw_store_stop(store), 0);
    copy_all(backup, db);
    sqlite3_close(backup);
    assert_string_equal(scan(store, NULL), "a@4102444800000*");
    assert_int_equal(store_restored(store, true), 1);
    assert_string_equal(scan(store, NULL), "a@4102444800000");
    assert_int_equal(cancel(store, "a"), TW_CANCEL_CANCELLED);
    sqlite3_close(db);
}

/* The mark counts from its commit, not from the run's next look. A pause of a queue outlasts it. "b" has its
 * turn at the answer of "a", and then the run does not look. */
static void a_mark_that_the_run_has_not_seen_counts(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    keep_first(&calls);
    clock_stop(0);
    put(store, "a", tw_store_now() + SOON_MS);
    put(store, "b", tw_store_now() + SOON_MS);
    assert_int_equal(tw_store_handle(store, "q", 1, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, NULL), 0);
    runner_idle(store);
    clock_pass(SOON_MS);
    wait_for_kept(&calls, 1);
    runner_idle(store);
    runner_look_away(true);
    runner_round(store);
    assert_int_equal(store_restored(store, true), 1);
    assert_int_equal(store_pause(store, "q"), 1);
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    wait_for_answers(store, 1);
    runner_round(store);
    assert_int_equal(attempts(store), 1);
    look_again(store);
    assert_int_equal(store_restored(store, false), 1);
    runner_idle(store);
    clock_pass(1);
    runner_idle(store);
    assert_int_equal(attempts(store), 1);
    assert_int_equal(store_resume(store, "q"), 1);
    runner_idle(store);
    clock_pass(1);
    assert_string_equal(wait_for_calls(&calls, 2), "a/1 b/1");
    wait_for_answers(store, 2);
    assert_int_equal(tw_store_stop(store), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, clock_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(a_claim_takes_no_row_of_another_queue),
        TEST(an_answer_removes_no_row_that_it_does_not_know),
        TEST(a_backup_that_was_changed_before_its_restore_is_noticed),
        TEST(a_new_table_of_the_program_changes_no_call),
        TEST(a_task_put_after_a_restore_is_called),
        TEST(a_task_cancelled_by_sql_is_called_after_a_restore),
        TEST(the_mark_of_a_restore_makes_a_run_read_anew),
        TEST(a_job_of_before_a_restore_neither_hides_nor_removes_a_new_task),
        TEST(a_task_that_runs_during_a_restore_is_called_again_after_its_end),
        TEST(a_job_that_is_given_back_after_a_restore_is_called_again),
        TEST(a_run_goes_on_after_a_backup_from_before_its_beginning),
        TEST(a_run_goes_on_after_a_backup_of_a_later_run),
        TEST(a_commit_of_the_run_before_its_look_hides_no_restore),
        TEST(a_backup_from_between_two_commits_of_the_run_is_noticed),
        TEST(a_restore_that_a_commit_of_the_run_has_noticed_counts),
        TEST(only_tasks_of_jobs_under_way_run_after_a_restore),
        TEST(a_task_behind_an_attempt_of_before_a_restore_is_called),
        TEST(a_put_beside_the_begin_of_a_run_replaces_no_attempt),
        TEST(an_answer_counts_for_its_call_alone),
        TEST(an_answer_counts_for_its_attempt_alone),
        TEST(a_job_does_not_begin_for_an_earlier_call),
        TEST(an_answer_before_the_look_after_a_restore_is_no_error),
        TEST(a_marked_file_is_not_run_until_it_is_told),
        TEST(a_mark_leaves_no_task_running_without_a_job),
        TEST(a_mark_keeps_a_replaced_attempt_only_if_it_is_under_way),
        TEST(a_mark_that_the_run_has_not_seen_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
