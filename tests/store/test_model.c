/* SPDX-License-Identifier: MIT
 *
 * The store against a ledger: random changes in every way that there is, and after each step the whole file
 * is compared with the ledger. The clock stands still, and steps when the test says so, so that the forecast
 * can be compared too. A process that has died has some of the tasks until the next run, so that each change
 * finds tasks at work too.
 *
 *     test_store_model [--seed N] [--steps N] [--seconds N]
 */
#include "clock.h"
#include "support.h"
#include "tests/support/eventually.h"
#include "tests/support/extent.h"
#include "runs.h"
#include "ways.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <src/store/queues.h>
#include <task/limits.h>
#include <task/state.h>
#include <unistd.h>

enum { ROUND = 400, STEPS = 20 }; /* steps of a file; steps of a forecast */

struct world {
    struct fixture *fixture;
    sqlite3 *db;
    struct ledger ledger;
    bool paused[LEDGER_QUEUES];
    struct rng rng;
    uint64_t seed, steps, changes;
    const char *doing;
};

static void fail_step(const struct world *world, const char *wrong)
{
    char message[TW_STORE_MESSAGE_SIZE] = "";
    tw_store_message(world->fixture->store, message, sizeof message);
    fprintf(stderr, "test_store_model: %s: %s (seed %" PRIu64 ", step %" PRIu64 "; the last error: %s)\n",
            world->doing, wrong, world->seed, world->steps, message);
    exit(1);
}

static void expect(const struct world *world, bool holds, const char *wrong)
{
    if (!holds)
        fail_step(world, wrong);
}

static uint64_t draw(struct world *world, uint64_t limit)
{
    return rng_below(&world->rng, limit);
}

/* ---- steps ----------------------------------------------------------------------------------------------- */

/* A cancel in SQL does not tell whether it has found a task. */
static void expect_result(struct world *world, enum way way, const struct ledger_change *change, int is,
                          int expected)
{
    char wrong[120];
    if (change->verb == TW_STORE_VERB_CANCEL && (way == WAY_SQL || way == WAY_SQL_IN))
        return;
    snprintf(wrong, sizeof wrong, "way %d, verb %d, task %u, condition %u: returns %d, expected %d", (int)way,
             (int)change->verb, change->task, change->conditions, is, expected);
    expect(world, is == expected, wrong);
}

/* Some changes in one of the ways. A transaction is sometimes rolled back. */
static void change_some(struct world *world)
{
    struct ledger_change changes[WAY_CHANGES];
    int results[WAY_CHANGES];
    struct ledger before = world->ledger;
    enum way way = (enum way)draw(world, WAYS);
    bool back = (way == WAY_APPLY_ON || way == WAY_SQL_IN) && draw(world, 6) == 0;
    unsigned n = 1 + (unsigned)draw(world, WAY_CHANGES);
    for (unsigned i = 0; i < n; i++)
        ledger_draw(&world->rng, tw_store_now(), &changes[i]);
    world->doing = back ? "changes that are rolled back" : "changes";
    unsigned made = way_go(way, world->fixture->store, world->db, changes, n, results, back);
    expect(world, made == n, "a change fails");
    for (unsigned i = 0; i < n; i++)
        expect_result(world, way, &changes[i], results[i],
                      ledger_make(&world->ledger, &changes[i], tw_store_now()));
    if (back)
        world->ledger = before;
    world->changes += n;
}

/* A batch with one change that is out of its range changes nothing. */
static void refuse_some(struct world *world)
{
    struct ledger_change change;
    struct tw_store_change calls[WAY_CHANGES];
    unsigned n = 1 + (unsigned)draw(world, WAY_CHANGES), wrong = (unsigned)draw(world, n);
    for (unsigned i = 0; i < n; i++) {
        ledger_draw(&world->rng, tw_store_now(), &change);
        calls[i] = ledger_call(&change);
    }
    calls[wrong].verb = TW_STORE_VERB_PUT;
    calls[wrong].conditions = 0;
    calls[wrong].task.due_ms = TW_STORE_TIME_MAX + 1 + draw(world, 2) * (UINT64_MAX / 2);
    world->doing = "a wrong batch";
    expect(world, tw_store_apply(world->fixture->store, calls, n) == TW_EINVAL, "it is not refused");
    expect(world, tw_store_apply_on(world->db, NULL, calls, n, NULL, 0) == TW_EINVAL, "apply_on takes it");
}

/* Writes how an attempt ended: as a runner would, and without one. */
static void write_failure(struct world *world, unsigned task)
{
    const struct entry *entry = &world->ledger.entry[task];
    sqlite3_stmt *statement;
    size_t size;
    const void *id = ledger_id(task, &size);
    sqlite3_prepare_v2(world->db,
                       "UPDATE tw_task SET dead_ms = nullif(?1, 0), error = ?2, attempt = ?3,"
                       " next_ms = ?4, place_ms = ?4 WHERE queue = ?5 AND id = ?6",
                       -1, &statement, NULL);
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)entry->dead_ms);
    sqlite3_bind_text(statement, 2, ledger_error(entry->error), -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, entry->task.attempt);
    sqlite3_bind_int64(statement, 4, (sqlite3_int64)entry->task.next_ms);
    sqlite3_bind_text(statement, 5, ledger_queue(task), -1, SQLITE_STATIC);
    sqlite3_bind_blob64(statement, 6, id, size, SQLITE_STATIC);
    expect(world, sqlite3_step(statement) == SQLITE_DONE, sqlite3_errmsg(world->db));
    sqlite3_finalize(statement);
}

/* An attempt has failed: the task is dead, or its next attempt waits. */
static void fail_one(struct world *world)
{
    unsigned task = (unsigned)draw(world, LEDGER_TASKS);
    struct entry *entry = &world->ledger.entry[task];
    world->doing = "an attempt that failed";
    if (entry->task.stage != TW__TASK_FILED)
        return;
    entry->error = (unsigned)draw(world, 4);
    entry->task.attempt++;
    if (draw(world, 2) == 0) {
        entry->task.stage = TW__TASK_BURIED;
        entry->dead_ms = tw_store_now() + draw(world, 3);
    } else {
        entry->task.next_ms = tw_store_now() + draw(world, 1000);
    }
    entry->place_ms = entry->task.next_ms;
    write_failure(world, task);
}

/* Writes that a process has a task, of a run that nobody follows. It ends when the next run begins. */
static void write_take(struct world *world, unsigned task, uint64_t token)
{
    const struct tw__task *is = &world->ledger.entry[task].task;
    sqlite3_stmt *statement;
    size_t size;
    const void *id = ledger_id(task, &size);
    sqlite3_exec(world->db, "UPDATE tw_meta SET run = 1 WHERE run = 0", NULL, NULL, NULL);
    sqlite3_prepare_v2(world->db,
                       "UPDATE tw_task SET run = (SELECT run FROM tw_meta), token = ?1, attempt = ?2,"
                       " lapses = ?3, due_ms = ?4, next_ms = ?5, missed_periods = ?6"
                       " WHERE queue = ?7 AND id = ?8",
                       -1, &statement, NULL);
    const uint64_t numbers[] = {token, is->attempt, is->lapses, is->due_ms, is->next_ms, is->missed_periods};
    for (int i = 0; i < 6; i++)
        sqlite3_bind_int64(statement, i + 1, (sqlite3_int64)numbers[i]);
    sqlite3_bind_text(statement, 7, ledger_queue(task), -1, SQLITE_STATIC);
    sqlite3_bind_blob64(statement, 8, id, size, SQLITE_STATIC);
    expect(world, sqlite3_step(statement) == SQLITE_DONE, sqlite3_errmsg(world->db));
    sqlite3_finalize(statement);
}

/* Another process takes some ready tasks that are not too late, and dies. Some have lapsed as often as a
 * task may, or once less. */
static void take_some(struct world *world)
{
    world->doing = "tasks that a process has taken";
    for (unsigned task = 0; task < LEDGER_TASKS; task++) {
        struct entry *entry = &world->ledger.entry[task];
        struct tw__task_call take = {.verb = TW__TASK_TAKE, .token = 1 + draw(world, INT64_MAX)};
        struct tw__task_outcome outcome;
        tw__task_change(&entry->task, &take, tw_store_now(), &outcome);
        if (outcome.reply != TW__TASK_YES || entry->place_ms > tw_store_now() || draw(world, 2) == 0)
            continue;
        if (draw(world, 4) == 0) {
            uint32_t lapses = TW__TASK_LAPSES_MAX - (uint32_t)draw(world, 2);
            entry->task.attempt += lapses - entry->task.lapses;
            entry->task.lapses = lapses;
        }
        ledger_do(&world->ledger, task, &take, tw_store_now());
        write_take(world, task, take.token);
    }
}

struct handed {
    struct world *world;
    unsigned task[LEDGER_IDS], n, at;
};

static void take(void *arg, const struct tw_store_task *seen)
{
    struct handed *handed = arg;
    const char *wrong = handed->at < handed->n
                            ? ledger_compare_task(&handed->world->ledger, handed->task[handed->at++], seen)
                            : "a task too many";
    expect(handed->world, wrong == NULL, wrong);
}

static void get_one(struct world *world)
{
    unsigned task = (unsigned)draw(world, LEDGER_TASKS);
    struct handed handed = {.world = world, .task = {task}, .n = 1};
    size_t size;
    const void *id = ledger_id(task, &size);
    int error = tw_store_get(world->fixture->store, (struct tw_store_name){ledger_queue(task), {id, size}},
                             take, &handed);
    world->doing = "a get";
    bool there = ledger_has(&world->ledger.entry[task]);
    expect(world, error == (there ? 0 : TW_EGONE), tw_store_strerror(error));
    expect(world, handed.at == there, "it does not show the task");
}

static void forecast_one(struct world *world)
{
    static const uint64_t step_of[] = {1, 7, 1000, 20000};
    uint64_t step_ms = step_of[draw(world, 4)], is[STEPS], expected[STEPS];
    uint32_t steps = 1 + (uint32_t)draw(world, STEPS);
    unsigned queue = (unsigned)draw(world, LEDGER_QUEUES);
    const char *name = ledger_queue(queue * LEDGER_IDS);
    world->doing = "a forecast";
    expect(world, tw_store_forecast(world->fixture->store, name, step_ms, steps, is) == 0, "it fails");
    ledger_forecast(&world->ledger, queue, tw_store_now(), step_ms, steps, expected);
    for (uint32_t i = 0; i < steps; i++) {
        char wrong[120];
        snprintf(wrong, sizeof wrong, "step %" PRIu32 " of %" PRIu64 " ms has %" PRIu64 " calls, not %" PRIu64,
                 i, step_ms, is[i], expected[i]);
        expect(world, is[i] == expected[i], wrong);
    }
}

/* ---- dead and waiting tasks ----------------------------------------------------------------------------- */

/* The table does to a task, or to all of its queue in their order, as people ask. Returns to how many. */
static int64_t do_some(struct world *world, unsigned task, bool all, bool dead,
                       const struct tw__task_call *call)
{
    unsigned tasks[LEDGER_IDS] = {task}, n = 1;
    int64_t done = 0;
    if (all)
        n = ledger_sort(&world->ledger, task / LEDGER_IDS, dead, tasks);
    for (unsigned i = 0; i < n; i++)
        done += ledger_do(&world->ledger, tasks[i], call, tw_store_now()).reply == TW__TASK_YES;
    return done;
}

/* The name of a task, or of all tasks of its queue. */
static struct tw_store_name name_of(unsigned task, bool all)
{
    struct tw_store_name name = {.queue = ledger_queue(task)};
    if (!all)
        name.id.data = ledger_id(task, &name.id.size);
    return name;
}

/* Dead tasks get new revisions in the order of their deaths. */
static void replay_some(struct world *world)
{
    unsigned task = (unsigned)draw(world, LEDGER_TASKS);
    bool all = draw(world, 2) == 0;
    struct tw__task_call call = {
        .verb = TW__TASK_REPLAY, .timed = true, .at_ms = tw_store_now() + draw(world, 1000)};
    world->doing = all ? "a replay of a queue" : "a replay";
    int64_t replayed = store_replay(world->fixture->store, name_of(task, all), call.at_ms);
    expect(world, replayed == do_some(world, task, all, true, &call), "another number of tasks");
}

/* Waiting tasks get new revisions in their order, and are ready. */
static void promote_some(struct world *world)
{
    unsigned task = (unsigned)draw(world, LEDGER_TASKS);
    bool all = draw(world, 2) == 0;
    struct tw__task_call call = {.verb = TW__TASK_PROMOTE};
    world->doing = all ? "a promotion of a queue" : "a promotion";
    int64_t promoted = store_promote(world->fixture->store, name_of(task, all));
    expect(world, promoted == do_some(world, task, all, false, &call), "another number of tasks");
}

static void purge_some(struct world *world)
{
    unsigned task = (unsigned)draw(world, LEDGER_TASKS), tasks[LEDGER_IDS];
    unsigned n = ledger_sort(&world->ledger, task / LEDGER_IDS, true, tasks);
    uint64_t before_ms = tw_store_now() - draw(world, 200000) + 1;
    bool all = draw(world, 2) == 0;
    struct tw__task_call call = {.verb = TW__TASK_PURGE};
    int64_t expected = 0;
    world->doing = all ? "a purge of a queue" : "a purge";
    for (unsigned i = 0; i < n; i++)
        if ((all || tasks[i] == task) && world->ledger.entry[tasks[i]].dead_ms < before_ms)
            expected += do_some(world, tasks[i], false, true, &call);
    int64_t purged = store_purge(world->fixture->store, name_of(task, all), before_ms);
    expect(world, purged == expected, "another number of tasks");
}

/* A pause is in the file, also when it is opened again, and changes no task. */
static void pause_one(struct world *world)
{
    unsigned queue = (unsigned)draw(world, LEDGER_QUEUES);
    bool paused = draw(world, 2) == 0, *now = &world->paused[queue];
    world->doing = "a pause";
    const char *name = ledger_queue(queue * LEDGER_IDS);
    int changed = paused ? store_pause(world->fixture->store, name) : store_resume(world->fixture->store, name);
    expect(world, changed == (*now != paused), "it tells wrongly whether that was a change");
    *now = paused;
}

/* The file has other numbers for tasks that leave some out. They hold for tasks of the file too. */
static void set_waits(struct world *world)
{
    struct tw__task_retry waits = ledger_draw_waits(&world->rng);
    char sql[300];
    snprintf(sql, sizeof sql,
             "UPDATE tw_meta SET tries = iif(%u, %u, 20), backoff_ms = iif(%d, %" PRIu64 ", 1000),"
             " factor = iif(%u, %u / 100.0, 2), backoff_max_ms = iif(%d, %" PRIu64 ", 3600000), jitter = %u",
             waits.tries, waits.tries, waits.first_ms > 0, waits.first_ms, waits.factor_percent,
             waits.factor_percent, waits.max_ms > 0, waits.max_ms,
             waits.jitter == 0                    ? 10
             : waits.jitter == TW_STORE_NO_JITTER ? 0
                                                  : waits.jitter);
    world->doing = "new numbers of the file";
    expect(world, sqlite3_exec(world->db, sql, NULL, NULL, NULL) == SQLITE_OK, sqlite3_errmsg(world->db));
    world->ledger.usual = waits;
}

/* ---- runs ------------------------------------------------------------------------------------------------ */

static void run_some(struct world *world)
{
    world->doing = "a run";
    const char *wrong = runs_go(&world->ledger, world->paused, world->fixture->store, &world->rng);
    expect(world, wrong == NULL, wrong);
}

/* ---- the file -------------------------------------------------------------------------------------------- */

/* The last connection that closes moves the log into the file, and removes it. */
static void reopen(struct world *world)
{
    bool last = draw(world, 2) == 0;
    world->doing = last ? "reopening, no other connection" : "reopening";
    if (last)
        way_close(world->db);
    store_reopen(world->fixture);
    if (last)
        world->db = other_open(world->fixture);
}

static void move_log(struct world *world)
{
    static const char *const sql[] = {"PRAGMA wal_checkpoint(PASSIVE)", "PRAGMA wal_checkpoint(RESTART)",
                                      "PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "ANALYZE"};
    const char *one = sql[draw(world, 5)];
    world->doing = one;
    expect(world, sqlite3_exec(world->db, one, NULL, NULL, NULL) == SQLITE_OK, sqlite3_errmsg(world->db));
}

/* The clock goes back now and then. */
static void pass_time(struct world *world)
{
    uint64_t now_ms = tw_store_now();
    clock_stop(draw(world, 8) == 0 ? now_ms - draw(world, 100000) : now_ms + draw(world, 100000));
}

static void step(struct world *world)
{
    static void (*const rare[])(struct world *) = {
        promote_some, run_some, replay_some, purge_some, pause_one, refuse_some, fail_one,  fail_one,
        fail_one,     fail_one, take_some,   reopen,     move_log,  pass_time,   pass_time, set_waits};
    world->steps++;
    if (draw(world, 5) < 3)
        change_some(world);
    else
        rare[draw(world, sizeof rare / sizeof rare[0])](world);
    const char *wrong = ledger_compare(&world->ledger, world->fixture->store, draw(world, 8));
    expect(world, wrong == NULL, wrong);
    get_one(world);
    forecast_one(world);
}

/* ---- rounds ---------------------------------------------------------------------------------------------- */

static void run_file(struct world *world, uint64_t seed, uint64_t steps)
{
    void *state;
    if (store_setup(&state) != 0)
        exit(2);
    world->fixture = state;
    world->db = other_open(world->fixture);
    world->seed = seed;
    world->steps = 0;
    memset(&world->ledger, 0, sizeof world->ledger);
    memset(world->paused, 0, sizeof world->paused);
    rng_init(&world->rng, seed);
    while (world->steps < steps)
        step(world);
    world->doing = "the end";
    expect(world, strcmp(other_ask(world->db, "PRAGMA integrity_check"), "ok") == 0, "the file is damaged");
    way_close(world->db);
    if (store_teardown(&state) != 0)
        exit(2);
}

int main(int argc, char **argv)
{
    static struct world world;
    uint64_t seed = 1, total = 0, steps = extent(600, 2000, 60000), seconds = 0;
    int64_t begin_s = eventually_clock();
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--seed") == 0)
            seed = value;
        else if (strcmp(argv[i], "--steps") == 0)
            steps = value;
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = value;
    }
    clock_stop(UINT64_C(1700000000000));
    for (; seconds > 0 ? eventually_clock() - begin_s < (int64_t)seconds : total < steps; seed++) {
        run_file(&world, seed, seconds == 0 && steps - total < ROUND ? steps - total : ROUND);
        total += world.steps;
    }
    printf("%" PRIu64 " steps, %" PRIu64 " changes, %" PRIu64 " calls; the last seed was %" PRIu64 "\n", total,
           world.changes, runs_calls(), seed - 1);
    return 0;
}
