/* SPDX-License-Identifier: MIT
 *
 * A claim is on the disk before the handler is called. If the process dies in the handler, the next run finds
 * the task with its attempt counted. When that run begins, the attempt lapses: the task waits as after a
 * failure, and then the handler is called with the next attempt. The row keeps its place in the index of due
 * times, so a claim writes the row, and the small index of the attempts under way. Example: attempt 1 of 3 is
 * under way when the machine loses power. The next run calls attempt 2, a second after it has begun.
 *
 * An answer changes the row of the revision that ran. A put or a move meanwhile has given the task another
 * number, and the answer finds no row then. Only in this case a second statement asks for the id and the token,
 * and ends the attempt. So the task waits, under a number by which the next look finds it. After a cancel
 * neither of the two statements finds a row. If the id is put again, a claim finds its job at work. Then it
 * makes the row what a put would have made it: the new task stands behind the attempt.
 *
 * A number alone names no task, because a backup that is restored takes the numbers back. So a claim asks for
 * the queue too, whose handler it will call. It need not ask for the id, which an entry does not have: the job
 * is made of the row that the claim has read, and only if that row is due. An answer asks for the queue, the
 * id, and the run that has claimed the row. Example: a job has revision 7. A backup is restored that ends at 5,
 * and two new tasks get 6 and 7. The answer of the job leaves the new task as it is. It asks for the token
 * of the attempt too, because a backup may have an earlier attempt, or an earlier call of a repeating task.
 *
 * When many tasks are due together, the begin of a statement costs as much as its row. So one statement reads
 * the rows of 32 claims, one writes them, and one writes 32 answers that let tasks leave. One parameter tells
 * the tokens of all of them (TW__STORE_STEP). The statement of the answers asks for the token, the run and the
 * queue of each row, but not for its id: no other row of this number has the token. If it has found fewer rows
 * than answers, each of these tasks may have been replaced, as above.
 *
 * Other programs may take tasks of the same file, by tw_take of schema.sql. No claim finds such a row, because
 * its `replaced` is not 0. When the lease has run out, the run ends it by the same statements as a program.
 * The programs do the same with the claims of a run that has not said for 30 seconds that it is alive: its
 * answers find no rows then. Example: a run is stopped (SIGSTOP) for a minute. Others take its tasks meanwhile,
 * and the jobs that it had begun end without effect. (Rejected: that a put, a move or a cancel does so too.
 * When a computer wakes from sleep, the first put of the run's own program would end attempts under way. And
 * nobody waits for these verbs: before a task is given out, a take or the next run has ended the old attempt.)
 */
#include "claim.h"

#include <task/ends.h>

#include "look.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ------------------------------------------------------------------------------------------- */

struct tw__store_job **tw__store_table_find(const struct tw__store_table *table,
                                            const struct tw__store_queue *queue, const void *id, size_t id_size)
{
    uint64_t hash = tw__store_hash((uintptr_t)queue, id, id_size);
    struct tw__store_job **at = &table->jobs[hash & table->mask];
    while (*at != NULL && ((*at)->entry->queue != queue || (*at)->job.id.size != id_size ||
                           memcmp((*at)->job.id.data, id, id_size) != 0))
        at = &(*at)->next_id;
    return at;
}

/* ---- answers --------------------------------------------------------------------------------------------- */

/* Binds a job, a time and the error. */
static sqlite3_stmt *bind_answer(struct tw__store_db *db, enum tw__store_statement which,
                                 const struct tw__store_job *job, uint64_t at_ms, int *error)
{
    sqlite3_stmt *statement = tw__store_db_statement(db, which, error);
    if (statement == NULL)
        return NULL;
    tw__store_job_bind(db, statement, job);
    tw__store_bind_number(db, statement, 2, at_ms);
    tw__store_bind_text(db, statement, 3, job->error);
    return statement;
}

/* Changes the row of a job's task. Not each statement has the time and the error. */
static int answer_row(struct tw__store_db *db, enum tw__store_statement which, const struct tw__store_job *job,
                      uint64_t at_ms)
{
    int error = 0;
    sqlite3_stmt *statement = bind_answer(db, which, job, at_ms, &error);
    return statement != NULL ? tw__store_db_run(db, statement, "answer") : error;
}

/* Files the task for its next attempt or its next period. It goes behind the others of that time, so it has a
 * new number. The next look finds it under that, and its entry ends with the job. */
static int answer_and_file(struct tw__store_db *db, enum tw__store_statement which, struct tw__store_job *job,
                           uint64_t next_ms, uint64_t now_ms)
{
    int error = 0;
    sqlite3_stmt *statement = bind_answer(db, which, job, next_ms, &error);
    if (statement == NULL)
        return error;
    tw__store_bind_number(db, statement, 8, tw__store_place(db, next_ms, now_ms));
    tw__store_bind_number(db, statement, 9, db->revision + 1);
    error = tw__store_db_run(db, statement, "answer");
    job->renumbered = error == 0 && sqlite3_changes(db->db) > 0;
    db->revision += job->renumbered;
    return error;
}

/* A period that dies becomes a task of its own, a copy of the row with the first name that is free. The series
 * goes on. */
static int bury_period(struct tw__store_db *db, const struct tw__store_job *job, uint64_t now_ms)
{
    char id[TW_STORE_ANY_ID_MAX + TW__TASK_SUFFIX_MAX];
    int error = 0;
    memcpy(id, job->job.id.data, job->job.id.size);
    for (uint32_t n = 0; error == 0; n++) {
        size_t size = job->job.id.size + tw__task_suffix(job->job.due_ms, n, id + job->job.id.size);
        sqlite3_stmt *statement = bind_answer(db, TW__STORE_BURY_PERIOD, job, now_ms, &error);
        if (statement == NULL)
            return error;
        tw__store_bind_blob(db, statement, 8, id, size);
        tw__store_bind_number(db, statement, 9, db->revision + 1);
        error = tw__store_db_run(db, statement, "bury a period");
        if (error == 0 && sqlite3_changes(db->db) > 0)
            break;
    }
    db->revision += error == 0;
    return error;
}

/* The call has ended: the task waits for its next period, or leaves. */
static int end_call(struct tw__store_db *db, struct tw__store_job *job, uint64_t now_ms)
{
    uint64_t next_ms = tw__store_job_next_due(job);
    if (next_ms == TW_NEVER)
        return answer_row(db, TW__STORE_DONE, job, 0);
    return answer_and_file(db, TW__STORE_AGAIN, job, next_ms, now_ms);
}

/* Reads the options of a job's task as they are now: a put with KEEPDUE may have given a series others since
 * the claim. *there tells whether the task has its row still. */
static int read_options(struct tw__store_db *db, struct tw__store_job *job, struct tw__task_retry *retry,
                        bool *there)
{
    int error = 0;
    sqlite3_stmt *row = tw__store_db_statement(db, TW__STORE_OPTIONS_OF, &error);
    if (row == NULL)
        return error;
    tw__store_job_bind(db, row, job);
    *there = false;
    while (tw__store_db_next(db, row, "look a task up", &error)) {
        uint64_t times = (uint64_t)sqlite3_column_int64(row, 6);
        *retry = tw__store_read_retry(db, row, 0, 2);
        job->every_ms = (uint64_t)sqlite3_column_int64(row, 5);
        job->job.missed_periods = (uint64_t)sqlite3_column_int64(row, 7);
        job->job.left = tw__task_calls_left(job->every_ms, times == 0 ? TW_FOREVER : times);
        *there = true;
    }
    return error;
}

/* Changes the row of a job's task as its answer says, if it is there. */
static int end_by_answer(struct tw__store_db *db, struct tw__store_job *job, const struct tw__task_retry *retry,
                         uint64_t now_ms)
{
    if (job->answer == TW_ANSWER_BACK && job->retry_ms != TW_NEVER)
        return answer_and_file(db, TW__STORE_BACK_AT, job, job->retry_ms, now_ms);
    if (job->answer == TW_ANSWER_BACK) {
        job->again_ms = job->place_ms < now_ms ? job->place_ms : now_ms; /* the clock may have gone back */
        return answer_row(db, TW__STORE_BACK, job, now_ms);
    }
    if (job->buried && job->every_ms == 0)
        return answer_row(db, TW__STORE_BURY, job, now_ms);
    if (job->answer == TW_ANSWER_FAILED && !job->buried) {
        job->job.tries = retry->tries;
        return answer_and_file(db, TW__STORE_RETRY, job, tw__store_job_retry_due(job, retry, now_ms), now_ms);
    }
    int error = job->buried ? bury_period(db, job, now_ms) : 0;
    return error == 0 ? end_call(db, job, now_ms) : error;
}

/* Writes an answer. It may be written a second time, if the first transaction was rolled back. If a newer task
 * has taken the row meanwhile, the answer only ends the attempt. */
static int write_answer(struct tw__store_db *db, struct tw__store_job *job, uint64_t now_ms)
{
    struct tw__task_retry retry = db->retry;
    bool there = true, reads = job->every_ms > 0 || job->answer == TW_ANSWER_FAILED;
    int error = reads ? read_options(db, job, &retry, &there) : 0;
    job->again_ms = TW_NEVER;
    job->renumbered = false;
    job->buried = job->answer == TW_ANSWER_DEAD ||
                  (job->answer == TW_ANSWER_FAILED && !job->lapsed &&
                   tw__task_failure_kills(job->job.attempt, job->job.lapses, retry.tries));
    if (error == 0 && there)
        error = end_by_answer(db, job, &retry, now_ms);
    job->changed = error == 0 && there && sqlite3_changes(db->db) > 0;
    if (error != 0 || job->changed)
        return error;
    job->buried = false;
    job->again_ms = TW_NEVER;
    return answer_and_file(db, TW__STORE_END_REPLACED, job, now_ms, now_ms);
}

/* The random number of the commit that has claimed the task. */
static uint64_t base_of(const struct tw__store_job *job)
{
    return job->job.token - TW__STORE_STEP(job->job.revision);
}

/* Whether two tasks leave alike: their rows are of one queue and one commit. */
static bool leave_alike(const struct tw__store_job *a, const struct tw__store_job *b)
{
    return b->answer == TW_ANSWER_DONE && b->every_ms == 0 && b->job.missed_periods == 0 &&
           a->entry->queue == b->entry->queue && a->run == b->run && base_of(a) == base_of(b);
}

/* Returns how many tasks in a row, from this one on, leave alike: TW__STORE_MANY at most. */
static size_t count_alike(const struct tw__store_job *first)
{
    const struct tw__store_job *job = first;
    size_t n = 0;
    while (n < TW__STORE_MANY && job != NULL && leave_alike(first, job)) {
        job = job->next;
        n++;
    }
    return n;
}

/* Writes TW__STORE_MANY answers by one statement, and sets *end to the job after them. If some of the tasks
 * have left or have got another number, newer tasks may stand behind their attempts. */
static int write_many(struct tw__store_db *db, struct tw__store_job *first, struct tw__store_job **end,
                      uint64_t now_ms)
{
    int error = 0, at = 4;
    sqlite3_stmt *statement = tw__store_db_statement(db, TW__STORE_DONE_MANY, &error);
    if (statement == NULL)
        return error;
    tw__store_bind_text(db, statement, 1, first->job.queue);
    tw__store_bind_number(db, statement, 2, first->run);
    tw__store_bind_number(db, statement, 3, base_of(first));
    for (*end = first; at < 4 + TW__STORE_MANY; *end = (*end)->next)
        tw__store_bind_number(db, statement, at++, (*end)->job.revision);
    error = tw__store_db_run(db, statement, "answer");
    bool all = sqlite3_changes(db->db) == TW__STORE_MANY;
    for (struct tw__store_job *job = first; job != *end && error == 0; job = job->next) {
        job->again_ms = TW_NEVER;
        job->renumbered = job->buried = false;
        job->changed = all;
        error = all ? 0 : answer_and_file(db, TW__STORE_END_REPLACED, job, now_ms, now_ms);
    }
    return error;
}

/* A row of tasks that leave alike is counted once: if it is too short for DONE_MANY, so is each rest of it. */
static int write_answers(struct tw__store_db *db, struct tw__store_batch *batch)
{
    struct tw__store_job *job = batch->answered, *next;
    size_t alike = 0; /* from this job on; 0: they were not counted */
    int error = 0;
    for (; job != NULL && error == 0; job = next) {
        next = job->next;
        if (alike == 0)
            alike = count_alike(job);
        if (alike == TW__STORE_MANY) {
            error = write_many(db, job, &next, batch->now_ms);
            alike = 0;
        } else {
            error = write_answer(db, job, batch->now_ms);
            alike -= alike > 0;
        }
    }
    return error;
}

/* ---- the order ------------------------------------------------------------------------------------------- */

/* The clock has gone back. Tasks that were filed late have a place that lies ahead now, though they may be
 * taken: they get the place of tasks that are filed now, in their old order. And no lease is longer than it was
 * made. */
int tw__store_place_again(struct tw__store_db *db, void *arg)
{
    uint64_t now_ms = tw_store_now();
    (void)arg;
    if (db->clock_ms <= now_ms)
        return 0;
    int error = tw__store_db_write_meta(db);
    if (error == 0)
        error = tw__store_db_write(db, TW__STORE_PLACE_AGAIN, "file tasks again", &now_ms, 1);
    return error == 0 ? tw__store_db_read_meta(db) : error;
}

/* ---- the end of earlier runs ----------------------------------------------------------------------------- */

static const char LAPSED[] = "the run has ended";

/* Makes the job of an attempt that an earlier run has left. It has lapsed: the task waits as after the failure
 * that did not come, or dies. Returns: 0 or an error. */
static int read_left(struct tw__store_db *db, sqlite3_stmt *row, uint64_t now_ms, struct tw__store_job **job)
{
    struct tw_store_task task;
    int error = tw__store_read_task(db, row, now_ms, &task);
    *job = error == 0 ? tw__store_job_new(&task, NULL) : NULL;
    if (*job == NULL)
        return error != 0 ? error : tw__store_db_refuse(db, TW_ENOMEM, "no memory");
    (*job)->job.attempt = task.attempt;
    (*job)->job.lapses = task.lapses - 1; /* before this one */
    (*job)->run = (uint64_t)sqlite3_column_int64(row, 5);
    (*job)->job.token = (uint64_t)sqlite3_column_int64(row, sqlite3_column_count(row) - 1);
    (*job)->lapsed = true;
    (*job)->answer = tw__task_lapse_kills(task.lapses) ? TW_ANSWER_DEAD : TW_ANSWER_FAILED;
    tw_job_fail(&(*job)->job, LAPSED);
    return 0;
}

/* Ends the replaced attempts: their tasks wait. */
static int end_old_attempts(struct tw__store_db *db, uint64_t run, uint64_t now_ms,
                            struct tw__store_lapses *lapses)
{
    const uint64_t numbers[] = {run, tw__store_place(db, now_ms, now_ms), db->revision};
    int error = tw__store_db_write(db, TW__STORE_END_ALL_REPLACED, "end attempts", numbers, 3);
    uint64_t ended = error == 0 ? (uint64_t)sqlite3_changes(db->db) : 0;
    db->revision += ended;
    lapses->count += ended;
    return error;
}

/* The statement changes all rows before it returns the first one. */
int tw__store_end_runs(struct tw__store_db *db, uint64_t run, struct tw__store_lapses *lapses)
{
    struct tw__store_job **died = &lapses->died;
    uint64_t now_ms = tw_store_now();
    int error = 0;
    tw__store_jobs_free(lapses->died);
    *lapses = (struct tw__store_lapses){0};
    sqlite3_stmt *rows = tw__store_db_statement(db, TW__STORE_LAPSED, &error);
    if (rows == NULL)
        return error;
    tw__store_bind_number(db, rows, 1, run);
    while (tw__store_db_next(db, rows, "end attempts", &error)) {
        struct tw__store_job *job = NULL;
        error = read_left(db, rows, now_ms, &job);
        if (error == 0)
            error = write_answer(db, job, now_ms);
        lapses->count++;
        if (error == 0 && job->changed && job->buried) {
            *died = job;
            died = &job->next;
        } else {
            tw__store_job_free(job);
        }
    }
    return error == 0 ? end_old_attempts(db, run, now_ms, lapses) : error;
}

/* ---- leases of programs ---------------------------------------------------------------------------------- */

/* Counts the lapse of a task that has a lease. It becomes a job, for the news, if it dies of the lapse. If
 * somebody has removed its row, the lease has none, or a task of the same id that is not leased. */
static int lapse_with_lease(struct tw__store_db *db, sqlite3_stmt *row, struct tw__store_lapses *lapses,
                            struct tw__store_job **dead)
{
    struct tw_store_task task;
    int error = tw__store_read_task(db, row, 0, &task);
    if (error != 0 || task.state != TW_STATE_LEASED)
        return error;
    lapses->count++;
    if (task.replaced || !tw__task_lapse_kills(task.lapses + 1))
        return 0;
    *dead = tw__store_job_new(&task, NULL);
    if (*dead == NULL)
        return tw__store_db_refuse(db, TW_ENOMEM, "no memory");
    (*dead)->job.attempt = task.attempt;
    tw_job_fail(&(*dead)->job, "the lease ran out");
    return 0;
}

/* Ends a lease. */
static int end_lease(struct tw__store_db *db, sqlite3_stmt *lease, struct tw__store_lapses *lapses,
                     struct tw__store_job **dead)
{
    int error = 0;
    const char *queue = (const char *)sqlite3_column_text(lease, 0);
    const void *id = sqlite3_column_blob(lease, 1);
    size_t size = (size_t)sqlite3_column_bytes(lease, 1);
    sqlite3_stmt *row = tw__store_db_statement(db, TW__STORE_GET, &error);
    if (row == NULL)
        return error;
    tw__store_bind_text(db, row, 1, queue);
    tw__store_bind_blob(db, row, 2, id, size);
    while (tw__store_db_next(db, row, "look a task up", &error))
        error = lapse_with_lease(db, row, lapses, dead);
    return error == 0 ? tw__store_db_lapse(db, queue, id, size) : error;
}

/* A lease that has ended has left the table, so the statement that reads never comes to it again. */
int tw__store_end_leases(struct tw__store_db *db, void *arg)
{
    struct tw__store_leases *leases = arg;
    struct tw__store_job **died = &leases->lapses.died;
    int error = 0;
    tw__store_jobs_free(leases->lapses.died);
    leases->lapses = (struct tw__store_lapses){0};
    leases->gone_back = leases->seen != NULL && tw__store_db_has_gone_back(db, leases->seen);
    if (leases->gone_back)
        return 0;
    sqlite3_stmt *rows = tw__store_db_statement(db, TW__STORE_RAN_OUT, &error);
    if (rows == NULL)
        return error;
    tw__store_bind_number(db, rows, 1, tw_store_now());
    tw__store_bind_number(db, rows, 2, TW__TASK_PASSED_MAX);
    while (tw__store_db_next(db, rows, "look for leases", &error)) {
        error = end_lease(db, rows, &leases->lapses, died);
        died = *died != NULL ? &(*died)->next : died;
    }
    sqlite3_reset(rows);
    return error;
}

/* ---- the number of the run ------------------------------------------------------------------------------- */

/* Gives the tasks of all jobs another number. A restored file may not have some of them. */
static int keep_tasks(struct tw__store_db *db, const struct tw__store_table *table, uint64_t run)
{
    int error = 0;
    for (uint64_t i = 0; i <= table->mask; i++)
        for (const struct tw__store_job *job = table->jobs[i]; job != NULL && error == 0; job = job->next_id)
            error = answer_row(db, TW__STORE_KEEP, job, run);
    return error;
}

/* Says until when the run wants to be alive. Programs cannot see its lock, and end its attempts after that. */
static int say_alive(struct tw__store_db *db, uint64_t until_ms)
{
    tw__store_note_time(db, until_ms - TW__STORE_ALIVE_MS);
    return tw__store_db_write(db, TW__STORE_SET_UNTIL, "write tw_meta", &until_ms, 1);
}

int tw__store_count_run(struct tw__store_db *db, void *arg)
{
    int error = 0;
    struct tw__store_count *count = arg;
    sqlite3_stmt *row = tw__store_db_statement(db, TW__STORE_RUN, &error);
    if (row == NULL)
        return error;
    while (tw__store_db_next(db, row, "write tw_meta", &error)) {
        uint64_t run = (uint64_t)sqlite3_column_int64(row, 0);
        count->seen = (struct tw__store_seen){db->revision, run, db->changes, db->restored, db->backs};
    }
    count->until_ms = tw_store_now() + TW__STORE_ALIVE_MS;
    if (error == 0)
        error = say_alive(db, count->until_ms);
    if (error == 0)
        error = tw__store_place_again(db, NULL);
    if (error == 0)
        error = keep_tasks(db, count->table, count->seen.run);
    return error == 0 ? tw__store_end_runs(db, count->seen.run, &count->lapses) : error;
}

void tw__store_count_jobs(const struct tw__store_table *table, uint64_t run)
{
    for (uint64_t i = 0; i <= table->mask; i++)
        for (struct tw__store_job *job = table->jobs[i]; job != NULL; job = job->next_id)
            job->run = run;
}

/* ---- claims ---------------------------------------------------------------------------------------------- */

/* There is no call now: the row waits for a later period, or leaves. */
static int write_turn(struct tw__store_db *db, const struct tw__store_batch *batch,
                      const struct tw__store_claim *claim)
{
    static const char doing[] = "pass over a period";
    const struct tw__task_turn *turn = &claim->turn;
    if (turn->ends)
        return tw__store_db_write(db, TW__STORE_REMOVE, doing, &claim->entry->revision, 1);
    const uint64_t numbers[] = {claim->entry->revision, ++db->revision, turn->due,
                                tw__store_place(db, turn->due, batch->now_ms)};
    return tw__store_db_write(db, TW__STORE_ANEW, doing, numbers, 4);
}

/* Steps are below 2^62 too (20, 20 and 21.4 bits), so that the token of an attempt is an integer of SQL, and
 * more than 0. */
static uint64_t draw_token(void)
{
    uint64_t token;
    sqlite3_randomness(sizeof token, &token);
    return token & (UINT64_MAX >> 2);
}

/* Gives the task the period whose turn it is. A retry is of the same period as the attempt before. */
static void give_turn(const struct tw__store_batch *batch, struct tw__store_claim *claim,
                      struct tw_store_task *task)
{
    struct tw__task_period period = {task->due_ms, task->next_ms, task->every_ms, task->max_late_ms,
                                     task->missed};
    claim->turn =
        (struct tw__task_turn){.due = task->due_ms, .missed_periods = task->missed_periods, .calls = true};
    claim->has_turn = true;
    if (task->attempt > 0)
        return;
    claim->turn = tw__task_turn(&period, batch->now_ms);
    claim->has_turn = claim->turn.due == task->due_ms && claim->turn.missed_periods == task->missed_periods;
    if (claim->turn.due != task->due_ms)
        task->next_ms = claim->next_ms = claim->turn.due;
    task->due_ms = claim->turn.due;
    task->missed_periods = claim->turn.missed_periods;
}

/* Decides about a task whose time has come, and makes its job. Returns: 0 or an error. */
static int decide_turn(struct tw__store_db *db, struct tw__store_batch *batch, struct tw__store_claim *claim,
                       struct tw_store_task *task)
{
    give_turn(batch, claim, task);
    if (!claim->turn.calls)
        claim->fate = TW__STORE_PASSED;
    else if (batch->called == batch->calls || (task->payload.size > batch->room && !batch->idle))
        batch->full = true;
    else if ((claim->job = tw__store_job_new(task, claim->entry)) == NULL)
        return tw__store_db_refuse(db, TW_ENOMEM, "no memory");
    else
        claim->fate = TW__STORE_CLAIMED;
    return 0;
}

/* A job of the same task is at work, whose row was cancelled, or lost in a restore. The task stands behind that
 * attempt then, as if it had replaced it. */
static int put_behind(struct tw__store_db *db, const struct tw__store_claim *claim,
                      const struct tw__store_job *job)
{
    const uint64_t numbers[] = {claim->entry->revision, ++db->revision, job->run, job->job.token,
                                job->job.attempt};
    return tw__store_db_write(db, TW__STORE_STAND_BEHIND, "claim", numbers, 5);
}

/* Decides about a task that is there. Returns: 0 or an error. */
static int decide_fate(struct tw__store_db *db, struct tw__store_batch *batch, struct tw__store_claim *claim,
                       struct tw_store_task *task)
{
    const struct tw__store_job *job =
        *tw__store_table_find(batch->table, claim->entry->queue, task->id.data, task->id.size);
    bool early = task->place_ms > batch->now_ms || task->next_ms > batch->now_ms;
    claim->fate = early ? TW__STORE_EARLY : job != NULL ? TW__STORE_GONE : TW__STORE_NO_ROOM;
    claim->next_ms = task->next_ms;
    claim->place_ms = task->place_ms;
    if (early || (job != NULL && task->state == TW_STATE_LEASED)) /* it is the row of that job */
        return 0;
    return job != NULL ? put_behind(db, claim, job) : decide_turn(db, batch, claim, task);
}

/* Notes a damaged row, and writes the news of it. */
static void tell_damage(struct tw__store_batch *batch, const struct tw__store_claim *claim, sqlite3_stmt *row,
                        bool good_id)
{
    static const char *const types[] = {"", "an integer", "a real", "a text", "a blob", "NULL"};
    char queue[120], reason[160];
    const char *type = types[sqlite3_column_type(row, good_id ? 3 : 2)];
    if (good_id)
        snprintf(reason, sizeof reason, "due_ms is %s, %" PRId64 ": expected an integer of 0 to %" PRIu64, type,
                 (int64_t)sqlite3_column_int64(row, 3), TW_STORE_TIME_MAX);
    else
        snprintf(reason, sizeof reason, "id is %s of %d bytes: expected a blob of 1 to %d", type,
                 sqlite3_column_bytes(row, 2), TW_STORE_ANY_ID_MAX);
    batch->full = true;
    batch->damaged = claim->entry->revision;
    tw__store_show(queue, sizeof queue, claim->entry->queue->name, strlen(claim->entry->queue->name));
    snprintf(batch->damage, sizeof batch->damage,
             "queue '%s': the row %" PRIu64 " of tw_task is damaged, and its task is not called: %s;"
             " DELETE FROM tw_task WHERE revision = %" PRIu64 " removes it",
             queue, batch->damaged, reason, batch->damaged);
}

/* Whether a row has a name and a time. Others may have written it without the checks of the tables. */
static bool is_whole(struct tw__store_batch *batch, const struct tw__store_claim *claim, sqlite3_stmt *row)
{
    int size = sqlite3_column_type(row, 2) == SQLITE_BLOB ? sqlite3_column_bytes(row, 2) : 0;
    bool good_id = size >= 1 && size <= TW_STORE_ANY_ID_MAX;
    bool good_due = sqlite3_column_type(row, 3) == SQLITE_INTEGER &&
                    (uint64_t)sqlite3_column_int64(row, 3) <= TW_STORE_TIME_MAX;
    if (!good_id || !good_due)
        tell_damage(batch, claim, row, good_id);
    return good_id && good_due;
}

/* Gives the job its attempt. */
static void begin_attempt(const struct tw__store_db *db, struct tw__store_batch *batch,
                          const struct tw__store_claim *claim)
{
    struct tw__store_job *job = claim->job;
    job->place_ms = claim->place_ms;
    job->run = db->run;
    job->job.token = batch->token + TW__STORE_STEP(claim->entry->revision);
    batch->room -= job->size < batch->room ? job->size : batch->room;
    batch->idle = false;
    batch->called++;
}

/* Makes a claim whose row is there. A batch has one damaged row at most. */
static int claim_row(struct tw__store_db *db, struct tw__store_batch *batch, struct tw__store_claim *claim,
                     sqlite3_stmt *row)
{
    struct tw_store_task task;
    claim->fate = TW__STORE_GONE;
    if (!is_whole(batch, claim, row))
        return 0;
    int error = tw__store_read_task(db, row, batch->now_ms, &task);
    if (error == 0)
        error = decide_fate(db, batch, claim, &task);
    if (error == 0 && claim->fate == TW__STORE_CLAIMED)
        begin_attempt(db, batch, claim);
    if (error == 0 && claim->fate == TW__STORE_PASSED)
        error = write_turn(db, batch, claim);
    return error;
}

/* Makes n claims, one or TW__STORE_MANY: reads their rows by one statement, in their order, until there is no
 * room. A claim may write: the statement looks up each row by itself, so it finds the row of the next claim.
 * Two claims may have the same number, so a row says whose it is. */
static int make_claims(struct tw__store_db *db, struct tw__store_batch *batch, struct tw__store_claim *claims,
                       size_t n)
{
    int error = 0, at = 1;
    enum tw__store_statement which = n == 1 ? TW__STORE_CLAIM_ROW : TW__STORE_CLAIM_ROWS;
    sqlite3_stmt *row = tw__store_db_statement(db, which, &error);
    if (row == NULL)
        return error;
    for (size_t i = 0; i < n; i++) {
        tw__store_bind_number(db, row, at++, claims[i].entry->revision);
        tw__store_bind_text(db, row, at++, claims[i].entry->queue->name);
        tw__store_bind_number(db, row, at++, i);
    }
    while (!batch->full && tw__store_db_next(db, row, "claim", &error)) {
        int whose = sqlite3_column_int(row, sqlite3_column_count(row) - 1);
        error = claim_row(db, batch, &claims[whose], row);
    }
    sqlite3_reset(row);
    for (size_t i = 0; i < n && !batch->full; i++) /* those without a row; a full batch leaves them for later */
        claims[i].fate = claims[i].fate == TW__STORE_NO_ROOM ? TW__STORE_GONE : claims[i].fate;
    return error;
}

static int make_all_claims(struct tw__store_db *db, struct tw__store_batch *batch)
{
    int error = 0;
    for (size_t i = 0; i < batch->n; i++)
        batch->claims[i].fate = TW__STORE_NO_ROOM;
    for (size_t i = 0, n; i < batch->n && error == 0 && !batch->full; i += n) {
        n = batch->n - i >= TW__STORE_MANY ? TW__STORE_MANY : 1;
        error = make_claims(db, batch, &batch->claims[i], n);
    }
    return error;
}

/* Changes the row that the claim has read in this transaction. */
static int write_claim(struct tw__store_db *db, const struct tw__store_claim *claim)
{
    const struct tw__store_job *job = claim->job;
    const uint64_t numbers[] = {claim->entry->revision, job->run,       job->job.token,
                                claim->turn.due,        claim->next_ms, claim->turn.missed_periods};
    return tw__store_db_write(db, TW__STORE_CLAIM, "claim", numbers, 6);
}

/* Changes the rows that the claims have read: many by one statement, if they have the times of their turns. */
static int write_claims(struct tw__store_db *db, const struct tw__store_batch *batch)
{
    enum { BEFORE = 2 };
    const struct tw__store_claim *alike[TW__STORE_MANY];
    uint64_t numbers[BEFORE + TW__STORE_MANY] = {db->run, batch->token};
    size_t n = 0;
    int error = 0;
    for (size_t i = 0; i < batch->n && error == 0; i++) {
        const struct tw__store_claim *claim = &batch->claims[i];
        if (claim->fate != TW__STORE_CLAIMED)
            continue;
        if (!claim->has_turn) {
            error = write_claim(db, claim);
            continue;
        }
        alike[n] = claim;
        numbers[BEFORE + n++] = claim->entry->revision;
        if (n == TW__STORE_MANY) {
            error = tw__store_db_write(db, TW__STORE_CLAIM_MANY, "claim", numbers, BEFORE + TW__STORE_MANY);
            n = 0;
        }
    }
    for (size_t i = 0; i < n && error == 0; i++)
        error = write_claim(db, alike[i]);
    return error;
}

/* Does so if there are jobs. `idle`: none was under way before this commit. */
static int write_until(struct tw__store_db *db, struct tw__store_batch *batch, bool idle)
{
    batch->renewed = batch->until_ms > 0 && (batch->called > 0 || !idle);
    return batch->renewed ? say_alive(db, batch->until_ms) : 0;
}

/* A backup was restored into the file since the last look, or the file was marked. This transaction neither
 * claims nor answers: it would raise `changes`, and then the next look could not tell. */
static int check_state(struct tw__store_db *db, struct tw__store_batch *batch)
{
    batch->gone_back = tw__store_db_has_gone_back(db, batch->seen);
    return batch->gone_back ? tw__store_db_refuse(db, TW_EBUSY, "the file was restored: it is read anew") : 0;
}

void tw__store_claim_undo(struct tw__store_batch *batch)
{
    for (size_t i = 0; i < batch->n; i++) {
        tw__store_job_free(batch->claims[i].job);
        batch->claims[i].job = NULL;
    }
}

/* Notes the counts that the file will have after the commit. One that has changed no row is not counted. */
static void note_commit(struct tw__store_db *db, struct tw__store_batch *batch, int changes_before)
{
    uint32_t before = batch->count != NULL ? *batch->count : 0; /* nobody else writes now */
    bool counts = sqlite3_total_changes(db->db) != changes_before;
    batch->commits = (struct tw__store_commits){before, before + counts, !db->shared};
    batch->changes = counts ? tw__store_db_next_changes(db) : batch->seen->changes;
}

int tw__store_claim(struct tw__store_db *db, void *arg)
{
    struct tw__store_batch *batch = arg;
    uint64_t room = batch->room;
    bool idle = batch->idle;
    int changes_before = sqlite3_total_changes(db->db), error = check_state(db, batch);
    batch->full = false;
    batch->called = batch->damaged = 0;
    batch->token = draw_token();
    tw__store_claim_undo(batch); /* of a transaction that was rolled back */
    if (error == 0)
        error = make_all_claims(db, batch); /* before the answers, which may end some of these tasks */
    if (error == 0)
        error = write_claims(db, batch);
    if (error == 0)
        error = write_answers(db, batch);
    if (error == 0)
        error = write_until(db, batch, idle);
    note_commit(db, batch, changes_before);
    batch->room = room;
    batch->idle = idle;
    return error;
}
