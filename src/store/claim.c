/* SPDX-License-Identifier: MIT
 *
 * A claim is on the disk before the handler is called. If the process dies in the handler, the next run finds
 * the task with its attempt counted, and calls the handler with the next one. The row keeps its place in the
 * index of due times, so a claim writes the row alone, and nothing has to be mended when a run begins.
 * Example: attempt 1 of 3 is under way when the machine loses power. The next run calls attempt 2.
 *
 * An answer changes the row of the revision that ran. A put or a move meanwhile has given the task another
 * number, and a cancel has removed it: the answer finds no row then, and changes nothing.
 */
#include "claim.h"

#include <base/assert.h>

#include "look.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ------------------------------------------------------------------------------------------- */

struct tw__store_job **tw__store_table_find(const struct tw__store_table *table,
                                            const struct tw__store_queue *queue, const void *id, size_t id_size)
{
    uint64_t hash = tw__store_hash((uintptr_t)queue, id, id_size);
    struct tw__store_job **at = &table->jobs[hash & table->mask];
    while (*at != NULL && ((*at)->entry->queue != queue || (*at)->job.id_size != id_size ||
                           memcmp((*at)->job.id, id, id_size) != 0))
        at = &(*at)->next_id;
    return at;
}

/* ---- answers --------------------------------------------------------------------------------------------- */

/* Runs a statement whose first parameters are a revision, a time and a text. */
static int change_row(struct tw__store_db *db, enum tw__store_statement which, uint64_t seq, uint64_t at_ms,
                      const char *text)
{
    int error = 0;
    sqlite3_stmt *statement = tw__store_db_statement(db, which, &error);
    if (statement == NULL)
        return error;
    tw__store_bind_number(db, statement, 1, seq);
    if (which != TW__STORE_REMOVE && which != TW__STORE_BACK)
        tw__store_bind_number(db, statement, 2, at_ms);
    if (which == TW__STORE_RETRY || which == TW__STORE_BURY)
        tw__store_bind_text(db, statement, 3, text);
    return tw__store_db_run(db, statement, "answer");
}

/* Writes an answer. It may be written a second time, if the first transaction was rolled back. */
static int write_answer(struct tw__store_db *db, struct tw__store_job *job, uint64_t now_ms)
{
    uint64_t seq = job->job.revision;
    bool repeats = job->period_ms > 0 && job->job.left > 0;
    int error;
    job->again_ms = 0;
    job->buried = job->answer == TW_DEAD || (job->answer == TW_RETRY && job->job.attempt >= job->job.tries);
    if (job->answer == TW_BACK) {
        job->again_ms = job->entry->due_ms;
        error = change_row(db, TW__STORE_BACK, seq, 0, NULL);
    } else if (job->buried) {
        error = change_row(db, TW__STORE_BURY, seq, now_ms, job->error);
    } else if (job->answer == TW_RETRY) {
        job->again_ms = tw__store_job_retry_due(job, now_ms);
        error = change_row(db, TW__STORE_RETRY, seq, job->again_ms, job->error);
    } else if (repeats) {
        job->again_ms = tw__store_job_next_due(job);
        error = change_row(db, TW__STORE_AGAIN, seq, job->again_ms, NULL);
    } else {
        error = change_row(db, TW__STORE_REMOVE, seq, 0, NULL);
    }
    job->changed = error == 0 && sqlite3_changes(db->db) > 0;
    if (error == 0 && !job->changed)
        job->again_ms = 0;
    return error;
}

/* ---- claims ---------------------------------------------------------------------------------------------- */

static const char CRASHED[] = "the process died in too many attempts";

/* The job is for the news; without memory the task dies untold. */
static void bury(struct tw__store_claim *claim, const struct tw_store_task *task)
{
    claim->fate = TW__STORE_BURIED;
    claim->job = tw__store_job_new(task, claim->entry);
    if (claim->job == NULL)
        return;
    claim->job->job.attempt = task->attempt;
    tw_job_fail(&claim->job->job, CRASHED);
}

/* Decides about a task that is there. Returns: 0 or an error. */
static int decide_fate(struct tw__store_db *db, struct tw__store_batch *batch, struct tw__store_claim *claim,
                       const struct tw_store_task *task)
{
    claim->behind = *tw__store_table_find(batch->table, claim->entry->queue, task->id, task->id_size);
    claim->fate = TW__STORE_NO_ROOM;
    claim->due_ms = task->due_ms;
    if (claim->behind != NULL)
        claim->fate = TW__STORE_HELD;
    else if (task->due_ms > batch->now_ms)
        claim->fate = TW__STORE_EARLY;
    else if (task->payload_size > batch->room && !batch->idle)
        batch->full = true;
    else if (task->attempt >= task->tries + TW__STORE_CRASHES)
        bury(claim, task);
    else if ((claim->job = tw__store_job_new(task, claim->entry)) == NULL)
        return tw__store_db_refuse(db, TW_ENOMEM, "no memory");
    else
        claim->fate = TW__STORE_CLAIMED;
    return 0;
}

/* Reads the row of a claim and decides about it. */
static int read_claim(struct tw__store_db *db, struct tw__store_batch *batch, struct tw__store_claim *claim)
{
    int error = 0;
    sqlite3_stmt *row = tw__store_db_statement(db, TW__STORE_CLAIM_ROW, &error);
    if (row == NULL)
        return error;
    tw__store_bind_number(db, row, 1, claim->entry->seq);
    int code = tw__store_db_step(db, row);
    claim->fate = TW__STORE_GONE;
    if (code == SQLITE_ROW) {
        struct tw_store_task task;
        error = tw__store_read_task(db, row, &task);
        if (error == 0)
            error = decide_fate(db, batch, claim, &task);
    } else if (code != SQLITE_DONE) {
        error = tw__store_db_error(db, code, "claim");
    }
    sqlite3_reset(row);
    return error;
}

static int write_claim(struct tw__store_db *db, struct tw__store_batch *batch, struct tw__store_claim *claim)
{
    uint64_t size = claim->job->size;
    batch->room -= size < batch->room ? size : batch->room;
    batch->idle = false;
    return change_row(db, TW__STORE_CLAIM, claim->entry->seq, batch->run, NULL);
}

static int claim_one(struct tw__store_db *db, struct tw__store_batch *batch, struct tw__store_claim *claim)
{
    claim->fate = TW__STORE_NO_ROOM;
    if (batch->full)
        return 0;
    int error = read_claim(db, batch, claim);
    if (error == 0 && claim->fate == TW__STORE_CLAIMED)
        error = write_claim(db, batch, claim);
    if (error == 0 && claim->fate == TW__STORE_BURIED)
        error = change_row(db, TW__STORE_BURY, claim->entry->seq, batch->now_ms, CRASHED);
    return error;
}

/* Another run can have begun only if somebody has removed the file with the lock. It has claimed the tasks
 * anew, so this one neither claims nor answers any more. */
static int check_run_number(struct tw__store_db *db, const struct tw__store_batch *batch)
{
    if (db->run == batch->run)
        return 0;
    return tw__store_db_refuse(db, TW_EBUSY,
                               "run %" PRIu64 " of this file has begun, and this is run %" PRIu64
                               ": was the file with the lock removed?",
                               db->run, batch->run);
}

void tw__store_claim_undo(struct tw__store_batch *batch)
{
    for (size_t i = 0; i < batch->n; i++) {
        tw__store_job_free(batch->claims[i].job);
        batch->claims[i].job = NULL;
    }
}

int tw__store_claim(struct tw__store_db *db, void *arg)
{
    struct tw__store_batch *batch = arg;
    uint64_t room = batch->room;
    bool idle = batch->idle;
    int error = check_run_number(db, batch);
    batch->full = false;
    tw__store_claim_undo(batch); /* of a transaction that was rolled back */
    for (struct tw__store_job *job = batch->answered; job != NULL && error == 0; job = job->next)
        error = write_answer(db, job, batch->now_ms);
    for (size_t i = 0; i < batch->n && error == 0; i++)
        error = claim_one(db, batch, &batch->claims[i]);
    batch->room = room;
    batch->idle = idle;
    return error;
}
