/* SPDX-License-Identifier: MIT
 *
 * Files of each format. golden/format1.db is a file as the first release leaves it. Each format that follows
 * adds a file of its own, and no file changes. A change of schema.sql without a new format fails here. So does
 * another meaning of a column: the file has each state, with all options, and this version has to show them as
 * the texts below, to go on with the tasks, and to write the same file again.
 *
 *     test_store_version --make FILE    makes the file of the present format anew
 */
#include "clock.h"
#include "running.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t MADE_MS = 1750000000000; /* when the file is made; its clock stands */

/* ---- numbers that are not random ------------------------------------------------------------------------- */

void __wrap_sqlite3_randomness(int size, void *to);

/* The tokens of a run. */
void __wrap_sqlite3_randomness(int size, void *to)
{
    memset(to, 0x5a, (size_t)size);
}

/* random() of SQL. The attempts of a file have other tokens than 1. */
static void count_up(sqlite3_context *context, int n, sqlite3_value **values)
{
    static sqlite3_int64 next;
    (void)n;
    next = values == NULL ? 0 : next + 1; /* NULL: from the beginning */
    if (values != NULL)
        sqlite3_result_int64(context, (INT64_C(0x123456789abcdef) * next) & INT64_MAX);
}

/* ---- making a file --------------------------------------------------------------------------------------- */

enum { BIG = 5000, RUN = 7 };
#define ALL(missed_periods)                                                                                    \
    .every_ms = 70000, .times = 7, .missed = (missed_periods), .tries = 6, .factor_percent = 250,              \
    .backoff_ms = 1500, .backoff_max_ms = 90000, .jitter = 33, .max_late_ms = 5000000

/* The tasks, in the order in which they are put. The text is that of tell(), at the end of the story. */
static const struct old {
    const char *queue, *id, *payload, *text;
    struct tw_store_delayed task;
} olds[] = {
    {"orders",
     "order:42",
     "paid?",
     "1 due 1800000000000 next 1800000000000 place 1800000000000 attempt 0 lapses 0 missed 0"
     " every 70000 7 skip tries 6 waits 1500 250 90000 jitter 33 late 5000000 dead 0 error none",
     {.due_ms = 1800000000000, ALL(TW_MISSED_SKIP)}},
    {"orders",
     "ready",
     "x",
     "2 due 1749999999000 next 1749999999000 place 1750000000000 attempt 0 lapses 0 missed 0"
     " every 70000 7 burst tries 6 waits 1500 250 90000 jitter 33 late 5000000 dead 0 error none",
     {.due_ms = 1749999999000, ALL(TW_MISSED_BURST)}},
    {"orders",
     "no payload",
     NULL,
     "1 due 1800000000000 next 1800000000000 place 1800000000000 attempt 0 lapses 0 missed 0"
     " every 0 1 coalesce tries 9 waits 1111 175 99999 jitter 44 late none dead 0 error none",
     {.due_ms = 1800000000000}},
    {"orders",
     "first",
     "1970",
     "2 due 0 next 0 place 1750000000000 attempt 0 lapses 0 missed 0"
     " every 0 1 coalesce tries 3 waits 250 175 99999 jitter 44 late none dead 0 error none",
     {.due_ms = 3, .tries = 3, .backoff_ms = 250}},
    {"orders",
     "last",
     "9999",
     "1 due 253402300799999 next 253402300799999 place 253402300799999 attempt 0 lapses 0 missed 0"
     " every 0 1 coalesce tries 1000000 waits 1111 175 99999 jitter 44 late on time dead 0 error none",
     {.due_ms = TW_STORE_TIME_MAX, .tries = 1000000, .max_late_ms = TW_STORE_ON_TIME}},
    {"orders",
     "promoted",
     "x",
     "2 due 1800000000000 next 1750000000000 place 1750000000000 attempt 0 lapses 0 missed 0"
     " every 0 1 coalesce tries 9 waits 1111 175 99999 jitter -1 late none dead 0 error none",
     {.due_ms = 1800000000000, .jitter = TW_STORE_NO_JITTER}},
    {"orders",
     "moved",
     "x",
     "1 due 1760000000001 next 1760000000001 place 1760000000001 attempt 0 lapses 0 missed 0"
     " every 0 1 coalesce tries 9 waits 1111 175 99999 jitter 44 late none dead 0 error none",
     {.due_ms = 5}},
    {"orders",
     "running",
     "x",
     "4 due 1749999990000 next 1749999990000 place 1750000000000 attempt 2 lapses 1 missed 3"
     " every 70000 7 coalesce tries 6 waits 1500 250 90000 jitter 33 late 5000000 dead 0 error full",
     {.due_ms = 1749999990000, ALL(TW_MISSED_COALESCE)}},
    {"orders",
     "new",
     "x",
     "4 due 1800000000000 next 1800000000000 place 1800000000000 attempt 2 lapses 0 missed 0"
     " every 70000 7 coalesce tries 6 waits 1500 250 90000 jitter 33 late 5000000 dead 0 error none replaced",
     {.due_ms = 1800000000000, ALL(TW_MISSED_COALESCE)}},
    {"work",
     "failed",
     "x",
     "1 due 1749999990001 next 1750010000001 place 1750010000001 attempt 1 lapses 0 missed 0"
     " every 70000 7 skip tries 6 waits 1500 250 90000 jitter 33 late 5000000 dead 0 error Stra\xc3\x9f"
     "e",
     {.due_ms = 1749999990001, ALL(TW_MISSED_SKIP)}},
    {"work",
     "dead",
     "x",
     "8 due 1749999990002 next 0 place 1749999990002 attempt 1 lapses 0 missed 0"
     " every 0 1 coalesce tries 6 waits 1500 250 90000 jitter 33 late 5000000 dead 1750000000002 error "
     "hopeless",
     {.due_ms = 1749999990002,
      .tries = 6,
      .backoff_ms = 1500,
      .factor_percent = 250,
      .backoff_max_ms = 90000,
      .jitter = 33,
      .max_late_ms = 5000000}},
    {"work",
     "series",
     "x",
     "1 due 1750000060003 next 1750000060003 place 1750000060003 attempt 0 lapses 0 missed 0"
     " every 70000 6 skip tries 6 waits 1500 250 90000 jitter 33 late 5000000 dead 0 error none",
     {.due_ms = 1749999990003, ALL(TW_MISSED_SKIP)}},
    {"work",
     "back",
     "x",
     "4 due 1749999990004 next 1750006000034 place 1750006000034 attempt 1 lapses 0 missed 0"
     " every 70000 7 burst tries 6 waits 1500 250 90000 jitter 33 late 5000000 dead 0 error none",
     {.due_ms = 1749999990004, ALL(TW_MISSED_BURST)}},
    {"work",
     "lapsed",
     "x",
     "4 due 1749999790005 next 1750008003034 place 1750008003034 attempt 2 lapses 1 missed 2"
     " every 70000 7 coalesce tries 6 waits 1500 250 90000 jitter 33 late 5000000 dead 0 error the lease ran "
     "out",
     {.due_ms = 1749999790005, ALL(TW_MISSED_COALESCE)}},
    {"work",
     "lapses",
     "x",
     "1 due 1749999790006 next 4839354142005 place 4839354142005 attempt 1 lapses 1 missed 2"
     " every 70000 none coalesce tries 9 waits 3155760000000 175 3155760000000 jitter 44 late none dead 0 "
     "error the lease ran out",
     {.due_ms = 1749999790006,
      .every_ms = 70000,
      .backoff_ms = 3155760000000,
      .backoff_max_ms = 3155760000000}},
    {"work",
     "replaced",
     "new",
     "4 due 1760000000000 next 1750005000000 place 1750005000000 attempt 1 lapses 0 missed 0"
     " every 60000 8 burst tries 4 waits 2500 125 80000 jitter 22 late 6000000 dead 0 error none replaced",
     {.due_ms = 1749999990007, ALL(TW_MISSED_SKIP)}},
    {"work",
     "leased",
     "x",
     "4 due 1749999990008 next 1750007000034 place 1750007000034 attempt 1 lapses 0 missed 0"
     " every 70000 7 skip tries 6 waits 1500 250 90000 jitter 33 late 5000000 dead 0 error none",
     {.due_ms = 1749999990008, ALL(TW_MISSED_SKIP)}},
    {"\xc3\xa9t\xc3\xa9",
     "each minute",
     "x",
     "1 due 1800000000000 next 1800000000000 place 1800000000000 attempt 0 lapses 0 missed 0"
     " every 60000 none skip tries 9 waits 1111 175 99999 jitter 44 late none dead 0 error none",
     {.due_ms = 1800000000000, .every_ms = 60000, .missed = TW_MISSED_SKIP}},
    {"\xc3\xa9t\xc3\xa9",
     "five times",
     "x",
     "1 due 1800000000000 next 1800000000000 place 1800000000000 attempt 0 lapses 0 missed 0"
     " every 3155760000000 5 coalesce tries 9 waits 1111 175 99999 jitter 44 late 3600000 dead 0 error none",
     {.due_ms = 1800000000000, .every_ms = UINT64_C(3155760000000), .times = 5, .max_late_ms = 3600000}},
    {"big",
     "pages of its own",
     "big",
     "1 due 1800000000000 next 1800000000000 place 1800000000000 attempt 0 lapses 0 missed 0"
     " every 0 1 coalesce tries 9 waits 1111 175 99999 jitter 44 late none dead 0 error none",
     {.due_ms = 1800000000000}},
};
enum { OLDS = sizeof olds / sizeof olds[0] };

/* Programs take tasks of the queue `work`, and answer. Before each step so much time passes. */
static const struct step {
    uint64_t ms;
    const char *sql;
} story[] = {
    {0, "INSERT INTO tw_take VALUES ('work', 'take 0001', 'worker 1', 5000000, 7)"},
    {1, "INSERT INTO tw_nack SELECT queue, id, token, NULL, 'Stra\xc3\x9f"
        "e', 1750010000001 FROM tw_taken WHERE id = x'6661696c6564'"}, /* failed */
    {1, "INSERT INTO tw_nack SELECT queue, id, token, 'dead', 'hopeless', NULL FROM tw_taken"
        " WHERE id IN (x'64656164', x'736572696573')"}, /* dead, series */
    {1, "INSERT INTO tw_nack SELECT queue, id, token, 'back', NULL, NULL FROM tw_taken"
        " WHERE id = x'6261636b'"}, /* back */
    {1,
     "INSERT INTO tw_touch SELECT queue, id, token, 10 FROM tw_taken WHERE id = x'6c6170736564'"}, /* lapsed */
    {0,
     "INSERT INTO tw_touch SELECT queue, id, token, 20 FROM tw_taken WHERE id = x'6c6170736573'"}, /* lapses */
    {0, "INSERT INTO tw_put VALUES ('work', 'replaced', 1760000000000, 'new', 60000, 8, 'burst', 4, 2500, 1.25,"
        " 80000, 22, 6000000, NULL)"},
    {0, "INSERT INTO tw_move VALUES ('orders', 'moved', 1760000000001, NULL)"},
    {30,
     "INSERT INTO tw_take VALUES ('work', x'74616b6520303032', 'worker 2', 6000000, 1)"}, /* back; two lapse */
    {0, "INSERT INTO tw_take VALUES ('work', 'take 0003', NULL, 7000000, 1)"},            /* leased */
    {3000, "INSERT INTO tw_take VALUES ('work', 'take 0004', 'worker 4', 8000000, 1)"},   /* lapsed */
    /* A run has these. */
    {0, "UPDATE tw_task SET run = 7, token = 12345678901234567, attempt = 2, lapses = 1, error = 'full',"
        " missed_periods = 3 WHERE id = x'72756e6e696e67'"},
    {0, "UPDATE tw_task SET run = 7, token = 12345678901234568, replaced = 2 WHERE id = x'6e6577'"},
    {0, "UPDATE tw_meta SET run = 7, changes = 77000000, restored = 2, until_ms = 1750000030000, dropped = 3,"
        " tries = 9, backoff_ms = 1111, factor = 1.75, backoff_max_ms = 99999, jitter = 44"},
};

/* The payload "big" stands for BIG bytes of every kind. */
static struct tw_bytes payload_of(const struct old *old)
{
    static unsigned char big[BIG];
    for (size_t i = 0; i < BIG; i++)
        big[i] = (unsigned char)(i * 7);
    if (old->payload != NULL && strcmp(old->payload, "big") == 0)
        return (struct tw_bytes){big, BIG};
    return (struct tw_bytes){old->payload, old->payload == NULL ? 0 : strlen(old->payload)};
}

static bool put_old(struct tw_store *store, const struct old *old)
{
    struct tw_store_delayed task = old->task;
    task.queue = old->queue;
    task.id = tw_text(old->id);
    task.payload = payload_of(old);
    return store_put(store, &task, 0) == 1;
}

/* A task that was cancelled and one that was moved leave gaps in the revisions. */
static int make_file(const char *path)
{
    struct tw_store *store;
    sqlite3 *db;
    bool good = true;
    clock_stop(MADE_MS);
    count_up(NULL, 0, NULL);
    if (tw_store_open(&store, path, NULL, NULL, 0) != 0 || sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_create_function(db, "random", 0, SQLITE_UTF8, NULL, count_up, NULL, NULL) != SQLITE_OK)
        return 1;
    put(store, "cancelled", 5);
    for (size_t i = 0; i < OLDS; i++)
        good = good && put_old(store, &olds[i]);
    cancel(store, "cancelled");
    good = good && store_move_at(store, tw_store_named("orders", "first"), 0, 0) == 1 &&
           store_promote(store, tw_store_named("orders", "promoted")) == 1;
    for (size_t i = 0; i < sizeof story / sizeof story[0] && good; i++) {
        clock_pass(story[i].ms);
        good = sqlite3_exec(db, story[i].sql, NULL, NULL, NULL) == SQLITE_OK;
    }
    if (!good)
        fprintf(stderr, "%s\n", sqlite3_errmsg(db));
    good = good && store_pause(store, "orders") == 1 && store_pause(store, "big") == 1 &&
           store_resume(store, "big") == 1;
    sqlite3_close(db);
    tw_store_close(store);
    return !good;
}

/* ---- the tests ------------------------------------------------------------------------------------------- */

static const char *old_file; /* from the command line */

/* SQLite would write beside the old file, so the tests open copies. */
static void copy_file(const char *path)
{
    char bytes[4096];
    FILE *from = fopen(old_file, "rb"), *to = fopen(path, "wb");
    assert_non_null(from);
    assert_non_null(to);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, from)) > 0;)
        assert_int_equal(fwrite(bytes, 1, n, to), n);
    fclose(from);
    assert_int_equal(fclose(to), 0);
}

/* The fixture's file becomes a copy of the old one. The clock stands where the old file was left. */
static void open_old(struct fixture *fixture)
{
    char text[TW_STORE_MESSAGE_SIZE];
    clock_stop(MADE_MS + 3034);
    tw_store_close(fixture->store);
    fixture->store = NULL;
    store_remove(fixture);
    copy_file(fixture->path);
    if (tw_store_open(&fixture->store, fixture->path, NULL, text, sizeof text) != 0)
        fail_msg("%s", text);
}

struct told {
    char text[1000];
    const struct old *old; /* NULL: of no interest */
};

/* A number that may have no end. */
static const char *limit_of(uint64_t number, char *text)
{
    snprintf(text, 24, "%" PRIu64, number);
    return number == TW_FOREVER ? "none" : number == TW_STORE_ON_TIME ? "on time" : text;
}

/* All that a look shows of a task. */
static void tell(void *arg, const struct tw_store_task *task)
{
    static const char *const missed[] = {"coalesce", "skip", "burst"};
    struct told *told = arg;
    char times[24], late[24];
    snprintf(told->text, sizeof told->text,
             "%u due %" PRIu64 " next %" PRIu64 " place %" PRIu64 " attempt %u lapses %u missed %" PRIu64
             " every %" PRIu64 " %s %s tries %u waits %" PRIu64 " %u %" PRIu64
             " jitter %d late %s dead %" PRIu64 " error %s%s",
             (unsigned)task->state, task->due_ms, task->next_ms, task->place_ms, task->attempt, task->lapses,
             task->missed_periods, task->every_ms, limit_of(task->times, times), missed[task->missed],
             task->tries, task->backoff_ms, task->factor_percent, task->backoff_max_ms, (int)task->jitter,
             limit_of(task->max_late_ms, late), task->dead_ms, task->error != NULL ? task->error : "none",
             task->replaced ? " replaced" : "");
    if (told->old == NULL)
        return;
    struct tw_bytes payload = payload_of(told->old);
    assert_int_equal(task->payload.size, payload.size);
    assert_memory_equal(task->payload.size > 0 ? task->payload.data : "", payload.size > 0 ? payload.data : "",
                        payload.size);
}

static void each_task_is_shown_as_ever(void **state)
{
    struct fixture *fixture = *state;
    open_old(fixture);
    for (size_t i = 0; i < OLDS; i++) {
        struct told told = {.old = &olds[i]};
        assert_int_equal(tw_store_get(fixture->store, tw_store_named(olds[i].queue, olds[i].id), tell, &told),
                         0);
        assert_string_equal(told.text, olds[i].text);
    }
    struct told dead = {.old = NULL};
    assert_int_equal(tw_store_get(fixture->store, tw_store_named("work", "series@1749999990003"), tell, &dead),
                     0);
    assert_string_equal(dead.text, "8 due 1749999990003 next 0 place 1749999990003 attempt 1 lapses 0 missed 0"
                                   " every 0 1 coalesce tries 6 waits 1500 250 90000 jitter 33 late 5000000"
                                   " dead 1750000000002 error hopeless");
    assert_int_equal(store_count(fixture->store, "orders", false), 9);
    assert_int_equal(store_count(fixture->store, "work", true), 2);
    assert_int_equal(store_count(fixture->store, "q", false), 0);
    assert_int_equal(store_is_paused(fixture->store, "orders"), 1);
    assert_int_equal(store_is_paused(fixture->store, "big"), 0);
}

static void the_old_file_is_used_on(void **state)
{
    struct fixture *fixture = *state;
    open_old(fixture);
    sqlite3 *db = other_open(fixture);
    long last = atol(other_ask(db, "SELECT revision FROM tw_meta"));
    assert_int_equal(atol(other_ask(db, "SELECT max(revision) FROM tw_task")), last);
    assert_int_equal(put(fixture->store, "new", 1), 1);
    assert_string_equal(scan(fixture->store, NULL), "new@1");
    assert_int_equal(store_replay(fixture->store, tw_store_named("work", "dead"), 5), 1);
    assert_int_equal(atol(other_ask(db, "SELECT revision FROM tw_task WHERE id = x'64656164'")), last + 2);
    assert_string_equal(other_ask(db, "PRAGMA integrity_check"), "ok");
    assert_string_equal(other_ask(db, "INSERT INTO tw_move(queue, id, due_ms) VALUES ('orders', 'first', 7)"),
                        "");
    assert_string_equal(other_ask(db, "SELECT due_ms FROM tw_task WHERE id = x'6669727374'"), "7");
    sqlite3_close(db);
}

/* ---- what follows ---------------------------------------------------------------------------------------- */

struct jobs {
    char text[4000];
    struct tw_job *kept[OLDS];
    atomic_int count; /* of the kept ones */
};

static enum tw_answer note_job(void *arg, struct tw_job *job)
{
    struct jobs *jobs = arg;
    size_t used = strlen(jobs->text);
    char left[24];
    snprintf(jobs->text + used, sizeof jobs->text - used,
             "%.*s due %" PRIu64 " left %s missed %" PRIu64 " attempt %u of %u lapses %u error %s\n",
             (int)job->id.size, (const char *)job->id.data, job->due_ms, limit_of(job->left, left),
             job->missed_periods, job->attempt, job->tries, job->lapses,
             job->error != NULL ? job->error : "none");
    jobs->kept[atomic_load(&jobs->count)] = job;
    atomic_fetch_add(&jobs->count, 1);
    return TW_ANSWER_LATER;
}

/* Takes all that is ready, and then lets all attempts fail, in their order. */
static void take_and_fail(struct tw_store *store, struct jobs *jobs)
{
    uint64_t before = answers(store);
    int n;
    do {
        n = atomic_load(&jobs->count);
        runner_idle(store);
        EVENTUALLY(attempts(store) == before + (uint64_t)atomic_load(&jobs->count));
    } while (atomic_load(&jobs->count) > n);
    for (int i = 0; i < n; i++) {
        tw_job_fail(jobs->kept[i], "again");
        tw_job_answer(jobs->kept[i], TW_ANSWER_FAILED);
    }
    atomic_store(&jobs->count, 0);
    runner_idle(store);
}

static const char JOBS_TEXT[] =
    "ready due 1749999999000 left 6 missed 0 attempt 1 of 6 lapses 0 error none\n"
    "first due 0 left 0 missed 0 attempt 1 of 3 lapses 0 error none\n"
    "promoted due 1800000000000 left 0 missed 0 attempt 1 of 9 lapses 0 error none\n"
    "first due 0 left 0 missed 0 attempt 2 of 3 lapses 0 error again\n"
    "promoted due 1800000000000 left 0 missed 0 attempt 2 of 9 lapses 0 error again\n"
    "running due 1749999990000 left 6 missed 3 attempt 3 of 6 lapses 2 error the run has ended\n"
    "ready due 1749999999000 left 6 missed 0 attempt 2 of 6 lapses 0 error again\n"
    "back due 1749999990004 left 6 missed 0 attempt 2 of 6 lapses 1 error the lease ran out\n"
    "leased due 1749999990008 left 6 missed 0 attempt 2 of 6 lapses 1 error the lease ran out\n";
static const char ROWS_TEXT[] =
    "dead due 1749999990002 next 1749999990002 attempt 1 times 1 missed 0 lapses 0 error hopeless dead "
    "1750000000002\n"
    "failed due 1749999990001 next 1750010000001 attempt 1 times 7 missed 0 lapses 0 error Stra\xc3\x9f"
    "e dead no\n"
    "series@1749999990003 due 1749999990003 next 1749999990003 attempt 1 times 1 missed 0 lapses 0 error "
    "hopeless dead 1750000000002\n"
    "lapses due 1749999790006 next 4839354142005 attempt 1 times 0 missed 2 lapses 1 error the lease ran out "
    "dead no\n"
    "lapsed due 1749999790005 next 1750008005012 attempt 2 times 7 missed 2 lapses 2 error the lease ran out "
    "dead no\n"
    "first due 0 next 1750008003628 attempt 2 times 1 missed 0 lapses 0 error again dead no\n"
    "promoted due 1800000000000 next 1750008004978 attempt 2 times 1 missed 0 lapses 0 error again dead no\n"
    "running due 1749999990000 next 1750008004112 attempt 3 times 7 missed 3 lapses 2 error again dead no\n"
    "ready due 1749999999000 next 1750008007064 attempt 2 times 7 missed 0 lapses 0 error again dead no\n"
    "back due 1749999990004 next 1750008004133 attempt 2 times 7 missed 0 lapses 1 error again dead no\n"
    "leased due 1749999990008 next 1750008004370 attempt 2 times 7 missed 0 lapses 1 error again dead no";

/* A run ends the attempts of the run before, at once, and the leases of programs, at their times. It takes what
 * is ready. The next times depend on tokens and on the options. */
static void the_old_tasks_go_on(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store_run_options one = {.workers = 1};
    struct jobs jobs = {.text = ""};
    open_old(fixture);
    assert_int_equal(store_resume(fixture->store, "orders"), 1);
    assert_int_equal(tw_store_handle(fixture->store, NULL, 0, note_job, &jobs), 0);
    assert_int_equal(tw_store_start(fixture->store, &one), 0);
    take_and_fail(fixture->store, &jobs);
    clock_pass(8000000);
    take_and_fail(fixture->store, &jobs);
    assert_int_equal(tw_store_stop(fixture->store), 0);
    sqlite3 *db = other_open(fixture);
    const char *found =
        other_ask(db, "SELECT group_concat(CAST(id AS TEXT) || ' due ' || due_ms || ' next ' || next_ms"
                      " || ' attempt ' || attempt || ' times ' || times || ' missed ' || missed_periods"
                      " || ' lapses ' || lapses || ' error ' || coalesce(error, 'none')"
                      " || ' dead ' || coalesce(dead_ms, 'no'), char(10))"
                      " FROM (SELECT * FROM tw_task WHERE attempt > 0 ORDER BY revision)");
    assert_string_equal(found, ROWS_TEXT);
    assert_string_equal(jobs.text, JOBS_TEXT);
    sqlite3_close(db);
}

/* ---- what is written ------------------------------------------------------------------------------------- */

static void path_of_old(const struct fixture *fixture, char path[PATH_SIZE + 8])
{
    snprintf(path, PATH_SIZE + 8, "%s-old", fixture->path);
}

static sqlite3 *open_beside_old(struct fixture *fixture)
{
    char old[PATH_SIZE + 8], sql[PATH_SIZE + 40];
    sqlite3 *db = other_open(fixture);
    path_of_old(fixture, old);
    copy_file(old);
    sqlite3_snprintf(sizeof sql, sql, "ATTACH %Q AS old", old);
    other_ask(db, sql);
    return db;
}

static void close_both(struct fixture *fixture, sqlite3 *db)
{
    char old[PATH_SIZE + 8];
    sqlite3_close(db);
    path_of_old(fixture, old);
    unlink(old);
}

/* The first column of a row that is in one of the files alone, "" if there is none. */
static const char *difference(sqlite3 *db, const char *columns, const char *table)
{
    static const char *const files[] = {"main", "old"};
    const char *found = "";
    for (int i = 0; i < 2 && *found == '\0'; i++) {
        char sql[400];
        snprintf(sql, sizeof sql, "SELECT * FROM (SELECT %s FROM %s.%s EXCEPT SELECT %s FROM %s.%s)", columns,
                 files[i], table, columns, files[1 - i], table);
        found = other_ask(db, sql);
    }
    return found;
}

static void this_version_writes_the_same(void **state)
{
    static const char *const tables[] = {"tw_task", "tw_lease", "tw_queue", "tw_meta"};
    struct fixture *fixture = *state;
    tw_store_close(fixture->store);
    store_remove(fixture);
    assert_int_equal(make_file(fixture->path), 0);
    assert_int_equal(tw_store_open(&fixture->store, fixture->path, NULL, NULL, 0), 0);
    sqlite3 *db = open_beside_old(fixture);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        assert_string_equal(difference(db, "*", tables[i]), "");
    close_both(*state, db);
}

/* The text of each table, view and trigger is compared, its comments too. */
static void a_new_schema_has_a_new_format(void **state)
{
    sqlite3 *db = open_beside_old(*state);
    assert_string_equal(other_ask(db, "SELECT format FROM main.tw_meta"), "1");
    assert_string_equal(other_ask(db, "SELECT format FROM old.tw_meta"), "1");
    assert_string_equal(difference(db, "name, sql", "sqlite_schema"), "");
    close_both(*state, db);
}

static void each_change_is_counted(void **state)
{
    struct fixture *fixture = *state;
    open_old(fixture);
    sqlite3 *db = other_open(fixture);
    static const char *const changes[] = {
        "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'a', 5)",
        "INSERT INTO tw_move(queue, id, due_ms) VALUES ('q', 'a', 6)",
        "INSERT INTO tw_cancel(queue, id) VALUES ('q', 'a')",
    };
    long before = atol(other_ask(db, "SELECT changes FROM tw_meta"));
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        other_ask(db, changes[i]);
        assert_int_equal(atol(other_ask(db, "SELECT changes FROM tw_meta")), ++before);
    }
    other_ask(db, changes[2]); /* there is no such task: no change */
    assert_int_equal(put(fixture->store, "b", 5), 1);
    assert_int_equal(cancel(fixture->store, "b"), TW_CANCEL_CANCELLED);
    assert_int_equal(cancel(fixture->store, "b"), TW_CANCEL_GONE);
    assert_int_equal(store_pause(fixture->store, "q"), 1);
    assert_int_equal(atol(other_ask(db, "SELECT changes FROM tw_meta")), before + 3);
    sqlite3_close(db);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, clock_teardown)

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        TEST(each_task_is_shown_as_ever),   TEST(the_old_file_is_used_on),       TEST(the_old_tasks_go_on),
        TEST(this_version_writes_the_same), TEST(a_new_schema_has_a_new_format), TEST(each_change_is_counted),
    };
    int failed = 0;
    if (argc == 3 && strcmp(argv[1], "--make") == 0)
        return make_file(argv[2]);
    if (argc < 2) {
        fprintf(stderr, "usage: test_store_version FILE...\n       test_store_version --make FILE\n");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        old_file = argv[i];
        failed += cmocka_run_group_tests_name(argv[i], tests, NULL, NULL);
    }
    return failed;
}
