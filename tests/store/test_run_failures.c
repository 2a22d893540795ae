/* SPDX-License-Identifier: MIT
 *
 * A store that runs while memory ends, the disk fails, others hold locks, or the system has nothing left. It
 * reports the error, goes on when it can, and no call is lost or doubled.
 *
 * After an error the runner tries again in a second. The tests do not wait for that second: they hurry.
 */
#include "clock.h"
#include "faulty.h"
#include "running.h"
#include "src/store/claim.h"
#include "src/store/commit.h"
#include "src/store/pool.h"
#include "tests/support/eventually.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RETRY_MS = 1000, MINUTE_MS = 60000, HOUR_MS = 3600000 };

/* ---- the system ------------------------------------------------------------------------------------------ */

int __real_inotify_init1(int flags);
int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __real_eventfd(unsigned value, int flags);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *arg);
int __real_open(const char *path, int flags, ...);
int __real_fcntl(int fd, int command, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_fcntl(int fd, int command, void *arg);
int __wrap_inotify_init1(int flags);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_eventfd(unsigned value, int flags);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *arg);

static bool no_inotify, no_watch, no_eventfd, deaf;
static int no_open, no_lock;         /* numbers of errors; 0: none */
static atomic_int threads_left = -1; /* -1: no end */

int __wrap_open(const char *path, int flags, ...)
{
    errno = no_open;
    return no_open != 0 ? -1 : __real_open(path, flags, 0600);
}

int __wrap_fcntl(int fd, int command, void *arg)
{
    errno = no_lock;
    return no_lock != 0 ? -1 : __real_fcntl(fd, command, arg);
}

int __wrap_inotify_init1(int flags)
{
    return no_inotify ? -1 : __real_inotify_init1(flags);
}

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    if (deaf) /* a watch that never tells of anything */
        return __real_inotify_add_watch(fd, "/", IN_DELETE_SELF);
    return no_watch ? -1 : __real_inotify_add_watch(fd, path, mask);
}

int __wrap_eventfd(unsigned value, int flags)
{
    errno = EMFILE;
    return no_eventfd ? -1 : __real_eventfd(value, flags);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *arg)
{
    if (atomic_load(&threads_left) == 0)
        return EAGAIN;
    if (atomic_load(&threads_left) > 0)
        atomic_fetch_sub(&threads_left, 1);
    return __real_pthread_create(thread, attr, body, arg);
}

/* Where a runner that is to stop gets the answer of the last job. NULL: there is no such job. */
static _Atomic(struct tw_job *) falling_asleep, in_its_round;
static int takes; /* of answers, by a runner that is to stop */

bool __real_tw__store_pool_sleep(struct tw__store_pool *pool, bool answers, enum tw__store_more more);
bool __wrap_tw__store_pool_sleep(struct tw__store_pool *pool, bool answers, enum tw__store_more more);
struct tw__store_job *__real_tw__store_pool_answers(struct tw__store_pool *pool);
struct tw__store_job *__wrap_tw__store_pool_answers(struct tw__store_pool *pool);

static void answer_last(_Atomic(struct tw_job *) *last)
{
    struct tw_job *job = atomic_exchange(last, NULL);
    if (job != NULL)
        tw_job_answer(job, TW_ANSWER_DONE);
}

bool __wrap_tw__store_pool_sleep(struct tw__store_pool *pool, bool answers, enum tw__store_more more)
{
    if (atomic_load(&pool->stopping))
        answer_last(&falling_asleep);
    return __real_tw__store_pool_sleep(pool, answers, more);
}

/* A runner that is to stop asks first whether the run is over, and then in its round. */
struct tw__store_job *__wrap_tw__store_pool_answers(struct tw__store_pool *pool)
{
    if (atomic_load(&pool->stopping) && ++takes == 2)
        answer_last(&in_its_round);
    return __real_tw__store_pool_answers(pool);
}

static atomic_bool no_count; /* SQLite does not tell how many commits there were */

int __real_sqlite3_file_control(sqlite3 *db, const char *schema, int question, void *answer);
int __wrap_sqlite3_file_control(sqlite3 *db, const char *schema, int question, void *answer);

int __wrap_sqlite3_file_control(sqlite3 *db, const char *schema, int question, void *answer)
{
    bool known = question != SQLITE_FCNTL_FILE_POINTER || !atomic_load(&no_count);
    return known ? __real_sqlite3_file_control(db, schema, question, answer) : SQLITE_NOTFOUND;
}

static atomic_bool no_check;       /* a worker that looks a task up cannot read it */
static atomic_bool no_check_ready; /* or it has no memory for the statement */
static atomic_int checks;          /* how often workers look tasks up */
static atomic_int refused = -1;    /* there is no memory for this statement, once */
static atomic_int unread = -1;     /* or the rows of this one cannot be read */
static atomic_bool failed_once;    /* this has happened, to either */

sqlite3_stmt *__real_tw__store_db_statement(struct tw__store_db *db, enum tw__store_statement which,
                                            int *error);
sqlite3_stmt *__wrap_tw__store_db_statement(struct tw__store_db *db, enum tw__store_statement which,
                                            int *error);
int __real_tw__store_db_write(struct tw__store_db *db, enum tw__store_statement which, const char *doing,
                              const uint64_t *numbers, int n);
int __wrap_tw__store_db_write(struct tw__store_db *db, enum tw__store_statement which, const char *doing,
                              const uint64_t *numbers, int n);
int __real_tw__store_db_step(struct tw__store_db *db, sqlite3_stmt *statement);
int __wrap_tw__store_db_step(struct tw__store_db *db, sqlite3_stmt *statement);

static int refuse_statement(struct tw__store_db *db, enum tw__store_statement which)
{
    int once = (int)which;
    bool refuses = atomic_compare_exchange_strong(&refused, &once, -1);
    if (refuses)
        atomic_store(&failed_once, true);
    return refuses ? tw__store_db_refuse(db, TW_ENOMEM, "prepare: out of memory") : 0;
}

int __wrap_tw__store_db_write(struct tw__store_db *db, enum tw__store_statement which, const char *doing,
                              const uint64_t *numbers, int n)
{
    int error = refuse_statement(db, which);
    return error != 0 ? error : __real_tw__store_db_write(db, which, doing, numbers, n);
}

sqlite3_stmt *__wrap_tw__store_db_statement(struct tw__store_db *db, enum tw__store_statement which, int *error)
{
    int refusal = refuse_statement(db, which);
    if (refusal != 0) {
        *error = refusal;
        return NULL;
    }
    if (which != TW__STORE_CHECK || !atomic_load(&no_check_ready))
        return __real_tw__store_db_statement(db, which, error);
    atomic_fetch_add(&checks, 1);
    *error = tw__store_db_refuse(db, TW_ENOMEM, "prepare: out of memory");
    return NULL;
}

int __wrap_tw__store_db_step(struct tw__store_db *db, sqlite3_stmt *statement)
{
    bool check = statement == db->statement[TW__STORE_CHECK];
    int once = atomic_load(&unread);
    if (once >= 0 && statement == db->statement[once]) {
        atomic_store(&unread, -1);
        atomic_store(&failed_once, true);
        return SQLITE_IOERR_READ;
    }
    atomic_fetch_add(&checks, check);
    return check && atomic_load(&no_check) ? SQLITE_IOERR_READ : __real_tw__store_db_step(db, statement);
}

/* ---- support --------------------------------------------------------------------------------------------- */

struct errors {
    atomic_int count, last;
    atomic_int mended; /* news that the file can be used again */
};

static void note_error(void *arg, int error, const char *text)
{
    struct errors *errors = arg;
    assert_true(text[0] != '\0');
    if (error == TW_EFAILED || error == TW_EDEAD || error == TW_EDAMAGED)
        return;
    if (error == 0) {
        atomic_fetch_add(&errors->mended, 1);
        return;
    }
    atomic_store(&errors->last, error);
    atomic_fetch_add(&errors->count, 1);
}

static struct tw_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

/* Passes the time to the runner's next try, unless the test has come to its end. */
static bool hurried(bool there)
{
    if (!there)
        clock_hurry(RETRY_MS);
    return there;
}

static void wait_for_errors(struct errors *errors, int n)
{
    EVENTUALLY_TOLD(hurried(atomic_load(&errors->count) >= n), "%d errors, expected %d",
                    atomic_load(&errors->count), n);
}

static const char *hurry_for_calls(struct calls *calls, int n)
{
    EVENTUALLY_TOLD(hurried(calls_of(calls) >= n), "%d calls, expected %d: %.200s", calls_of(calls), n,
                    calls->text);
    return calls->text;
}

static void hurry_for_answers(struct tw_store *store, uint64_t n)
{
    EVENTUALLY_TOLD(hurried(answers(store) >= n), "%d answers, expected %d", (int)answers(store), (int)n);
}

/* The fault is over, and the system's clock stands still: lets the runner try again, and call the tasks that
 * are due. */
static void run_again(struct tw_store *store)
{
    clock_hurry(RETRY_MS);
    runner_idle(store);
    clock_pass(1);
}

/* Fails "b" at its first attempt, and is done with the others. */
static enum tw_answer fail_once(void *arg, struct tw_job *job)
{
    note_call(arg, job);
    if (*(const char *)job->id.data != 'b' || job->attempt > 1)
        return TW_ANSWER_DONE;
    tw_job_fail(job, "once");
    return TW_ANSWER_FAILED;
}

static struct tw_store_run_options quietly(struct errors *errors)
{
    return (struct tw_store_run_options){.workers = 1, .on_error = note_error, .arg = errors};
}

/* Starts the store with one worker and this handler for queue "q". */
static void start_quietly(struct tw_store *store, struct calls *calls, struct errors *errors)
{
    struct tw_store_run_options options = quietly(errors);
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, calls), 0);
    assert_int_equal(tw_store_start(store, &options), 0);
}

/* ---- every fault, everywhere ----------------------------------------------------------------------------- */

/* With the task "e" of queue "s", for a program. */
static void put_all(struct tw_store *store, uint64_t now_ms, bool leased)
{
    struct tw_store_change changes[] = {
        {.task = {.queue = "q", .id = tw_text("a"), .due_ms = 5, .payload = tw_text("x")}},
        {.task = {.queue = "q", .id = tw_text("b"), .due_ms = 6, .tries = 2, .backoff_ms = 1}},
        {.task = {.queue = "q", .id = tw_text("c"), .due_ms = now_ms, .every_ms = 3600000}},
        {.task = {.queue = "r", .id = tw_text("d"), .due_ms = 7}},
        {.task = {.queue = "s", .id = tw_text("e"), .due_ms = 8, .backoff_ms = 1}},
    };
    assert_int_equal(tw_store_apply(store, changes, leased ? 5 : 4), 0);
}

/* A program has taken the task "e", and its lease has run out. */
static void take_one(const struct fixture *fixture)
{
    sqlite3 *db = other_open(fixture);
    other_ask(db, "INSERT INTO tw_take(queue, take, lease_ms) VALUES ('s', 'a random name', 5);"
                  "UPDATE tw_task SET place_ms = 9 WHERE queue = 's'; UPDATE tw_lease SET end_ms = 9");
    sqlite3_close(db);
}

/* The next n: every one at first, then every 23rd, or in the long rounds every one. The end of a lease, for
 * which SQLite prepares large triggers, makes ten times as many requests for memory, so then it is every 101st,
 * or every 23rd. */
static long next_fault(long n, bool leased)
{
    bool all = getenv("TICKWHEEL_LONG") != NULL;
    if (leased)
        return all ? n + 23 : n + 101;
    return n < 40 || all ? n + 1 : n + 23;
}

static bool in_any_order(const char *text, const char *const *words, size_t n)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        if (strstr(text, words[i]) == NULL)
            return false;
        size += strlen(words[i]);
    }
    return strlen(text) == size + n - 1;
}

/* Runs the tasks with the n-th time of a fault. Returns the number of the time at which it has happened; 0: it
 * has not. */
static long run_with_fault(struct fixture *fixture, void (*fault)(long n, bool on), long n, int expected,
                           bool leased)
{
    static const char *const words[] = {"a/1", "b/1", "b/2", "c/1", "d/1", "e/2"};
    static struct calls calls; /* the handlers stay */
    struct errors errors = {0};
    struct tw_store_run_options options = quietly(&errors);
    calls_init(&calls);
    uint64_t now_ms = tw_store_now(), next_ms;
    int calls_due = leased ? 6 : 5;
    if (fault == faulty_memory && getenv("TICKWHEEL_LONG") == NULL) /* thousands of them */
        store_forget(fixture->store);
    else
        store_reopen(fixture);
    put_all(fixture->store, now_ms, leased);
    if (leased)
        take_one(fixture);
    if (fixture->store->run->handlers == NULL) {
        assert_int_equal(tw_store_handle(fixture->store, "q", 0, fail_once, &calls), 0);
        assert_int_equal(tw_store_handle(fixture->store, NULL, 0, fail_once, &calls), 0);
    }
    atomic_store(&failed_once, false);
    fault(n, false);
    int error = tw_store_start(fixture->store, &options);
    if (error != 0) {
        if (error != expected || !(faulty_happened() || atomic_load(&failed_once)))
            fail_msg("fault %ld: %s (%s)", n, tw_store_strerror(error), message(fixture->store));
        assert_int_equal(tw_store_start(fixture->store, &options), 0);
    }
    hurry_for_calls(&calls, calls_due);
    hurry_for_answers(fixture->store, calls_due);
    long happened = faulty_happened() ? faulty_number() : 0;
    fault(0, false);
    assert_int_equal(tw_store_stop(fixture->store), 0);
    happened = atomic_load(&failed_once) ? n : happened;
    if (atomic_load(&errors.count) > 0 && (atomic_load(&errors.last) != expected || happened == 0))
        fail_msg("fault %ld: %s", n, tw_store_strerror(atomic_load(&errors.last)));
    if (!in_any_order(calls.text, words, (size_t)calls_due))
        fail_msg("fault %ld: %s", n, calls.text);
    assert_string_equal(scan(fixture->store, &(struct tw_store_range){.to_ms = now_ms}), "");
    assert_int_equal(tw_store_next(fixture->store, "q", &next_ms), 0);
    assert_int_equal(next_ms, now_ms + 3600000);
    assert_int_equal(store_count(fixture->store, "r", false), 0);
    assert_int_equal(store_count(fixture->store, "s", false), 0);
    assert_int_equal(cancel(fixture->store, "c"), TW_CANCEL_CANCELLED);
    return happened;
}

static void run_with_every_fault(void **state, void (*fault)(long n, bool on), int expected)
{
    for (int leased = 0; leased < 2; leased++) {
        long n = 1, happened;
        while ((happened = run_with_fault(*state, fault, n, expected, leased)) > 0)
            n = next_fault(happened, leased);
        assert_true(n > 10);
    }
}

static void fill_disk(long n, bool on)
{
    faulty_disk(n, SQLITE_FULL, on);
}

static void fail_writing(long n, bool on)
{
    faulty_disk(n, SQLITE_IOERR_WRITE, on);
}

static void fail_reading(long n, bool on)
{
    faulty_disk(n, SQLITE_IOERR_READ, on);
}

static void running_survives_that_memory_ends(void **state)
{
    run_with_every_fault(state, faulty_memory, TW_ENOMEM);
}

static void running_survives_that_our_own_memory_ends(void **state)
{
    run_with_every_fault(state, faulty_own_memory, TW_ENOMEM);
}

static void refuse_statement_once(long n, bool on)
{
    (void)on;
    atomic_store(&refused, (int)n - 1);
}

static void fail_statement_once(long n, bool on)
{
    (void)on;
    atomic_store(&unread, (int)n - 1);
}

/* A run does not use every statement. */
static void run_with_every_statement(void **state, void (*fault)(long n, bool on), int expected)
{
    int happened = 0;
    for (long n = 1; n <= TW__STORE_STATEMENTS; n++)
        happened += run_with_fault(*state, fault, n, expected, true) > 0;
    assert_true(happened > 3);
}

/* Each statement is one request for memory among hundreds, which only the long rounds refuse one by one. */
static void running_survives_that_a_statement_has_no_memory(void **state)
{
    run_with_every_statement(state, refuse_statement_once, TW_ENOMEM);
}

static void running_survives_that_a_statement_fails(void **state)
{
    run_with_every_statement(state, fail_statement_once, TW_EIO);
}

static void running_survives_that_the_disk_is_full(void **state)
{
    run_with_every_fault(state, fill_disk, TW_ENOSPACE);
}

static void running_survives_that_the_disk_fails(void **state)
{
    run_with_every_fault(state, fail_writing, TW_EIO);
}

static void running_survives_that_reading_fails(void **state)
{
    run_with_every_fault(state, fail_reading, TW_EIO);
}

/* ---- answers that cannot be written ---------------------------------------------------------------------- */

static void an_answer_that_cannot_be_written_ends_the_stop_with_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct tw_store_run_options options = quietly(&errors);
    struct calls calls;
    calls_init(&calls);
    calls.block = true;
    put(fixture->store, "x", 5);
    assert_int_equal(tw_store_handle(fixture->store, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(fixture->store, &options), 0);
    wait_for_calls(&calls, 1);
    faulty_disk(1, SQLITE_FULL, true);
    unblock(&calls);
    wait_for_errors(&errors, 3); /* it tries again and again */
    assert_int_equal(tw_store_stop(fixture->store), TW_ENOSPACE);
    assert_int_equal(atomic_load(&errors.last), TW_ENOSPACE);
    faulty_disk(0, 0, false);
    assert_int_equal(tw_store_start(fixture->store, &options), 0);
    assert_string_equal(wait_for_calls(&calls, 2), "x/1 x/2");
    assert_int_equal(tw_store_stop(fixture->store), 0);
    assert_int_equal(store_count(fixture->store, "q", false), 0);
}

/* Answers that come while the disk is full wait together with the first. */
static void answers_wait_for_the_disk(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct tw_store_run_options options = quietly(&errors);
    struct tw_store_info stats = {0};
    struct calls calls;
    calls_init(&calls);
    calls.answer = TW_ANSWER_LATER;
    calls.answers = 3;
    options.workers = 4;
    for (int i = 0; i < 3; i++)
        put(fixture->store, &"c\0b\0a"[2 * i], 5);
    assert_int_equal(tw_store_handle(fixture->store, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(fixture->store, &options), 0);
    wait_for_calls(&calls, 3);
    faulty_disk(1, SQLITE_FULL, true);
    for (int i = 0; i < 3; i++) {
        tw_job_answer(calls.kept[i], TW_ANSWER_DONE);
        wait_for_errors(&errors, 2 * (i + 1));
    }
    assert_int_equal(atomic_load(&errors.mended), 0);
    faulty_disk(0, 0, false);
    hurry_for_answers(fixture->store, 3);
    EVENTUALLY(atomic_load(&errors.mended) == 1);
    tw_store_stats(fixture->store, &stats, sizeof stats);
    assert_true(stats.errors >= 6);
    assert_int_equal(tw_store_stop(fixture->store), 0);
    assert_int_equal(store_count(fixture->store, "q", false), 0);
}

static void answers_are_written_though_nothing_can_be_looked_at(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct calls calls;
    calls_init(&calls);
    calls.answer = TW_ANSWER_LATER;
    put(fixture->store, "x", 5);
    start_quietly(fixture->store, &calls, &errors);
    wait_for_calls(&calls, 1);
    sqlite3 *db = other_open(fixture);
    other_ask(db, "DROP INDEX tw_order");
    runner_idle(fixture->store);
    other_ask(db, "UPDATE tw_meta SET revision = revision + 30000");
    wait_for_errors(&errors, 1);
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    assert_int_equal(tw_store_stop(fixture->store), 0);
    assert_string_equal(other_ask(db, "SELECT count(*) FROM tw_task"), "0");
    sqlite3_close(db);
}

static void *stop(void *store)
{
    assert_int_equal(tw_store_stop(store), TW_ENOSPACE);
    return NULL;
}

/* Two bugs: the last answer came just before the runner fell asleep after an error, or in a round that failed.
 * It did not wake the runner, and the stop lasted until the next try, which is never while the clock stands
 * still. */
static void stop_while_the_last_answer_comes(struct fixture *fixture, bool asleep)
{
    struct errors errors = {0};
    struct calls calls;
    pthread_t thread;
    calls_init(&calls);
    calls.answer = TW_ANSWER_LATER;
    clock_halt();
    put(fixture->store, "a", 5);
    put(fixture->store, "b", 5);
    start_quietly(fixture->store, &calls, &errors);
    wait_for_calls(&calls, 2);
    takes = 0;
    if (asleep) {
        faulty_disk(1, SQLITE_FULL, true);
        tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
        EVENTUALLY(atomic_load(&errors.count) == 1);
    } else {
        tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
        runner_round(fixture->store);
        faulty_disk(1, SQLITE_FULL, true);
    }
    atomic_store(asleep ? &falling_asleep : &in_its_round, calls.kept[1]);
    assert_int_equal(pthread_create(&thread, NULL, stop, fixture->store), 0);
    eventually_joined(thread);
    assert_in_range(atomic_load(&errors.count), asleep ? 2 : 1, 2); /* 1: the round began before the stop */
    faulty_disk(0, 0, false);
}

static void a_stop_after_an_error_does_not_miss_the_last_answer(void **state)
{
    stop_while_the_last_answer_comes(*state, true);
}

static void a_stop_does_not_miss_the_last_answer_of_a_round_that_fails(void **state)
{
    stop_while_the_last_answer_comes(*state, false);
}

static void a_lock_of_others_is_waited_for(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store_options quick = {.busy_ms = 5};
    struct errors errors = {0};
    struct tw_store_run_options options = quietly(&errors);
    struct calls calls;
    calls_init(&calls);
    tw_store_close(fixture->store);
    assert_int_equal(tw_store_open(&fixture->store, fixture->path, &quick, NULL, 0), 0);
    clock_stop(0);
    put(fixture->store, "x", tw_store_now() + 30);
    assert_int_equal(tw_store_handle(fixture->store, "q", 0, note_call, &calls), 0);
    sqlite3 *db = other_open(fixture);
    other_ask(db, "BEGIN IMMEDIATE");
    assert_int_equal(tw_store_start(fixture->store, &options), TW_EBUSY); /* the run has to be counted */
    other_ask(db, "COMMIT");
    assert_int_equal(tw_store_start(fixture->store, &options), 0);
    runner_idle(fixture->store);
    other_ask(db, "BEGIN IMMEDIATE");
    clock_pass(30);
    wait_for_errors(&errors, 2);
    assert_int_equal(atomic_load(&errors.last), TW_EBUSY);
    assert_int_equal(calls_of(&calls), 0);
    other_ask(db, "COMMIT");
    assert_string_equal(hurry_for_calls(&calls, 1), "x/1");
    assert_int_equal(tw_store_stop(fixture->store), 0);
    sqlite3_close(db);
}

/* A bug: the runner claimed the task again at once, and the worker looked it up again, without an end. */
static void a_job_waits_that_cannot_be_looked_up(struct fixture *fixture, atomic_bool *fault, int error,
                                                 const char *text)
{
    struct errors errors = {0};
    struct calls calls;
    calls_init(&calls);
    calls.block = true;
    clock_halt();
    put(fixture->store, "a", 5);
    put(fixture->store, "b", 6);
    start_quietly(fixture->store, &calls, &errors);
    wait_for_calls(&calls, 1);
    EVENTUALLY(attempts(fixture->store) == 2);
    put(fixture->store, "far", tw_store_now() + HOUR_MS); /* since then "b" has to be looked up */
    atomic_store(&checks, 0);
    atomic_store(fault, true);
    unblock(&calls);
    EVENTUALLY(atomic_load(&errors.count) == 1);
    assert_int_equal(atomic_load(&errors.last), error);
    assert_non_null(strstr(message(fixture->store), text));
    wait_for_answers(fixture->store, 1);
    assert_int_equal(atomic_load(&checks), 1);
    atomic_store(fault, false);
    assert_string_equal(hurry_for_calls(&calls, 2), "a/1 b/1");
    assert_int_equal(tw_store_stop(fixture->store), 0);
    assert_int_equal(atomic_load(&errors.count), 1);
    assert_int_equal(atomic_load(&errors.mended), 1);
}

static void a_job_that_cannot_be_read_waits(void **state)
{
    a_job_waits_that_cannot_be_looked_up(*state, &no_check, TW_EIO, "look a task up");
}

static void a_job_that_no_statement_looks_up_waits(void **state)
{
    a_job_waits_that_cannot_be_looked_up(*state, &no_check_ready, TW_ENOMEM, "prepare: out of memory");
}

static void without_a_count_of_commits_each_job_is_looked_up(void **state)
{
    struct fixture *fixture = *state;
    struct calls calls;
    calls_init(&calls);
    for (int i = 0; i < 3; i++)
        put(fixture->store, &"a\0b\0c"[2 * i], 5);
    atomic_store(&checks, 0);
    atomic_store(&no_count, true);
    start_with(fixture->store, &calls);
    wait_for_calls(&calls, 3);
    assert_int_equal(tw_store_stop(fixture->store), 0);
    atomic_store(&no_count, false);
    assert_int_equal(atomic_load(&checks), 3);
}

/* A backup from before this run was restored, and the disk is full. */
static void a_run_that_cannot_count_itself_anew_waits(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct calls calls;
    calls_init(&calls);
    start_quietly(fixture->store, &calls, &errors);
    sqlite3 *db = other_open(fixture);
    other_ask(db, "BEGIN; UPDATE tw_meta SET run = 0;"
                  "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'x', 5)");
    runner_look_away(true);
    runner_round(fixture->store);
    other_ask(db, "COMMIT");
    faulty_disk(1, SQLITE_FULL, true);
    runner_look_away(false);
    wait_for_errors(&errors, 2);
    assert_int_equal(atomic_load(&errors.last), TW_ENOSPACE);
    assert_int_equal(calls_of(&calls), 0);
    faulty_disk(0, 0, false);
    hurry_for_calls(&calls, 1);
    assert_int_equal(tw_store_stop(fixture->store), 0);
    assert_string_equal(other_ask(db, "SELECT run FROM tw_meta"), "1");
    sqlite3_close(db);
}

/* A standby that gets the lock, but cannot write, says so and tries again. */
static void a_standby_survives_that_it_cannot_begin(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store *second;
    struct errors errors = {0};
    struct tw_store_run_options options = quietly(&errors);
    struct calls calls;
    calls_init(&calls);
    start_with(fixture->store, &calls);
    options.flags = TW_STORE_RUN_STANDBY;
    assert_int_equal(tw_store_open(&second, fixture->path, NULL, NULL, 0), 0);
    assert_int_equal(tw_store_handle(second, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(second, &options), 0);
    faulty_disk(1, SQLITE_FULL, true);
    assert_int_equal(tw_store_stop(fixture->store), 0);
    wait_for_errors(&errors, 2);
    assert_int_equal(atomic_load(&errors.last), TW_ENOSPACE);
    faulty_disk(0, 0, false);
    put(second, "x", 5);
    hurry_for_calls(&calls, 1);
    tw_store_close(second);
}

/* ---- the system has nothing left ------------------------------------------------------------------------- */

static void a_system_without_descriptors_or_threads_is_an_error(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, &calls), 0);
    no_eventfd = true;
    assert_int_equal(tw_store_start(store, NULL), TW_ESYSTEM);
    no_eventfd = false;
    for (int n = 0, error = TW_ESYSTEM; error != 0; n++) {
        atomic_store(&threads_left, n);
        error = tw_store_start(store, &(struct tw_store_run_options){.workers = 2});
        assert_true(n < 8 && (error == 0 || error == TW_ESYSTEM));
    }
    atomic_store(&threads_left, -1);
    put(store, "x", 5);
    wait_for_calls(&calls, 1);
    assert_int_equal(tw_store_stop(store), 0);
}

/* There is a look each 100 ms. With the pace of a runner that is told of commits it would be one in 30 s. */
static void without_file_events_commits_are_seen_all_the_same(void **state)
{
    bool *const missing[] = {&no_inotify, &no_watch};
    enum { PUTS = 5, BLIND_MS = 100 };
    struct calls calls;
    calls_init(&calls);
    clock_halt();
    assert_int_equal(tw_store_handle(store_of(state), "q", 0, note_call, &calls), 0);
    for (int i = 0; i < 2; i++) {
        *missing[i] = true;
        assert_int_equal(tw_store_start(store_of(state), NULL), 0);
        for (int n = i * PUTS; n < (i + 1) * PUTS; n++) {
            runner_idle(store_of(state));
            put(store_of(state), "x", 5);
            clock_hurry(BLIND_MS); /* an answer may have woken the runner before */
            wait_for_calls(&calls, n + 1);
        }
        assert_int_equal(tw_store_stop(store_of(state)), 0);
        *missing[i] = false;
    }
}

/* A file system that reports nothing, though it takes the watch. The runner looks all the same, each 30 s. */
static void commits_without_an_event_are_seen_at_last(void **state)
{
    struct fixture *fixture = *state;
    struct calls calls;
    sqlite3 *db = other_open(fixture);
    calls_init(&calls);
    deaf = true;
    clock_halt();
    start_with(fixture->store, &calls);
    runner_idle(fixture->store);
    other_ask(db, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'x', 5)");
    assert_true(clock_hurry(30000));
    wait_for_calls(&calls, 1);
    deaf = false;
    assert_int_equal(tw_store_stop(fixture->store), 0);
    sqlite3_close(db);
}

static void other_files_of_the_folder_are_no_hints(void **state)
{
    struct fixture *fixture = *state;
    char other[PATH_SIZE + 8];
    struct calls calls;
    calls_init(&calls);
    snprintf(other, sizeof other, "%s-other", fixture->path);
    clock_halt();
    start_with(fixture->store, &calls);
    runner_idle(fixture->store);
    fclose(fopen(other, "w"));
    runner_idle(fixture->store);
    assert_false(clock_hurry(RETRY_MS)); /* it waits for its next look, and not for one after a hint */
    assert_int_equal(unlink(other), 0);
    runner_idle(fixture->store);
    assert_false(clock_hurry(RETRY_MS));
    clock_go();
    put(fixture->store, "x", 5);
    wait_for_calls(&calls, 1);
    assert_int_equal(tw_store_stop(fixture->store), 0);
}

static void a_lock_file_that_cannot_be_opened_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        int number, error;
    } errors[] = {{EACCES, TW_EREADONLY}, {EROFS, TW_EREADONLY}, {EPERM, TW_EREADONLY}, {EMFILE, TW_ESYSTEM},
                  {ENFILE, TW_ESYSTEM},   {ENOSPC, TW_ENOSPACE}, {EDQUOT, TW_ENOSPACE}, {ENOENT, TW_EIO}};
    char path[PATH_SIZE + 16], expected[2 * PATH_SIZE];
    struct calls calls;
    calls_init(&calls);
    snprintf(path, sizeof path, "%s-tickwheel", fixture->path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(tw_store_handle(fixture->store, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(fixture->store, NULL), TW_EIO);
    snprintf(expected, sizeof expected, "%s: Is a directory", path);
    assert_string_equal(message(fixture->store), expected);
    assert_int_equal(rmdir(path), 0);
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        no_open = errors[i].number;
        assert_int_equal(tw_store_start(fixture->store, NULL), errors[i].error);
    }
    no_open = 0;
    no_lock = ENOLCK;
    assert_int_equal(tw_store_start(fixture->store, NULL), TW_EIO);
    no_lock = 0;
    assert_int_equal(tw_store_start(fixture->store, NULL), 0);
}

/* The clock is set back, and there is no memory for the wheel that begins there. */
static void a_step_without_memory_is_made_up_for(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct calls calls;
    calls_init(&calls);
    start_quietly(fixture->store, &calls, &errors);
    put(fixture->store, "x", 5);
    wait_for_calls(&calls, 1);
    wait_for_answers(fixture->store, 1);
    clock_stop(0);
    faulty_own_memory(1, true);
    clock_step(-HOUR_MS);
    sqlite3 *db = other_open(fixture);
    other_ask(db, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'z', 5)");
    wait_for_errors(&errors, 2);
    assert_int_equal(atomic_load(&errors.last), TW_ENOMEM);
    faulty_own_memory(0, false);
    run_again(fixture->store);
    wait_for_calls(&calls, 2);
    assert_int_equal(tw_store_stop(fixture->store), 0);
    sqlite3_close(db);
}

/* The memory ends while the window moves over more tasks than it has entries. */
static void a_window_without_memory_is_made_up_for(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct calls calls;
    char sql[200];
    calls_init(&calls);
    sqlite3 *db = other_open(fixture);
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)"
             " INSERT INTO tw_put(queue, id, due_ms) SELECT 'q', CAST(i AS TEXT), %llu FROM n",
             (unsigned long long)tw_store_now() + 20 * MINUTE_MS);
    other_ask(db, sql);
    start_quietly(fixture->store, &calls, &errors);
    put(fixture->store, "x", 5);
    wait_for_calls(&calls, 1);
    wait_for_answers(fixture->store, 1);
    clock_stop(0);
    faulty_own_memory(1, true);
    clock_pass(21 * MINUTE_MS);
    other_ask(db, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'y', 5)");
    wait_for_errors(&errors, 2);
    assert_int_equal(atomic_load(&errors.last), TW_ENOMEM);
    faulty_own_memory(0, false);
    run_again(fixture->store);
    wait_for_calls(&calls, 602);
    wait_for_answers(fixture->store, 602);
    assert_int_equal(tw_store_stop(fixture->store), 0);
    assert_int_equal(calls.count, 602);
    assert_int_equal(store_count(fixture->store, "q", false), 0);
    sqlite3_close(db);
}

/* Runs the store anew, with one handler. Then the process has no memory: the nth request of ours fails. */
static void run_without_memory(struct fixture *fixture, const char *queue, struct calls *calls,
                               const struct tw_store_run_options *options, long n)
{
    calls_init(calls);
    store_reopen(fixture);
    assert_int_equal(tw_store_handle(fixture->store, queue, 0, note_call, calls), 0);
    assert_int_equal(tw_store_start(fixture->store, options), 0);
    runner_idle(fixture->store);
    faulty_own_memory(n, false);
}

/* So many queues come at once that their table grows. */
static void news_of_new_queues_survive_that_memory_ends(void **state)
{
    enum { QUEUES = 80 };
    struct fixture *fixture = *state;
    sqlite3 *db = other_open(fixture);
    bool happened = true;
    for (long n = 1; happened; n++) {
        struct errors errors = {0};
        struct tw_store_run_options options = quietly(&errors);
        struct calls calls;
        run_without_memory(fixture, NULL, &calls, &options, n);
        other_ask(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80)"
                      " INSERT INTO tw_put(queue, id, due_ms) SELECT 'user:' || i, 'x', 5 FROM n");
        hurry_for_calls(&calls, QUEUES);
        hurry_for_answers(fixture->store, QUEUES);
        happened = faulty_happened();
        faulty_own_memory(0, false);
        assert_int_equal(tw_store_stop(fixture->store), 0);
        assert_int_equal(calls.count, QUEUES);
    }
    sqlite3_close(db);
}

/* The task has used up its attempts. Without memory for the news of it, it dies untold. */
static void a_death_survives_that_memory_ends(void **state)
{
    struct fixture *fixture = *state;
    sqlite3 *db = other_open(fixture);
    bool happened = true;
    for (long n = 1; happened; n++) {
        struct errors errors = {0};
        struct tw_store_run_options options = quietly(&errors);
        struct calls calls;
        run_without_memory(fixture, "q", &calls, &options, n);
        other_ask(db, "BEGIN; INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'x', 5);"
                      "UPDATE tw_task SET attempt = 17, lapses = 16, run = 1000;"
                      "UPDATE tw_meta SET run = run + 1; COMMIT"); /* as a backup: the run counts itself anew */
        EVENTUALLY(hurried(stats_of(fixture->store).died == 1));
        happened = faulty_happened();
        faulty_own_memory(0, false);
        assert_int_equal(tw_store_stop(fixture->store), 0);
        assert_int_equal(calls.count, 0);
    }
    sqlite3_close(db);
}

/* The handler of the task gives this answer, which waits for the next try. Then the file answers `sql` so. */
static void an_answer_survives(struct fixture *fixture, const struct tw_store_delayed *task,
                               enum tw_answer answer, int expected_error, const char *sql, const char *expected)
{
    struct errors errors = {0};
    struct calls calls;
    calls_init(&calls);
    calls.answer = answer;
    assert_int_equal(store_put(fixture->store, task, 0), 1);
    start_quietly(fixture->store, &calls, &errors);
    wait_for_errors(&errors, 1);
    assert_int_equal(atomic_load(&errors.last), expected_error);
    hurry_for_answers(fixture->store, 1);
    assert_int_equal(tw_store_stop(fixture->store), 0);
    assert_int_equal(calls.count, 1);
    sqlite3 *db = other_open(fixture);
    assert_string_equal(other_ask(db, sql), expected);
    sqlite3_close(db);
}

/* The first name of the dead period is in use. */
static void the_death_of_a_period_survives_a_failure(struct fixture *fixture, atomic_int *failure,
                                                     int statement, int expected_error)
{
    struct tw_store_delayed series = {
        .queue = "q", .id = tw_text("x"), .due_ms = 5, .every_ms = 1000, .times = 1};
    assert_int_equal(put(fixture->store, "x@5", tw_store_now() + HOUR_MS), 1);
    atomic_store(failure, statement);
    an_answer_survives(fixture, &series, TW_ANSWER_DEAD, expected_error,
                       "SELECT id FROM tw_list WHERE state = 'dead'", "x@5-1");
}

static void a_period_is_buried_at_the_next_try(void **state)
{
    the_death_of_a_period_survives_a_failure(*state, &refused, TW__STORE_BURY_PERIOD, TW_ENOMEM);
}

static void the_options_of_a_series_are_looked_up_at_the_next_try(void **state)
{
    the_death_of_a_period_survives_a_failure(*state, &refused, TW__STORE_OPTIONS_OF, TW_ENOMEM);
}

static void the_options_of_a_series_are_read_at_the_next_try(void **state)
{
    the_death_of_a_period_survives_a_failure(*state, &unread, TW__STORE_OPTIONS_OF, TW_EIO);
}

/* Past bugs: after a pause there was nothing to claim, and a round without claims ended the error; and the run
 * kept the numbers of failed claims as a range, so the claim of "y", whose number lies between the two of the
 * paused queue, ended it. */
static void only_their_own_claims_end_the_error_of_claims(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct tw_store_run_options options = quietly(&errors);
    struct calls calls;
    const struct tw_store_delayed elsewhere = {.queue = "other", .id = tw_text("y"), .due_ms = 5};
    calls_init(&calls);
    put(fixture->store, "x", 5);
    assert_int_equal(store_put(fixture->store, &elsewhere, 0), 1);
    put(fixture->store, "z", 5);
    atomic_store(&unread, TW__STORE_CLAIM_ROW);
    assert_int_equal(tw_store_handle(fixture->store, NULL, 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(fixture->store, &options), 0);
    EVENTUALLY(atomic_load(&errors.count) == 1); /* and no hurry: the next try comes after the pause */
    assert_int_equal(atomic_load(&errors.last), TW_EIO);
    assert_int_equal(store_pause(fixture->store, "q"), 1);
    run_again(fixture->store);
    hurry_for_calls(&calls, 1);
    runner_idle(fixture->store);
    assert_int_equal(atomic_load(&errors.mended), 0);
    assert_int_equal(store_resume(fixture->store, "q"), 1);
    hurry_for_calls(&calls, 3);
    EVENTUALLY(hurried(atomic_load(&errors.mended) == 1));
    assert_int_equal(tw_store_stop(fixture->store), 0);
    assert_int_equal(atomic_load(&errors.count), 1);
}

static void move_away(struct tw_store *store)
{
    assert_int_equal(tw_store_move_in(store, tw_store_named("q", "x"), HOUR_MS, 0, NULL), 0);
}

static void cancel_it(struct tw_store *store)
{
    assert_int_equal(cancel(store, "x"), TW_CANCEL_CANCELLED);
}

/* A past bug: a claim fails, and then a look. All entries are read anew, and the task is not among them. Its
 * claim was in trouble until the end of the run. */
static void a_failed_claim_whose_task_has_left_is_no_error(void **state)
{
    static void (*const leave[])(struct tw_store * store) = {cancel_it, move_away};
    struct fixture *fixture = *state;
    for (size_t i = 0; i < 2 * (sizeof leave / sizeof leave[0]); i++) {
        struct errors errors = {0};
        struct tw_store_run_options options = quietly(&errors);
        struct calls calls;
        bool look_fails = i % 2 == 1;
        store_reopen(fixture);
        calls_init(&calls);
        clock_halt();
        put(fixture->store, "x", 5);
        atomic_store(&unread, TW__STORE_CLAIM_ROW);
        assert_int_equal(tw_store_handle(fixture->store, NULL, 1, note_call, &calls), 0);
        assert_int_equal(tw_store_start(fixture->store, &options), 0);
        EVENTUALLY(atomic_load(&errors.count) == 1);
        if (look_fails) {
            atomic_store(&unread, TW__STORE_NEWS);
            put(fixture->store, "y", tw_store_now() + HOUR_MS);
            clock_hurry(RETRY_MS);
            EVENTUALLY(atomic_load(&errors.count) == 2);
        }
        leave[i / 2](fixture->store);
        EVENTUALLY(hurried(atomic_load(&errors.mended) == 1));
        assert_int_equal(tw_store_stop(fixture->store), 0);
        assert_int_equal(calls.count, 0);
        assert_int_equal(atomic_load(&errors.count), 1 + look_fails);
    }
}

/* Waits for an error, because there is no memory for a statement, and then for the next try. */
static void refuse_once(struct fixture *fixture, int statement, tw_store_handler_fn *handler, void *arg)
{
    struct errors errors = {0};
    struct tw_store_run_options options = quietly(&errors);
    atomic_store(&refused, statement);
    assert_int_equal(tw_store_handle(fixture->store, "q", 0, handler, arg), 0);
    assert_int_equal(tw_store_start(fixture->store, &options), 0);
    wait_for_errors(&errors, 1);
    assert_int_equal(atomic_load(&errors.last), TW_ENOMEM);
    EVENTUALLY(hurried(atomic_load(&errors.mended) > 0));
    assert_int_equal(tw_store_stop(fixture->store), 0);
}

struct replacer {
    struct calls calls;
    struct tw_store *store;
};

static enum tw_answer put_itself(void *arg, struct tw_job *job)
{
    struct replacer *replacer = arg;
    put(replacer->store, "x", tw_store_now() + HOUR_MS);
    return note_call(&replacer->calls, job);
}

static void a_replaced_attempt_is_ended_at_the_next_try(void **state)
{
    struct tw_store *store = store_of(state);
    struct replacer replacer = {.store = store};
    uint64_t next_ms;
    calls_init(&replacer.calls);
    put(store, "x", 5);
    refuse_once(*state, TW__STORE_END_REPLACED, put_itself, &replacer);
    assert_int_equal(replacer.calls.count, 1);
    assert_int_equal(tw_store_next(store, "q", &next_ms), 0);
    assert_true(next_ms > tw_store_now() && next_ms != TW_NEVER);
}

/* They come together, because somebody holds the lock meanwhile. */
static void many_answers_are_written_at_the_next_try(void **state)
{
    enum { N = 3 * TW__STORE_MANY };
    struct tw_store *store = store_of(state);
    struct errors errors = {0};
    struct tw_store_run_options options = quietly(&errors);
    struct calls calls;
    char id[16];
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    calls.answer = TW_ANSWER_LATER;
    options.workers = N; /* each begins at once, so none is given back and claimed later */
    clock_stop(0);
    for (int i = 0; i < N; i++) {
        snprintf(id, sizeof id, "%d", i);
        put(store, id, 5);
    }
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, &options), 0);
    EVENTUALLY(kept_of(&calls) == N);
    other_ask(db, "BEGIN IMMEDIATE");
    atomic_store(&refused, TW__STORE_DONE_MANY);
    for (int i = 0; i < N; i++)
        tw_job_answer(calls.kept[i], TW_ANSWER_DONE);
    other_ask(db, "COMMIT");
    EVENTUALLY(hurried(atomic_load(&errors.mended) > 0));
    assert_int_equal(atomic_load(&errors.last), TW_ENOMEM);
    assert_int_equal(atomic_load(&errors.count), 1);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(store_count(store, "q", false), 0);
    sqlite3_close(db);
}

/* At the next try the answer is there too, and ends the attempt in the same commit. */
static void a_task_stands_behind_an_attempt_at_the_next_try(void **state)
{
    struct tw_store *store = store_of(state);
    struct errors errors = {0};
    struct calls calls;
    calls_init(&calls);
    calls.answer = TW_ANSWER_LATER;
    calls.answers = 1;
    put(store, "x", 5);
    start_quietly(store, &calls, &errors);
    EVENTUALLY(kept_of(&calls) == 1);
    assert_int_equal(tw_store_cancel(store, tw_store_named("q", "x"), NULL), 0);
    atomic_store(&refused, TW__STORE_STAND_BEHIND);
    put(store, "x", 7);
    EVENTUALLY(atomic_load(&errors.count) == 1);
    tw_job_answer(calls.kept[0], TW_ANSWER_DONE);
    assert_string_equal(hurry_for_calls(&calls, 2), "x/1 x/1");
    hurry_for_answers(store, 2);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(store_count(store, "q", false), 0);
}

static void a_period_is_passed_over_at_the_next_try(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    uint64_t next_ms;
    struct tw_store_delayed series = {
        .queue = "q", .id = tw_text("x"), .due_ms = 5, .every_ms = HOUR_MS, .missed = TW_MISSED_SKIP};
    calls_init(&calls);
    clock_stop(2 * HOUR_MS);
    assert_int_equal(store_put(store, &series, 0), 1);
    refuse_once(*state, TW__STORE_ANEW, note_call, &calls);
    assert_int_equal(calls.count, 0);
    assert_int_equal(tw_store_next(store, "q", &next_ms), 0);
    assert_int_equal(next_ms, 2 * HOUR_MS + 5);
}

/* The answer of a job cannot be written, or the options of its task cannot be read. */
static void a_failure_survives(struct fixture *fixture, atomic_int *failure, int statement, int expected_error)
{
    struct tw_store_delayed task = {
        .queue = "q", .id = tw_text("x"), .due_ms = 5, .tries = 2, .backoff_ms = HOUR_MS};
    atomic_store(failure, statement);
    an_answer_survives(fixture, &task, TW_ANSWER_FAILED, expected_error, "SELECT state || attempt FROM tw_list",
                       "waiting1");
}

static void a_retry_is_written_at_the_next_try(void **state)
{
    a_failure_survives(*state, &refused, TW__STORE_RETRY, TW_ENOMEM);
}

static void the_options_of_a_retry_are_read_at_the_next_try(void **state)
{
    a_failure_survives(*state, &unread, TW__STORE_OPTIONS_OF, TW_EIO);
}

static void news_are_read_at_the_next_try(void **state)
{
    struct tw_store *store = store_of(state);
    struct errors errors = {0};
    struct calls calls;
    calls_init(&calls);
    start_quietly(store, &calls, &errors);
    runner_idle(store);
    atomic_store(&unread, TW__STORE_NEWS);
    put(store, "x", 5);
    wait_for_errors(&errors, 1);
    assert_int_equal(atomic_load(&errors.last), TW_EIO);
    EVENTUALLY(hurried(atomic_load(&errors.mended) > 0));
    assert_string_equal(wait_for_calls(&calls, 1), "x/1");
    assert_int_equal(tw_store_stop(store), 0);
}

/* Of a file with many pauses only those of queues with tasks are looked up. */
static void a_pause_is_looked_up_at_the_next_try(void **state)
{
    static const struct {
        atomic_int *failure;
        int error;
    } of[] = {{&refused, TW_ENOMEM}, {&unread, TW_EIO}};
    struct tw_store *store = store_of(state);
    struct errors errors = {0};
    struct tw_store_run_options options = quietly(&errors);
    struct calls calls;
    sqlite3 *db = other_open(*state);
    calls_init(&calls);
    other_ask(db, "INSERT INTO tw_queue SELECT 'user:' || value, 1 FROM json_each('[1,2,3,4,5,6,7,8]')");
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, &options), 0);
    runner_idle(store);
    for (int i = 0; i < 2; i++) {
        atomic_store(of[i].failure, TW__STORE_IS_PAUSED);
        put(store, "x", 5);
        wait_for_errors(&errors, i + 1);
        assert_int_equal(atomic_load(&errors.last), of[i].error);
        hurry_for_calls(&calls, i + 1);
    }
    assert_int_equal(tw_store_stop(store), 0);
    sqlite3_close(db);
}

/* The attempts of an earlier run cannot be ended, be it the first or the last statement for it that fails. The
 * next start ends them. "x" dies, and "y" waits. */
static void attempts_that_cannot_be_ended_end_the_start_with_an_error(void **state)
{
    static const struct {
        atomic_int *failure;
        int statement, error;
    } of[] = {{&refused, TW__STORE_LAPSED, TW_ENOMEM},
              {&unread, TW__STORE_LAPSED, TW_EIO},
              {&refused, TW__STORE_RETRY, TW_ENOMEM},
              {&refused, TW__STORE_END_ALL_REPLACED, TW_ENOMEM}};
    struct fixture *fixture = *state;
    struct calls calls;
    sqlite3 *db = other_open(fixture);
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        calls_init(&calls);
        put(fixture->store, "x", 5);
        put(fixture->store, "y", 6);
        other_ask(db, "UPDATE tw_task SET attempt = 17, run = 1000, lapses = iif(due_ms = 5, 16, 15)");
        store_reopen(fixture); /* a store without a handler */
        atomic_store(of[i].failure, of[i].statement);
        assert_int_equal(tw_store_handle(fixture->store, "q", 0, note_call, &calls), 0);
        assert_int_equal(tw_store_start(fixture->store, NULL), of[i].error);
        assert_string_equal(other_ask(db, "SELECT group_concat(lapses || run) FROM tw_task"), "161000,151000");
        assert_int_equal(tw_store_start(fixture->store, NULL), 0);
        EVENTUALLY(stats_of(fixture->store).died == 1);
        assert_int_equal(tw_store_stop(fixture->store), 0);
        assert_string_equal(other_ask(db, "SELECT group_concat(lapses || run) FROM tw_task"), "170,160");
        assert_int_equal(calls.count, 0);
        other_ask(db, "DELETE FROM tw_task");
    }
    sqlite3_close(db);
}

/* The clock was set back, and the order cannot be mended. */
static void an_order_that_cannot_be_mended_ends_the_start_with_an_error(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    clock_stop(0);
    put(store, "x", 5);
    clock_step(-HOUR_MS);
    atomic_store(&refused, TW__STORE_PLACE_AGAIN);
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(store, NULL), TW_ENOMEM);
    assert_int_equal(tw_store_start(store, NULL), 0);
    wait_for_calls(&calls, 1);
    assert_int_equal(tw_store_stop(store), 0);
}

static void naming_a_handler_survives_that_memory_ends(void **state)
{
    struct calls calls;
    calls_init(&calls);
    faulty_own_memory(1, false);
    assert_int_equal(tw_store_handle(store_of(state), "q", 0, note_call, &calls), TW_ENOMEM);
    faulty_own_memory(0, false);
    assert_int_equal(tw_store_handle(store_of(state), "q", 0, note_call, &calls), 0);
}

/* ---- leases of programs ---------------------------------------------------------------------------------- */

static void a_lease_whose_task_dies_is_ended_at_the_next_try(void **state)
{
    struct tw_store *store = store_of(state);
    struct tw__store_leases leases = {0};
    long failed = 0;
    put_all(store, 5, true);
    take_one(*state);
    sqlite3 *db = other_open(*state);
    other_ask(db, "UPDATE tw_task SET lapses = 16 WHERE queue = 's'");
    sqlite3_close(db);
    for (int error = TW_ENOMEM; error != 0;) {
        faulty_own_memory(++failed, false);
        error = tw__store_commit(store, tw__store_end_leases, &leases, false);
        faulty_own_memory(0, false);
        assert_true(error == 0 || error == TW_ENOMEM);
        assert_true(error == 0 || leases.lapses.died == NULL);
    }
    assert_true(failed > 1);
    assert_int_equal(leases.lapses.count, 1);
    assert_memory_equal(leases.lapses.died->job.id.data, "e", 1);
    tw__store_jobs_free(leases.lapses.died);
}

static void no_lease_ends_in_a_file_that_was_restored(void **state)
{
    struct tw_store *store = store_of(state);
    const struct tw__store_seen later = {.changes = UINT64_MAX};
    struct tw__store_leases leases = {.seen = &later};
    put_all(store, 5, true);
    take_one(*state);
    assert_int_equal(tw__store_commit(store, tw__store_end_leases, &leases, false), 0);
    assert_true(leases.gone_back);
    assert_int_equal(leases.lapses.count, 0);
    leases.seen = NULL;
    assert_int_equal(tw__store_commit(store, tw__store_end_leases, &leases, false), 0);
    assert_int_equal(leases.lapses.count, 1);
}

static void a_lease_whose_task_was_removed_ends_nothing(void **state)
{
    struct tw_store *store = store_of(state);
    struct tw__store_leases leases = {0};
    put_all(store, 5, true);
    take_one(*state);
    sqlite3 *db = other_open(*state);
    other_ask(db, "UPDATE tw_task SET replaced = 0, token = 0, lapses = 16 WHERE queue = 's'"); /* a new row */
    assert_int_equal(tw__store_commit(store, tw__store_end_leases, &leases, false), 0);
    assert_int_equal(leases.lapses.count, 0);
    assert_null(leases.lapses.died);
    assert_string_equal(other_ask(db, "SELECT count(*) FROM tw_lease"), "0");
    sqlite3_close(db);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, clock_teardown)

int main(int count, char **arguments)
{
    (void)count;
    static const struct CMUnitTest tests[] = {
        TEST(running_survives_that_memory_ends),
        TEST(running_survives_that_our_own_memory_ends),
        TEST(running_survives_that_a_statement_has_no_memory),
        TEST(running_survives_that_a_statement_fails),
        TEST(running_survives_that_the_disk_is_full),
        TEST(running_survives_that_the_disk_fails),
        TEST(running_survives_that_reading_fails),
        TEST(an_answer_that_cannot_be_written_ends_the_stop_with_an_error),
        TEST(answers_wait_for_the_disk),
        TEST(answers_are_written_though_nothing_can_be_looked_at),
        TEST(only_their_own_claims_end_the_error_of_claims),
        TEST(a_failed_claim_whose_task_has_left_is_no_error),
        TEST(a_stop_after_an_error_does_not_miss_the_last_answer),
        TEST(a_stop_does_not_miss_the_last_answer_of_a_round_that_fails),
        TEST(a_lock_of_others_is_waited_for),
        TEST(a_lease_whose_task_dies_is_ended_at_the_next_try),
        TEST(no_lease_ends_in_a_file_that_was_restored),
        TEST(a_lease_whose_task_was_removed_ends_nothing),
        TEST(a_job_that_cannot_be_read_waits),
        TEST(a_job_that_no_statement_looks_up_waits),
        TEST(without_a_count_of_commits_each_job_is_looked_up),
        TEST(a_run_that_cannot_count_itself_anew_waits),
        TEST(a_standby_survives_that_it_cannot_begin),
        TEST(a_system_without_descriptors_or_threads_is_an_error),
        TEST(without_file_events_commits_are_seen_all_the_same),
        TEST(commits_without_an_event_are_seen_at_last),
        TEST(other_files_of_the_folder_are_no_hints),
        TEST(a_lock_file_that_cannot_be_opened_is_an_error),
        TEST(a_step_without_memory_is_made_up_for),
        TEST(a_window_without_memory_is_made_up_for),
        TEST(news_of_new_queues_survive_that_memory_ends),
        TEST(a_death_survives_that_memory_ends),
        TEST(a_period_is_buried_at_the_next_try),
        TEST(the_options_of_a_series_are_looked_up_at_the_next_try),
        TEST(the_options_of_a_series_are_read_at_the_next_try),
        TEST(a_replaced_attempt_is_ended_at_the_next_try),
        TEST(many_answers_are_written_at_the_next_try),
        TEST(a_task_stands_behind_an_attempt_at_the_next_try),
        TEST(a_period_is_passed_over_at_the_next_try),
        TEST(a_retry_is_written_at_the_next_try),
        TEST(the_options_of_a_retry_are_read_at_the_next_try),
        TEST(news_are_read_at_the_next_try),
        TEST(a_pause_is_looked_up_at_the_next_try),
        TEST(attempts_that_cannot_be_ended_end_the_start_with_an_error),
        TEST(an_order_that_cannot_be_mended_ends_the_start_with_an_error),
        TEST(naming_a_handler_survives_that_memory_ends),
    };
    choose_tests(arguments);
    faulty_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
