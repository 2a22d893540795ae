/* SPDX-License-Identifier: MIT
 *
 * A job. The return of its handler and its answer may come in either order, on two threads: the second of the
 * two hands the job to the runner. So the runner frees no job that a handler still reads.
 */
#include "job.h"
#include "change.h"
#include "internal.h"

#include <base/assert.h>
#include <base/error_text.h>
#include <base/saturate.h>
#include <base/utf8.h>

#include <task/backoff.h>
#include <task/ends.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETURNED = 1, ANSWERED = 2 };
enum { ID_SHOWN = 80, ID_NAME = ID_SHOWN + sizeof "x'...'" }; /* bytes of an id in a message */

static struct tw__store_job *job_of(struct tw_job *job)
{
    return TW_CONTAINER(job, struct tw__store_job, job);
}

/* Copies bytes to *to, and moves it on. Returns the copy. */
static const void *keep(char **to, const void *from, size_t size)
{
    char *start = *to;
    if (size > 0)
        memcpy(start, from, size);
    *to += size;
    return start;
}

static struct tw_bytes keep_bytes(char **to, struct tw_bytes from)
{
    return from.data != NULL ? (struct tw_bytes){keep(to, from.data, from.size), from.size} : from;
}

/* From when on a call is late. A series makes up for its periods: the time of their filing does not count. */
static uint64_t late_from(const struct tw_store_task *task)
{
    return task->every_ms > 0 ? task->next_ms : task->place_ms;
}

/* A retry is never too late. */
static uint64_t latest_of(const struct tw_store_task *task)
{
    uint64_t from_ms = task->next_ms > task->due_ms ? task->next_ms : task->due_ms;
    return task->attempt > 0 ? TW_NEVER : tw__add_saturating(from_ms, task->max_late_ms);
}

struct tw__store_job *tw__store_job_new(const struct tw_store_task *task, struct tw__store_entry *entry)
{
    size_t queue = strlen(task->queue) + 1, error = task->error != NULL ? strlen(task->error) + 1 : 0;
    size_t size = queue + task->id.size + error + task->payload.size;
    struct tw__store_job *job = malloc(sizeof *job + size);
    if (job == NULL)
        return NULL;
    char *to = job->bytes;
    *job = (struct tw__store_job){
        .size = size,
        .entry = entry,
        .every_ms = task->every_ms,
        .latest_ms = latest_of(task),
        .retry_ms = TW_NEVER,
    };
    job->job = (struct tw_job){
        .queue = keep(&to, task->queue, queue),
        .due_ms = task->due_ms,
        .revision = task->revision,
        .left = tw__task_calls_left(task->every_ms, task->times),
        .missed_periods = task->missed_periods,
        .attempt = task->attempt + 1,
        .lapses = task->lapses,
        .tries = task->tries,
        .late_from_ms = late_from(task),
    };
    job->job.id = keep_bytes(&to, task->id);
    job->job.error = error > 0 ? keep(&to, task->error, error) : NULL;
    job->job.payload = keep_bytes(&to, task->payload);
    return job;
}

void tw__store_job_free(struct tw__store_job *job)
{
    if (job != NULL)
        free(job->error);
    free(job);
}

void tw__store_jobs_free(struct tw__store_job *job)
{
    for (struct tw__store_job *next; job != NULL; job = next) {
        next = job->next;
        tw__store_job_free(job);
    }
}

void tw__store_job_bind(struct tw__store_db *db, sqlite3_stmt *statement, const struct tw__store_job *job)
{
    tw__store_bind_number(db, statement, 1, job->job.revision);
    tw__store_bind_text(db, statement, 4, job->job.queue);
    tw__store_bind_blob(db, statement, 5, job->job.id.data, job->job.id.size);
    tw__store_bind_number(db, statement, 6, job->run);
    tw__store_bind_number(db, statement, 7, job->job.token);
}

/* ---- answers --------------------------------------------------------------------------------------------- */

void tw_job_fail(struct tw_job *job, const char *error)
{
    size_t size = tw__text_size(error, strlen(error), TW__TASK_ERROR_MAX);
    char *text = size > 0 ? malloc(size + 1) : NULL;
    if (text != NULL) {
        memcpy(text, error, size);
        text[size] = '\0';
        tw__utf8_clean(text, size);
    }
    free(job_of(job)->error);
    job_of(job)->error = text;
}

int tw_job_retry_at(struct tw_job *job, uint64_t next_ms)
{
    char text[TW_STORE_MESSAGE_SIZE];
    struct tw__store_db only_message = {.message = text, .size = sizeof text};
    int error = tw__store_range_check(&only_message, "next_ms", next_ms, 0, TW_STORE_TIME_MAX);
    if (error != 0)
        return tw__store_failed(job_of(job)->store, error, text);
    job_of(job)->retry_ms = next_ms;
    return 0;
}

static void note_state(struct tw__store_job *job, unsigned came)
{
    if ((atomic_fetch_or(&job->state, came) | came) == (RETURNED | ANSWERED))
        job->answered(job->answered_arg, job);
}

void tw_job_answer(struct tw_job *job, enum tw_answer answer)
{
    TW_ASSERT(answer != TW_ANSWER_LATER);
    job_of(job)->answer = answer;
    note_state(job_of(job), ANSWERED);
}

bool tw__store_job_is_late(const struct tw__store_job *job)
{
    return job->latest_ms != TW_NEVER && tw_store_now() > job->latest_ms;
}

void tw__store_job_run(struct tw__store_job *job)
{
    const struct tw__store_callee *callee = &job->entry->queue->callee;
    uint64_t now_ms = tw_store_now();
    job->begun = true;
    job->job.late_ms = now_ms > job->job.late_from_ms ? now_ms - job->job.late_from_ms : 0;
    enum tw_answer answer = callee->handler(callee->arg, &job->job);
    if (answer != TW_ANSWER_LATER) {
        job->answer = answer;
        note_state(job, RETURNED | ANSWERED);
    } else {
        note_state(job, RETURNED);
    }
}

void tw__store_job_return(struct tw__store_job *job)
{
    job->answer = TW_ANSWER_BACK;
    note_state(job, RETURNED | ANSWERED);
}

/* ---- news ------------------------------------------------------------------------------------------------ */

/* Writes an id as text in quotes or, if it is no short text of ASCII, in hexadecimal as SQL has it. */
static void name_id(const struct tw_job *job, char name[ID_NAME])
{
    const unsigned char *id = job->id.data;
    size_t size = 0;
    while (size < job->id.size && id[size] >= ' ' && id[size] <= '~')
        size++;
    if (size == job->id.size && size <= ID_SHOWN) {
        snprintf(name, ID_NAME, "'%.*s'", (int)size, (const char *)id);
        return;
    }
    size_t shown = job->id.size < ID_SHOWN / 2 ? job->id.size : ID_SHOWN / 2;
    int at = snprintf(name, ID_NAME, "x'");
    for (size_t i = 0; i < shown; i++)
        at += snprintf(name + at, ID_NAME - (size_t)at, "%02x", id[i]);
    snprintf(name + at, ID_NAME - (size_t)at, "%s'", shown < job->id.size ? "..." : "");
}

void tw__store_job_tell(const struct tw_job *job, int news, const char *error,
                        char message[TW_STORE_MESSAGE_SIZE])
{
    char id[ID_NAME];
    int queue = (int)tw__text_size(job->queue, strlen(job->queue), ID_SHOWN);
    name_id(job, id);
    size_t size =
        (size_t)snprintf(message, TW_STORE_MESSAGE_SIZE, "queue '%.*s', id %s: ", queue, job->queue, id);
    if (news == TW_EINVAL) {
        snprintf(message + size, TW_STORE_MESSAGE_SIZE - size,
                 "BACK has an error text: expected none, as nothing has failed");
        return;
    }
    if (news == TW_EDEAD)
        size +=
            (size_t)snprintf(message + size, TW_STORE_MESSAGE_SIZE - size, "dead after %" PRIu32 " attempt%s",
                             job->attempt, job->attempt == 1 ? "" : "s");
    else
        size += (size_t)snprintf(message + size, TW_STORE_MESSAGE_SIZE - size, "attempt %" PRIu32 " has failed",
                                 job->attempt);
    if (error == NULL)
        return;
    int most = (int)tw__text_size(error, strlen(error), TW_STORE_MESSAGE_SIZE - size - sizeof ": ");
    snprintf(message + size, TW_STORE_MESSAGE_SIZE - size, ": %.*s", most, error);
}

/* ---- times ----------------------------------------------------------------------------------------------- */

uint64_t tw__store_job_next_due(const struct tw__store_job *job)
{
    return tw__task_next_call(job->job.due_ms, job->job.missed_periods, job->every_ms, job->job.left);
}

uint64_t tw__store_job_retry_due(const struct tw__store_job *job, const struct tw__task_retry *retry,
                                 uint64_t now_ms)
{
    if (job->retry_ms != TW_NEVER)
        return job->retry_ms;
    uint32_t failure = tw__task_failure(job->job.attempt, job->job.lapses);
    return tw__task_retry_at(retry, failure, job->job.token, now_ms);
}
