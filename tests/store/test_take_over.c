/* SPDX-License-Identifier: MIT
 *
 * Several processes and one file: who runs its tasks, what others see of it, and what follows when the runner
 * is killed.
 */
#include "clock.h"
#include "running.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"

#include <fcntl.h>
#include <signal.h>
#include <src/store/runner.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MINUTE_MS = 60000 };

static struct tw_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

static struct tw_store *open_again(void **state)
{
    struct tw_store *store;
    assert_int_equal(tw_store_open(&store, ((struct fixture *)*state)->path, &patient, NULL, 0), 0);
    return store;
}

/* ---- the lock -------------------------------------------------------------------------------------------- */

static int64_t runner_of(struct tw_store *store)
{
    int64_t process;
    assert_int_equal(tw_store_runner(store, &process), 0);
    return process;
}

static void one_store_runs_a_file(void **state)
{
    struct tw_store *store = store_of(state), *second = open_again(state);
    struct calls calls;
    char expected[80];
    calls_init(&calls);
    assert_int_equal(runner_of(second), 0);
    assert_int_equal(tw_store_handle(store, NULL, 0, note_call, &calls), 0);
    start_with(store, &calls);
    assert_int_equal(tw_store_handle(second, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(second, NULL), TW_EBUSY);
    snprintf(expected, sizeof expected, "process %ld runs the tasks of this file", (long)getpid());
    assert_string_equal(message(second), expected);
    assert_int_equal(runner_of(store), getpid());
    assert_int_equal(runner_of(second), getpid());
    snprintf(expected, sizeof expected, "%.60s-tickwheel", ((struct fixture *)*state)->path);
    assert_int_equal(truncate(expected, 0), 0);
    assert_int_equal(tw_store_start(second, NULL), TW_EBUSY);
    assert_string_equal(message(second), "another process runs the tasks of this file");
    assert_int_equal(runner_of(second), -1);
    put(second, "x", 5); /* it may put all the same */
    wait_for_calls(&calls, 1);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(runner_of(second), 0);
    assert_int_equal(tw_store_start(second, NULL), 0);
    tw_store_close(second);
}

/* Whoever has two runners for two queues of a file learns why the second one is refused. */
static void a_run_of_some_queues_is_told_with_their_names(void **state)
{
    struct tw_store *store = store_of(state), *second = open_again(state);
    struct calls calls;
    char expected[TW_STORE_MESSAGE_SIZE], name[TW_STORE_QUEUE_MAX + 1] = "";
    calls_init(&calls);
    start_with(store, &calls);
    assert_int_equal(tw_store_handle(second, "other", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(second, NULL), TW_EBUSY);
    snprintf(
        expected, sizeof expected,
        "process %ld runs the tasks of this file, of queue 'q' alone: run all queues of a file in one process",
        (long)getpid());
    assert_string_equal(message(second), expected);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(tw_store_handle(store, "a\n\xff", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, NULL), 0);
    assert_int_equal(tw_store_start(second, NULL), TW_EBUSY);
    assert_non_null(strstr(message(second), "file, of queues 'a\\x0a\\xff', 'q' alone: "));
    assert_int_equal(tw_store_stop(store), 0);
    memset(name, 'n', sizeof name - 1);
    assert_int_equal(tw_store_handle(store, name, 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, NULL), 0);
    assert_int_equal(tw_store_start(second, NULL), TW_EBUSY);
    assert_non_null(strstr(message(second), "nnn... alone: run all queues of a file in one process"));
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

/* It asks for the lock four times a second. */
static void a_standby_takes_over_within_a_second(void **state)
{
    enum { ASKS = 4, INTERVAL_MS = 250 };
    struct tw_store *store = store_of(state), *second = open_again(state);
    struct tw_store_run_options options = {.flags = TW_STORE_RUN_STANDBY};
    struct calls calls;
    calls_init(&calls);
    clock_halt();
    clock_stop(0);
    start_with(store, &calls);
    assert_int_equal(stats_of(store).began_ms, tw_store_now());
    assert_int_equal(tw_store_handle(second, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(second, &options), 0);
    EVENTUALLY(runner_sleeps(second) > 0);
    runner_idle(store);
    for (int i = 0; i < ASKS; i++) {
        uint64_t sleeps = runner_sleeps(second);
        assert_true(clock_hurry(INTERVAL_MS));
        EVENTUALLY(runner_sleeps(second) > sleeps);
    }
    assert_false(stats_of(second).running);
    assert_int_equal(stats_of(second).began_ms, 0);
    assert_int_equal(tw_store_stop(store), 0);
    put(store, "x", 5);
    clock_pass(INTERVAL_MS);
    uint64_t began_ms = tw_store_now();
    assert_true(clock_hurry(INTERVAL_MS));
    wait_for_calls(&calls, 1);
    assert_true(stats_of(second).running);
    assert_int_equal(stats_of(second).began_ms, began_ms);
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
    return TW_ANSWER_DONE;
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
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        if (tw_store_open(&store, path, NULL, NULL, 0) != 0 ||
            tw_store_handle(store, "q", 0, tell_and_hang, &ends[1]) != 0 || tw_store_start(store, NULL) != 0)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    EVENTUALLY_TOLD(read(ends[0], &byte, 1) == 1, "no handler was called in process %ld", (long)child);
    kill(child, SIGKILL);
    eventually_exited(child);
    close(ends[0]);
}

/* A lapse waits as a failure: here for a millisecond. */
static void shorten_waits(const struct fixture *fixture)
{
    sqlite3 *db = other_open(fixture);
    other_ask(db, "UPDATE tw_meta SET backoff_ms = 1");
    sqlite3_close(db);
}

static void a_killed_handler_is_called_again(void **state)
{
    const struct fixture *fixture = *state;
    struct calls calls;
    calls_init(&calls);
    shorten_waits(fixture);
    put(store_of(state), "x", 5);
    run_and_kill(fixture->path);
    assert_string_equal(scan(store_of(state), NULL), "x@5*");
    run_and_kill(fixture->path);
    start_with(store_of(state), &calls);
    assert_string_equal(wait_for_calls(&calls, 1), "x/3");
    assert_int_equal(calls.last.lapses, 2);
    assert_int_equal(calls.last.due_ms, 5);
    assert_int_equal(tw_store_stop(store_of(state)), 0);
    assert_int_equal(store_count(store_of(state), "q", false), 0);
}

/* Each attempt lapses, also of a queue that this run does not have. Its wait is that of the first failure, as a
 * lapse is none: 1000 - 100 + token mod 201 ms. */
static void attempts_lapse_when_the_next_run_begins(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    char expected[200];
    calls_init(&calls);
    clock_stop(0);
    clock_halt();
    unsigned long long now_ms = tw_store_now(), jitter_ms = 210 % 201;
    put(store, "x", 5);
    put(store, "y", 5);
    put(store, "w", 5);
    other_ask(db,
              "UPDATE tw_task SET attempt = 3, lapses = 2, run = 7, token = 210 WHERE id <> CAST('w' AS BLOB);"
              "UPDATE tw_task SET queue = 'other', tries = 1, jitter = 0, factor = 3, backoff_ms = 20,"
              " attempt = 4 WHERE id = CAST('y' AS BLOB)");
    start_with(store, &calls);
    assert_string_equal(wait_for_calls(&calls, 1), "w/1");
    wait_for_answers(store, 1);
    snprintf(expected, sizeof expected,
             "x 3-3 due 5 next %llu revision 4: the run has ended,y 4-3 due 5 next %llu revision 5: the run "
             "has ended",
             now_ms + 900 + jitter_ms, now_ms + 60);
    assert_string_equal(
        other_ask(db, "SELECT group_concat(id || ' ' || attempt || '-' || lapses || ' due ' || due_ms"
                      " || ' next ' || next_ms || ' revision ' || revision || ': ' || error) FROM"
                      " (SELECT * FROM tw_task WHERE run = 0 AND place_ms = next_ms ORDER BY revision)"),
        expected);
    clock_pass(900 + jitter_ms - 1);
    runner_idle(store);
    assert_int_equal(attempts(store), 1);
    clock_pass(1);
    assert_string_equal(wait_for_calls(&calls, 2), "w/1 x/4");
    assert_int_equal(calls.last.lapses, 3);
    assert_string_equal(calls.last_error, "the run has ended");
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* A past bug: each start wrote the id of such a row behind the end of its buffer, or read no name. */
static void rows_that_are_damaged_are_left_alone(void **state)
{
    static const char *const damage[] = {"id = zeroblob(100000), lapses = 16, attempt = 17, every_ms = 1000",
                                         "queue = NULL", "due_ms = 9223372036854775807, lapses = 16"};
    struct tw_store *store = store_of(state);
    struct calls calls;
    char sql[200];
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    other_ask(db, "PRAGMA writable_schema = ON");
    other_ask(db, "UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '') WHERE name = 'tw_task'");
    sqlite3_close(db);
    db = other_open(*state);
    other_ask(db, "PRAGMA ignore_check_constraints = ON");
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        char id[] = {(char)('0' + i), '\0'};
        put(store, id, 5);
        snprintf(sql, sizeof sql,
                 "UPDATE tw_task SET attempt = 1, run = 7, token = 9, %s WHERE id = CAST('%s' AS BLOB)",
                 damage[i], id);
        other_ask(db, sql);
    }
    put(store, "x", 5);
    start_with(store, &calls);
    assert_string_equal(wait_for_calls(&calls, 1), "x/1");
    assert_int_equal(tw_store_stop(store), 0);
    assert_string_equal(other_ask(db, "SELECT count(*) FROM tw_task WHERE run = 7"), "3");
    sqlite3_close(db);
}

/* A mark of a file that nobody runs ends the attempts of its backup too. */
static void a_mark_ends_the_attempts_of_a_backup(void **state)
{
    struct tw_store *store = store_of(state);
    sqlite3 *db = other_open(*state);
    put(store, "x", 5);
    put(store, "y", 6);
    other_ask(db, "UPDATE tw_task SET attempt = 17, lapses = 15 + (id = CAST('y' AS BLOB)), run = 7;"
                  "UPDATE tw_meta SET run = 7");
    assert_int_equal(store_restored(store, true), 1);
    assert_string_equal(other_ask(db, "SELECT group_concat(id || ' ' || state || ' ' || error) FROM tw_list"),
                        "y dead the run has ended,x waiting the run has ended");
    sqlite3_close(db);
}

static void a_task_that_kills_its_process_dies(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    struct seen seen = {.text = ""};
    struct tw_store_info stats = {0};
    calls_init(&calls);
    shorten_waits(*state);
    put(store, "bad", 5);
    put(store, "good", 6);
    sqlite3 *db = other_open(*state);
    other_ask(db, "UPDATE tw_task SET attempt = 17, lapses = 16, run = 7 WHERE due_ms = 5;"
                  "UPDATE tw_task SET attempt = 16, lapses = 15, run = 7 WHERE due_ms = 6");
    sqlite3_close(db);
    start_with(store, &calls);
    assert_string_equal(wait_for_calls(&calls, 1), "good/17");
    wait_for_answers(store, 1);
    tw_store_stats(store, &stats, sizeof stats);
    assert_int_equal(stats.died, 1);
    assert_int_equal(stats.lapsed, 2);
    assert_int_equal(stats.failed, 0);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(tw_store_get(store, tw_store_named("q", "bad"), see, &seen), 0);
    assert_int_equal(seen.last.state, TW_STATE_DEAD);
    assert_string_equal(seen.error, "the run has ended");
}

/* The process of run 7 has died while "x" and "y" were at work, and somebody has put and moved them since. The
 * next run ends both attempts. "z" has lapsed already, so a put replaces no attempt of it. */
static void the_next_run_ends_attempts_that_were_replaced(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    struct seen seen = {.text = ""};
    uint64_t due_ms = tw_store_now() + MINUTE_MS;
    calls_init(&calls);
    put(store, "x", 5);
    put(store, "y", 6);
    put(store, "z", 7);
    sqlite3 *db = other_open(*state);
    other_ask(db, "UPDATE tw_task SET attempt = 2, token = 9, run = iif(id = CAST('z' AS BLOB), 6, 7);"
                  "UPDATE tw_meta SET run = 7");
    put(store, "x", 8);
    put(store, "x", 9);
    other_ask(db, "INSERT INTO tw_move(queue, id, due_ms) SELECT 'q', 'y', clock + 60000 FROM tw_clock");
    put(store, "z", due_ms);
    assert_string_equal(other_ask(db, "SELECT group_concat(replaced || '/' || token) FROM"
                                      " (SELECT * FROM tw_task ORDER BY id)"),
                        "2/9,2/9,0/0");
    assert_string_equal(other_ask(db, "SELECT state || attempt FROM tw_list WHERE id = 'y'"), "leased2");
    assert_int_equal(store_scan(store, "q", &(struct tw_store_range){.states = TW_STATE_WAITING}, see, &seen),
                     1);
    cancel(store, "z");
    assert_int_equal(seen.last.due_ms, due_ms);
    start_with(store, &calls);
    assert_string_equal(wait_for_calls(&calls, 1), "x/1");
    assert_int_equal(calls.last.lapses, 0);
    assert_int_equal(stats_of(store).lapsed, 2);
    assert_int_equal(tw_store_stop(store), 0);
    assert_string_equal(other_ask(db, "SELECT id || attempt || lapses || replaced || run FROM tw_task"),
                        "y0000");
    sqlite3_close(db);
}

/* ---- commits of others ----------------------------------------------------------------------------------- */

/* Passes time until the runner has loaded a task, and returns the milliseconds. */
static int pass_until_loaded(struct tw_store *store)
{
    int ms = 0;
    for (runner_round(store); stats_of(store).loaded == 0 && ms < 1000; ms++) {
        clock_hurry(1);
        runner_round(store);
    }
    return ms;
}

/* A commit comes right after others, or when there was none for a minute. Each is seen soon, on a clock that
 * the test moves: not only at the slow pace of a look each 30 s. The benchmark measures how soon
 * (bench/store/notice.c). */
static void commits_of_others_are_seen(void **state)
{
    enum { COMMITS = 50, SOON_MS = 10 };
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    char sql[200];
    calls_init(&calls);
    clock_stop(0);
    clock_halt();
    start_with(store, &calls);
    for (int i = 1; i <= COMMITS; i++) {
        snprintf(sql, sizeof sql, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', '%d', %llu)", i,
                 (unsigned long long)tw_store_now() + 1);
        other_ask(db, sql);
        assert_in_range(pass_until_loaded(store), 0, SOON_MS);
        clock_pass(1);
        wait_for_calls(&calls, i);
        wait_for_answers(store, (uint64_t)i);
        clock_hurry(i % 2 == 0 ? MINUTE_MS : (uint64_t)i / 4);
    }
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(calls.count, COMMITS);
    sqlite3_close(db);
}

/* Starts a run a minute ago: the events of its start are no hint any more. */
static void start_long_ago(struct tw_store *store, struct calls *calls)
{
    calls_init(calls);
    clock_stop(0);
    clock_halt();
    start_with(store, calls);
    clock_hurry(MINUTE_MS);
    runner_idle(store);
}

/* A transaction that outgrows SQLite's memory writes before it commits. The runner looks again and again: at
 * once, and after 1, 2, 3, 4, 5, 7 and 9 ms. */
static void a_commit_that_does_not_come_is_looked_for(void **state)
{
    enum { STEPS = 10, LOOKS = 8 };
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    start_long_ago(store, &calls);
    uint64_t looks = runner_looks(store);
    runner_look_away(true);
    runner_round(store);
    other_ask(db, "BEGIN; INSERT INTO tw_put(queue, id, due_ms, payload)"
                  " VALUES ('q', 'never', 5, zeroblob(9000000))");
    runner_look_away(false);
    runner_round(store); /* it sleeps with its eyes open */
    for (int i = 0; i < STEPS; i++) {
        runner_round(store);
        clock_hurry(1);
    }
    assert_int_equal(runner_looks(store), looks + LOOKS);
    runner_idle(store);
    clock_pass(MINUTE_MS);
    runner_idle(store);
    assert_int_equal(attempts(store), 0);
    other_ask(db, "ROLLBACK");
    runner_idle(store);
    assert_int_equal(attempts(store), 0);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* A bug: two seconds after the hint the looks became rare, and a commit with a sync of 2.5 s was seen after
 * four. Here the end of the watch on the log is the last event, and so the hint. The commit comes without one,
 * as after a long sync. */
static void a_commit_with_a_slow_sync_is_seen(void **state)
{
    enum { STEP_MS = 50, LAST_STEP_MS = 500, SYNC_MS = 2500 };
    struct tw_store *store = store_of(state);
    char sql[100];
    struct calls calls;
    sqlite3 *db = other_open(*state);
    start_long_ago(store, &calls);
    const struct tw__store_watch *watch = &store->run->runner->watch;
    assert_int_equal(inotify_rm_watch(watch->files, watch->log), 0);
    runner_round(store);
    for (int ms = 0; ms < SYNC_MS; ms += STEP_MS) {
        clock_hurry(STEP_MS);
        runner_round(store);
    }
    snprintf(sql, sizeof sql, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'x', %llu)",
             (unsigned long long)tw_store_now() + MINUTE_MS);
    other_ask(db, sql);
    assert_true(clock_hurry(LAST_STEP_MS)); /* nobody else wakes it */
    EVENTUALLY(stats_of(store).loaded == 1);
    uint64_t looks = runner_looks(store);
    for (int ms = SYNC_MS + LAST_STEP_MS; ms < MINUTE_MS; ms += STEP_MS) {
        clock_hurry(STEP_MS);
        runner_round(store);
    }
    uint64_t most = (MINUTE_MS - SYNC_MS) / LAST_STEP_MS;
    assert_in_range(runner_looks(store) - looks, most - 10, most);
    assert_false(clock_hurry(20000)); /* no more hint: the next look comes after 30 s */
    clock_pass(MINUTE_MS);
    wait_for_calls(&calls, 1);
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* ---- the order, seen from outside ------------------------------------------------------------------------ */

enum { STRANGERS = 3, THEIR_TASKS = 100 };

/* A program without our library, and the ledger of its tasks. */
struct stranger {
    pthread_t thread;
    sqlite3 *db;
    int number;
    uint64_t lead_ms; /* from the filing of a task to its time, at least */
    bool good;
    uint64_t due_ms[THEIR_TASKS], committed_ms[THEIR_TASKS];
};

/* The calls, in their order. */
struct diary {
    atomic_int n;
    struct {
        int stranger, task;
    } call[STRANGERS * THEIR_TASKS];
};

static bool run_sql(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* Each transaction has a task that is due soon, and holds the lock for a while. */
static void *put_in_turns(void *arg)
{
    struct stranger *stranger = arg;
    struct rng rng;
    rng_init(&rng, (uint64_t)stranger->number + 1);
    stranger->good = true;
    for (int i = 0; i < THEIR_TASKS; i++) {
        char sql[160];
        stranger->good &= run_sql(stranger->db, "BEGIN IMMEDIATE");
        stranger->due_ms[i] = tw_store_now() + stranger->lead_ms + rng_below(&rng, 40);
        snprintf(sql, sizeof sql, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', '%d:%d', %llu)",
                 stranger->number, i, (unsigned long long)stranger->due_ms[i]);
        stranger->good &= run_sql(stranger->db, sql);
        any_moment(rng_below(&rng, 3000));
        stranger->good &= run_sql(stranger->db, "COMMIT");
        stranger->committed_ms[i] = tw_store_now();
    }
    return NULL;
}

static enum tw_answer write_diary(void *arg, struct tw_job *job)
{
    struct diary *diary = arg;
    char id[16] = "";
    int n = atomic_load(&diary->n);
    memcpy(id, job->id.data, job->id.size < sizeof id ? job->id.size : sizeof id - 1);
    if (n < STRANGERS * THEIR_TASKS)
        sscanf(id, "%d:%d", &diary->call[n].stranger, &diary->call[n].task);
    atomic_store(&diary->n, n + 1);
    return TW_ANSWER_DONE;
}

/* A task that was committed before its time is never called after one that is due later. Returns how many were
 * committed so. */
static int check_diary(const struct diary *diary, const struct stranger *strangers)
{
    int all_in_time = 0;
    for (int late = 0; late < STRANGERS * THEIR_TASKS; late++) {
        const struct stranger *who = &strangers[diary->call[late].stranger];
        uint64_t due_ms = who->due_ms[diary->call[late].task];
        bool in_time = who->committed_ms[diary->call[late].task] < due_ms;
        all_in_time += in_time;
        for (int i = 0; i < late && in_time; i++) {
            uint64_t before_ms = strangers[diary->call[i].stranger].due_ms[diary->call[i].task];
            if (before_ms > due_ms)
                fail_msg("call %d was due %d ms before call %d", late, (int)(before_ms - due_ms), i);
        }
    }
    return all_in_time;
}

/* The strangers put their tasks, and all are called. */
static void put_and_call(const struct fixture *fixture, struct stranger *strangers, struct diary *diary,
                         uint64_t lead_ms)
{
    atomic_store(&diary->n, 0);
    for (int i = 0; i < STRANGERS; i++) {
        strangers[i].number = i;
        strangers[i].lead_ms = lead_ms;
        strangers[i].db = other_open(fixture);
        assert_int_equal(pthread_create(&strangers[i].thread, NULL, put_in_turns, &strangers[i]), 0);
    }
    for (int i = 0; i < STRANGERS; i++) {
        eventually_joined(strangers[i].thread);
        assert_true(strangers[i].good);
        sqlite3_close(strangers[i].db);
    }
    EVENTUALLY_TOLD(atomic_load(&diary->n) == STRANGERS * THEIR_TASKS, "%d calls came", atomic_load(&diary->n));
}

/* The lock goes from one to the other, and our commits wait for it again and again. On a slow disk no commit
 * may be in time. Then the strangers file their tasks earlier, until half of them are. */
static void strangers_see_the_order_of_due_times(void **state)
{
    static struct stranger strangers[STRANGERS];
    static struct diary diary;
    struct tw_store *store = store_of(state);
    int in_time = 0;
    assert_int_equal(tw_store_handle(store, "q", 1, write_diary, &diary), 0);
    assert_int_equal(tw_store_start(store, &(struct tw_store_run_options){.workers = 1}), 0);
    for (uint64_t lead_ms = 5; lead_ms < 10000 && in_time < STRANGERS * THEIR_TASKS / 2; lead_ms *= 4) {
        put_and_call(*state, strangers, &diary, lead_ms);
        in_time = check_diary(&diary, strangers);
    }
    assert_true(in_time >= STRANGERS * THEIR_TASKS / 2);
    assert_int_equal(tw_store_stop(store), 0);
}

/* ---- the log --------------------------------------------------------------------------------------------- */

static int64_t size_of_log(const struct fixture *fixture)
{
    struct stat status;
    char path[PATH_SIZE + 8];
    snprintf(path, sizeof path, "%s-wal", fixture->path);
    assert_int_equal(stat(path, &status), 0);
    return status.st_size;
}

/* Lets a second pass, after which the runner looks at the log again. */
static void pass_a_second(struct tw_store *store)
{
    clock_hurry(1000);
    runner_idle(store);
}

/* A reader holds its snapshot for long, and nobody commits after it has ended. */
static void the_log_is_cut_when_its_last_reader_has_gone(void **state)
{
    enum { MOST = 1000000 };
    struct tw_store *store = store_of(state);
    struct calls calls;
    sqlite3 *reader = other_open(*state), *writer = other_open(*state);
    calls_init(&calls);
    clock_stop(0);
    clock_halt();
    other_ask(writer, "CREATE TABLE mine(x)");
    start_with(store, &calls);
    runner_idle(store);
    store->run->runner->log_max = MOST; /* a real one would be larger than some disks of tests */
    other_ask(reader, "BEGIN; SELECT count(*) FROM mine");
    for (int i = 0; i < 3; i++)
        other_ask(writer, "INSERT INTO mine VALUES (zeroblob(500000))");
    pass_a_second(store);
    assert_true(size_of_log(*state) > MOST);
    assert_string_equal(other_ask(reader, "SELECT count(*) FROM mine"), "0");
    other_ask(reader, "COMMIT");
    pass_a_second(store);
    assert_int_equal(size_of_log(*state), 0);
    assert_string_equal(other_ask(reader, "SELECT sum(length(x)) FROM mine"), "1500000");
    put(store, "x", 5);
    runner_idle(store);
    clock_pass(1);
    wait_for_calls(&calls, 1);
    pass_a_second(store);
    assert_true(size_of_log(*state) > 0); /* it is short enough */
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(reader);
    sqlite3_close(writer);
}

/* Without a run too, but for commits of plain SQL. The rest of a log that is short enough stays. */
static void a_long_log_is_cut_by_later_commits_of_the_library(void **state)
{
    enum { MOST = 1000000 };
    struct tw_store *store = store_of(state);
    sqlite3 *reader = other_open(*state), *other = other_open(*state), *own = store->writer.db.db;
    assert_string_equal(other_ask(own, "PRAGMA journal_size_limit"), "67108864"); /* 64 MiB */
    other_ask(own, "PRAGMA journal_size_limit = 1000000");
    other_ask(other, "CREATE TABLE mine(x)");
    other_ask(reader, "BEGIN; SELECT count(*) FROM mine");
    for (int i = 0; i < 3; i++)
        other_ask(other, "INSERT INTO mine VALUES (zeroblob(500000))");
    other_ask(reader, "COMMIT");
    for (int i = 0; i < 2; i++) {
        other_ask(other, "PRAGMA wal_checkpoint"); /* as SQLite does by itself after a thousand pages */
        other_ask(other, "INSERT INTO mine VALUES (1)");
        assert_true(size_of_log(*state) > MOST);
    }
    other_ask(other, "PRAGMA wal_checkpoint");
    put(store, "x", 5);
    assert_int_equal(size_of_log(*state), MOST);
    sqlite3_close(reader);
    sqlite3_close(other);
}

/* A file that was restored while it runs has smaller revisions than the runner has seen. */
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
    other_ask(db, "BEGIN; UPDATE tw_meta SET revision = 0;"
                  "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'old', 5); COMMIT");
    wait_for_calls(&calls, 3);
    runner_idle(store_of(state));
    assert_int_equal(attempts(store_of(state)), 3);
    assert_int_equal(tw_store_stop(store_of(state)), 0);
    sqlite3_close(db);
}

/* Fewer than are read from the index at once: after the next commit no more than its share is kept. */
static void a_queue_with_too_many_entries_is_read_anew(void **state)
{
    struct calls calls;
    sqlite3 *db = other_open(*state);
    char sql[200];
    calls_init(&calls);
    assert_int_equal(tw_store_handle(store_of(state), "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store_of(state), &(struct tw_store_run_options){.max_loaded = 1000}), 0);
    put(store_of(state), "first", 5);
    wait_for_calls(&calls, 1);
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 15000)"
             " INSERT INTO tw_put(queue, id, due_ms) SELECT 'q', CAST(i AS TEXT), %llu FROM n",
             (unsigned long long)tw_store_now() + 500000);
    other_ask(db, sql);
    sqlite3_close(db);
    runner_idle(store_of(state));
    assert_true(stats_of(store_of(state)).loaded >= 15000);
    put(store_of(state), "more", 5);
    runner_idle(store_of(state));
    assert_in_range(stats_of(store_of(state)).loaded, 900, 2000);
    assert_int_equal(tw_store_stop(store_of(state)), 0);
}

/* More new tasks at once than the runner reads one by one, and more than it keeps. */
static void a_flood_is_read_from_the_index(void **state)
{
    struct tw_store_info stats = {0};
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    assert_int_equal(tw_store_handle(store_of(state), "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store_of(state), &(struct tw_store_run_options){.max_loaded = 1000}), 0);
    put(store_of(state), "first", 5);
    wait_for_calls(&calls, 1);
    other_ask(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25000)"
                  " INSERT INTO tw_put(queue, id, due_ms) SELECT 'q', CAST(i AS TEXT), 5 FROM n");
    sqlite3_close(db);
    wait_for_calls(&calls, 25001);
    wait_for_answers(store_of(state), 25001);
    runner_idle(store_of(state)); /* it tells how many it has loaded before it sleeps */
    tw_store_stats(store_of(state), &stats, sizeof stats);
    assert_true(stats.loaded <= 2000);
    assert_int_equal(tw_store_stop(store_of(state)), 0);
    assert_int_equal(store_count(store_of(state), "q", false), 0);
    assert_int_equal(calls.count, 25001);
}

/* The first rows of the index are jobs under way, more of them than one reading loads. */
static void a_flood_behind_many_jobs_is_read(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls *calls = calloc(1, sizeof *calls);
    sqlite3 *db = other_open(*state);
    calls_init(calls);
    calls->answer = TW_ANSWER_LATER;
    calls->answers = 1500;
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, calls), 0);
    assert_int_equal(
        tw_store_start(store, &(struct tw_store_run_options){.max_jobs = 2000, .max_loaded = 1000}), 0);
    other_ask(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)"
                  " INSERT INTO tw_put(queue, id, due_ms) SELECT 'q', CAST(i AS TEXT), 5 FROM n");
    wait_for_calls(calls, 1500);
    other_ask(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25000)"
                  " INSERT INTO tw_put(queue, id, due_ms) SELECT 'q', 'far' || i, 253402300799999 FROM n"
                  " UNION ALL SELECT 'q', 'now', 6");
    sqlite3_close(db);
    wait_for_calls(calls, 1501);
    for (int i = 0; i < 1500; i++)
        tw_job_answer(calls->kept[i], TW_ANSWER_DONE);
    assert_int_equal(tw_store_stop(store), 0);
    free(calls);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, clock_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(one_store_runs_a_file),
        TEST(a_run_of_some_queues_is_told_with_their_names),
        TEST(who_may_write_the_file_may_lock_it),
        TEST(a_lock_that_is_a_link_is_refused),
        TEST(a_standby_takes_over_within_a_second),
        TEST(a_killed_handler_is_called_again),
        TEST(attempts_lapse_when_the_next_run_begins),
        TEST(rows_that_are_damaged_are_left_alone),
        TEST(a_mark_ends_the_attempts_of_a_backup),
        TEST(a_task_that_kills_its_process_dies),
        TEST(the_next_run_ends_attempts_that_were_replaced),
        TEST(commits_of_others_are_seen),
        TEST(a_commit_that_does_not_come_is_looked_for),
        TEST(a_commit_with_a_slow_sync_is_seen),
        TEST(strangers_see_the_order_of_due_times),
        TEST(the_log_is_cut_when_its_last_reader_has_gone),
        TEST(a_long_log_is_cut_by_later_commits_of_the_library),
        TEST(a_flood_is_read_from_the_index),
        TEST(a_flood_behind_many_jobs_is_read),
        TEST(a_restored_file_is_read_anew),
        TEST(a_queue_with_too_many_entries_is_read_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
