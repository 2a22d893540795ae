/* SPDX-License-Identifier: MIT
 *
 * Several processes and one file: who runs its tasks, what others see of it, and what follows when the runner
 * is killed.
 */
#include "running.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tw_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

static struct tw_store *open_again(void **state)
{
    struct tw_store *store;
    assert_int_equal(tw_store_open(&store, ((struct fixture *)*state)->path, NULL, NULL, 0), 0);
    return store;
}

static uint64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- the lock -------------------------------------------------------------------------------------------- */

static void one_store_runs_a_file(void **state)
{
    struct tw_store *store = store_of(state), *second = open_again(state);
    struct calls calls;
    char expected[80];
    calls_init(&calls);
    start_with(store, &calls);
    assert_int_equal(tw_store_handle(second, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(second, NULL), TW_EBUSY);
    snprintf(expected, sizeof expected, "process %ld runs the tasks of this file", (long)getpid());
    assert_string_equal(message(second), expected);
    snprintf(expected, sizeof expected, "%.60s-tickwheel", ((struct fixture *)*state)->path);
    assert_int_equal(truncate(expected, 0), 0);
    assert_int_equal(tw_store_start(second, NULL), TW_EBUSY);
    assert_string_equal(message(second), "another process runs the tasks of this file");
    put(second, "x", 5); /* it may put all the same */
    wait_for_calls(&calls, 1);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(tw_store_start(second, NULL), 0);
    tw_store_close(second);
}

static void who_may_write_the_file_may_lock_it(void **state)
{
    const char *path = ((struct fixture *)*state)->path;
    struct calls calls;
    struct stat status;
    char lock[PATH_SIZE + 16];
    calls_init(&calls);
    snprintf(lock, sizeof lock, "%s-tickwheel", path);
    assert_int_equal(chmod(path, 0666), 0);
    mode_t before = umask(022);
    start_with(store_of(state), &calls);
    umask(before);
    assert_int_equal(stat(lock, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0666);
    assert_int_equal(tw_store_stop(store_of(state)), 0);
}

/* In a folder where others may write: what the link names stays as it is. */
static void a_lock_that_is_a_link_is_refused(void **state)
{
    const struct fixture *fixture = *state;
    struct calls calls;
    struct stat status;
    char lock[PATH_SIZE + 16], victim[PATH_SIZE + 16];
    calls_init(&calls);
    snprintf(lock, sizeof lock, "%s-tickwheel", fixture->path);
    snprintf(victim, sizeof victim, "%s/victim", fixture->folder);
    int fd = open(victim, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "precious", 8), 8);
    close(fd);
    assert_int_equal(symlink(victim, lock), 0);
    assert_int_equal(tw_store_handle(fixture->store, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(fixture->store, NULL), TW_EIO);
    assert_int_equal(stat(victim, &status), 0);
    assert_int_equal(status.st_size, 8);
    unlink(lock);
    unlink(victim);
}

static void a_standby_takes_over_within_a_second(void **state)
{
    struct tw_store *store = store_of(state), *second = open_again(state);
    struct tw_store_run options = {.flags = TW_STORE_STANDBY};
    struct tw_store_stats stats;
    struct calls calls;
    calls_init(&calls);
    start_with(store, &calls);
    assert_int_equal(tw_store_handle(second, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(second, &options), 0);
    usleep(300000); /* it asks again */
    tw_store_stats(second, &stats);
    assert_false(stats.running);
    assert_int_equal(tw_store_stop(store), 0);
    uint64_t from = milliseconds();
    put(store, "x", 5);
    wait_for_calls(&calls, 1);
    assert_true(milliseconds() - from < 1000);
    tw_store_stats(second, &stats);
    assert_true(stats.running);
    assert_int_equal(tw_store_start(store, &options), 0);
    assert_int_equal(tw_store_stop(store), 0); /* one that waits can be stopped */
    assert_int_equal(tw_store_stop(second), 0);
    tw_store_close(second);
}

/* ---- a runner that is killed ----------------------------------------------------------------------------- */

static enum tw_answer tell_and_hang(void *arg, struct tw_job *job)
{
    (void)job;
    if (write(*(int *)arg, "x", 1) == 1)
        pause();
    return TW_DONE;
}

/* Runs the file in another process, waits until a handler is under way, and kills the process there. */
static void run_and_kill(const char *path)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct tw_store *store;
        close(ends[0]);
        if (tw_store_open(&store, path, NULL, NULL, 0) != 0 ||
            tw_store_handle(store, "q", 0, tell_and_hang, &ends[1]) != 0 || tw_store_start(store, NULL) != 0)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
}

static void a_killed_handler_is_called_again(void **state)
{
    const struct fixture *fixture = *state;
    struct calls calls;
    calls_init(&calls);
    put(store_of(state), "x", 5);
    run_and_kill(fixture->path);
    assert_string_equal(scan(store_of(state), NULL), "x@5*");
    run_and_kill(fixture->path);
    start_with(store_of(state), &calls);
    assert_string_equal(wait_for_calls(&calls, 1), "x/3"); /* also beyond its tries, which are 1 */
    assert_int_equal(calls.last.due_ms, 5);
    assert_int_equal(tw_store_stop(store_of(state)), 0);
    assert_int_equal(tw_store_count(store_of(state), "q", false), 0);
}

static void a_task_that_kills_its_process_dies(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    struct seen seen = {.text = ""};
    struct tw_store_stats stats = {0};
    calls_init(&calls);
    put(store, "bad", 5);
    put(store, "good", 6);
    sqlite3 *db = other_open(*state);
    other_ask(db, "UPDATE tw_task SET attempt = 17 WHERE due_ms = 5; UPDATE tw_task SET attempt = 16"
                  " WHERE due_ms = 6");
    sqlite3_close(db);
    start_with(store, &calls);
    assert_string_equal(wait_for_calls(&calls, 1), "good/17");
    wait_for_answers(store, 2);
    tw_store_stats(store, &stats);
    assert_int_equal(stats.dead, 1);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(tw_store_get(store, "q", "bad", 3, see, &seen), 0);
    assert_int_equal(seen.last.state, TW_STORE_DEAD);
    assert_string_equal(seen.error, "the process died in too many attempts");
}

/* ---- commits of others ----------------------------------------------------------------------------------- */

/* Most of them at once: a look that comes too late, or only at the slow pace, is seen here. The benchmark
 * measures how soon (bench/store/notice.c). */
static void commits_of_others_are_seen(void **state)
{
    struct calls calls;
    sqlite3 *db = other_open(*state);
    char sql[200];
    int soon = 0;
    calls_init(&calls);
    start_with(store_of(state), &calls);
    for (int i = 1; i <= 50; i++) {
        snprintf(sql, sizeof sql, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', '%d', 5)", i);
        other_ask(db, sql);
        uint64_t committed_ms = tw_store_now();
        wait_for_calls(&calls, i);
        soon += calls.called_ms[i - 1] < committed_ms + 100;
        usleep((useconds_t)(i * 100));
    }
    assert_true(soon >= 25);
    other_ask(db, "BEGIN; INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'never', 5)");
    usleep(30000);
    other_ask(db, "ROLLBACK");
    assert_int_equal(tw_store_stop(store_of(state)), 0);
    assert_int_equal(calls.count, 50);
    sqlite3_close(db);
}

/* A file that was restored while it runs has smaller revisions than those that the runner has seen. */
static void a_restored_file_is_read_anew(void **state)
{
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    put(store_of(state), "a", 5);
    put(store_of(state), "b", 5);
    start_with(store_of(state), &calls);
    wait_for_calls(&calls, 2);
    wait_for_answers(store_of(state), 2);
    other_ask(db, "BEGIN; UPDATE tw_meta SET value = 0 WHERE name = 'seq';"
                  "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'old', 5); COMMIT");
    assert_string_equal(wait_for_calls(&calls, 3), calls.text);
    assert_int_equal(calls.count, 3);
    assert_int_equal(tw_store_stop(store_of(state)), 0);
    sqlite3_close(db);
}

/* Fewer than are read from the index at once: after the next commit no more than its share is kept. */
static void a_queue_with_too_many_entries_is_read_anew(void **state)
{
    struct tw_store_stats stats = {.loaded = 15000};
    struct calls calls;
    sqlite3 *db = other_open(*state);
    char sql[200];
    calls_init(&calls);
    assert_int_equal(tw_store_handle(store_of(state), "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store_of(state), &(struct tw_store_run){.max_loaded = 1000}), 0);
    put(store_of(state), "first", 5);
    wait_for_calls(&calls, 1);
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 15000)"
             " INSERT INTO tw_put(queue, id, due_ms) SELECT 'q', CAST(i AS TEXT), %llu FROM n",
             (unsigned long long)tw_store_now() + 300000);
    other_ask(db, sql);
    sqlite3_close(db);
    for (int i = 2; i < 100 && (stats.loaded > 2000 || stats.loaded < 900); i++) {
        put(store_of(state), "more", 5);
        wait_for_calls(&calls, i);
        usleep(10000);
        tw_store_stats(store_of(state), &stats);
    }
    assert_true(stats.loaded <= 2000 && stats.loaded >= 900);
    assert_int_equal(tw_store_stop(store_of(state)), 0);
}

/* More new tasks at once than the runner reads one by one, and more than it keeps. */
static void a_flood_is_read_from_the_index(void **state)
{
    struct tw_store_stats stats = {0};
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    assert_int_equal(tw_store_handle(store_of(state), "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store_of(state), &(struct tw_store_run){.max_loaded = 1000}), 0);
    put(store_of(state), "first", 5);
    wait_for_calls(&calls, 1);
    other_ask(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25000)"
                  " INSERT INTO tw_put(queue, id, due_ms) SELECT 'q', CAST(i AS TEXT), 5 FROM n");
    sqlite3_close(db);
    wait_for_calls(&calls, 25001);
    wait_for_answers(store_of(state), 25001);
    tw_store_stats(store_of(state), &stats);
    assert_true(stats.loaded <= 2000);
    assert_int_equal(tw_store_stop(store_of(state)), 0);
    assert_int_equal(tw_store_count(store_of(state), "q", false), 0);
    assert_int_equal(calls.count, 25001);
}

/* The first rows of the index are jobs under way, more of them than one reading loads. */
static void a_flood_behind_many_jobs_is_read(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls *calls = calloc(1, sizeof *calls);
    sqlite3 *db = other_open(*state);
    calls_init(calls);
    calls->answer = TW_LATER;
    calls->answers = 1500;
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, calls), 0);
    assert_int_equal(tw_store_start(store, &(struct tw_store_run){.max_jobs = 2000, .max_loaded = 1000}), 0);
    other_ask(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)"
                  " INSERT INTO tw_put(queue, id, due_ms) SELECT 'q', CAST(i AS TEXT), 5 FROM n");
    wait_for_calls(calls, 1500);
    other_ask(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25000)"
                  " INSERT INTO tw_put(queue, id, due_ms) SELECT 'q', 'far' || i, 253402300799999 FROM n"
                  " UNION ALL SELECT 'q', 'now', 6");
    sqlite3_close(db);
    wait_for_calls(calls, 1501);
    for (int i = 0; i < 1500; i++)
        tw_job_answer(calls->kept[i], TW_DONE);
    assert_int_equal(tw_store_stop(store), 0);
    free(calls);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(one_store_runs_a_file),
        TEST(who_may_write_the_file_may_lock_it),
        TEST(a_lock_that_is_a_link_is_refused),
        TEST(a_standby_takes_over_within_a_second),
        TEST(a_killed_handler_is_called_again),
        TEST(a_task_that_kills_its_process_dies),
        TEST(commits_of_others_are_seen),
        TEST(a_flood_is_read_from_the_index),
        TEST(a_flood_behind_many_jobs_is_read),
        TEST(a_restored_file_is_read_anew),
        TEST(a_queue_with_too_many_entries_is_read_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
