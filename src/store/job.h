/* SPDX-License-Identifier: MIT
 *
 * A job from its claim to its answer.
 */
#ifndef TW_STORE_JOB_H
#define TW_STORE_JOB_H

#include "window.h"

#include <stdatomic.h>

struct tw__store_job;

/* Receives a job whose handler has returned and whose answer is there. */
typedef void tw__store_answered_fn(void *arg, struct tw__store_job *job);

struct tw__store_job {
    struct tw_job job;
    struct tw__store_job *next;    /* in a list of answered jobs */
    struct tw__store_job *next_id; /* in a bucket of the table of jobs under way */
    struct tw__store_entry *entry;
    tw__store_answered_fn *answered;
    void *answered_arg;
    const struct tw_store *store; /* it keeps the message of an error */
    uint64_t place_ms;            /* of its row when it was claimed; its entry may have had a later one */
    uint64_t run;                 /* the number of the run that has claimed it */
    uint64_t claimed_ns;          /* on the monotonic clock */
    uint32_t series;              /* of commits (check.c) */
    bool begun;                   /* its handler was called */
    uint64_t every_ms;
    uint64_t latest_ms; /* after that, the handler does not begin: the task is too late; TW_NEVER: no limit */
    uint64_t retry_ms;  /* the caller's time of the next attempt; TW_NEVER: by the backoff, or back at once */
    uint64_t again_ms;  /* the place of a task that is given back as it was; TW_NEVER: it is not */
    enum tw_answer answer;
    atomic_uint state; /* which of the two, the handler's return and the answer, have come */
    bool lapsed;       /* there is no answer: its run has ended */
    bool buried;       /* the answer has made the task dead */
    bool changed;      /* the answer has changed the task: it was still the revision that ran */
    bool renumbered;   /* the answer has given the task a new revision, which the next look finds */
    char *error;       /* of this attempt, a block of its own; NULL: none */
    size_t size;       /* of the parts of the task */
    char bytes[];      /* queue, id, error of the attempt before, payload */
};

/* Makes a job of the next attempt of a task. Returns NULL if there is no memory. */
struct tw__store_job *tw__store_job_new(const struct tw_store_task *task, struct tw__store_entry *entry);
/* `job` may be NULL. */
void tw__store_job_free(struct tw__store_job *job);
/* Frees a list. */
void tw__store_jobs_free(struct tw__store_job *job);

/* Binds what a statement with TW__STORE_OF_JOB asks for. */
void tw__store_job_bind(struct tw__store_db *db, sqlite3_stmt *statement, const struct tw__store_job *job);

/* Whether the task has become too late since its claim, while it waited for a worker. */
bool tw__store_job_is_late(const struct tw__store_job *job);

/* Calls the handler. */
void tw__store_job_run(struct tw__store_job *job);

/* Gives the job back without a call. */
void tw__store_job_return(struct tw__store_job *job);

/* Writes the news of an attempt: that it has failed (TW_EFAILED), as "queue 'q', id 'a': attempt 1 has failed:
 * broke", that its task is dead (TW_EDEAD), or that it was given back with an error text (TW_EINVAL). `error`
 * NULL: none is known. */
void tw__store_job_tell(const struct tw_job *job, int news, const char *error,
                        char message[TW_STORE_MESSAGE_SIZE]);

/* When the next call is due; TW_NEVER: none comes. */
uint64_t tw__store_job_next_due(const struct tw__store_job *job);

/* When the next attempt is due. */
uint64_t tw__store_job_retry_due(const struct tw__store_job *job, const struct tw__task_retry *retry,
                                 uint64_t now_ms);

#endif
