/* SPDX-License-Identifier: MIT
 *
 * One commit of the runner: the answers of jobs that have ended, and claims of tasks that are due.
 */
#ifndef TW_STORE_CLAIM_H
#define TW_STORE_CLAIM_H

#include "check.h"

#include <task/periods.h>

enum { TW__STORE_CLAIMS = 256 }; /* of one commit */

/* For so long a run says that it is alive, in until_ms of tw_meta. It says so again when so much is left. */
enum { TW__STORE_ALIVE_MS = 30000, TW__STORE_RENEW_MS = 20000 };

/* The jobs under way, by queue and id. */
struct tw__store_table {
    struct tw__store_job **jobs;
    uint64_t mask;
};

/* Finds the place of the pointer to the job of a task, or the end of its bucket. */
struct tw__store_job **tw__store_table_find(const struct tw__store_table *table,
                                            const struct tw__store_queue *queue, const void *id,
                                            size_t id_size);

/* The fate of a task that the commit looked at. */
enum tw__store_fate {
    TW__STORE_CLAIMED, /* `job` has it */
    TW__STORE_GONE,    /* nothing is to be called: it has left, stands behind an attempt, or is damaged */
    TW__STORE_PASSED,  /* no call now: its row has got a later period and another number, or has left */
    TW__STORE_EARLY,   /* its turn comes at place_ms */
    TW__STORE_NO_ROOM  /* it has to wait for the end of other jobs */
};

struct tw__store_claim {
    struct tw__store_entry *entry;
    enum tw__store_fate fate;
    struct tw__store_job *job;  /* of TW__STORE_CLAIMED */
    uint64_t next_ms, place_ms; /* of the task */
    struct tw__task_turn turn;  /* of TW__STORE_CLAIMED and TW__STORE_PASSED */
    bool has_turn;              /* its row has the times of this turn already */
};

struct tw__store_batch {
    struct tw__store_job *answered; /* a list */
    struct tw__store_claim claims[TW__STORE_CLAIMS];
    size_t n;                           /* claims */
    uint64_t calls, called;             /* how many of them may become jobs, and how many have */
    uint64_t room;                      /* bytes of payloads that may be claimed */
    bool idle;                          /* no job is under way, so one payload of any size may be claimed */
    uint64_t token;                     /* of an attempt is this and the step of its row. Set by the work */
    bool full;                          /* the claims after this one wait: it had no room, or is damaged */
    uint64_t damaged;                   /* the number of a row that is damaged; 0: none is. Set by the work */
    char damage[TW_STORE_MESSAGE_SIZE]; /* the news of it */
    bool gone_back;                     /* the file is not a later state of the one that was seen */
    bool renewed;                       /* the file has until_ms. Set by the work */
    const struct tw__store_seen *seen;  /* the numbers of the last look, and `changes` of our last commit */
    uint64_t changes;                   /* the same after this one. Set by the work */
    uint64_t until_ms;                  /* for tw_meta, if jobs are under way; 0: it has a good one */
    uint64_t now_ms;
    const struct tw__store_table *table;
    const volatile uint32_t *count;   /* of the commits to the file; NULL: it is not known */
    struct tw__store_commits commits; /* set by the work */
};

/* The work of the commit; a tw__store_work_fn with a struct tw__store_batch. */
int tw__store_claim(struct tw__store_db *db, void *batch);

/* The attempts of earlier runs, which have lapsed. */
struct tw__store_lapses {
    uint64_t count;
    struct tw__store_job *died; /* tasks that have lapsed too often: a list, which the caller frees */
};

/* A run that gets its number. */
struct tw__store_count {
    const struct tw__store_table *table; /* its jobs, if it has had another number */
    struct tw__store_seen seen;          /* the numbers of the file, with this one */
    uint64_t until_ms;                   /* of tw_meta */
    struct tw__store_lapses lapses;
};

/* Counts a run, gives its number to the tasks of its jobs, and ends the attempts of all earlier runs; a
 * tw__store_work_fn with a struct tw__store_count. After the commit tw__store_count_jobs() gives the number to
 * the jobs. */
int tw__store_count_run(struct tw__store_db *db, void *count);
void tw__store_count_jobs(const struct tw__store_table *table, uint64_t run);

/* Ends the attempts of all runs but this one: they lapse, or end if they are replaced. The lapses before, of a
 * transaction that was rolled back, are freed. The caller frees these, also after an error. Returns: 0, or an
 * error of SQLite. */
int tw__store_end_runs(struct tw__store_db *db, uint64_t run, struct tw__store_lapses *lapses);

/* The leases of programs that have run out. */
struct tw__store_leases {
    const struct tw__store_seen *seen; /* the numbers of the last look; NULL: of no matter */
    bool gone_back;                    /* the file is not a later state of that one, and no lease has ended */
    struct tw__store_lapses lapses;
};

/* Ends leases that have run out, the first ones, at most TW__TASK_PASSED_MAX; a tw__store_work_fn with a struct
 * tw__store_leases. The caller frees the lapses, also after an error. */
int tw__store_end_leases(struct tw__store_db *db, void *leases);

/* Mends the order after the clock was set back; a tw__store_work_fn. */
int tw__store_place_again(struct tw__store_db *db, void *arg);

/* Frees the jobs that the work has made. */
void tw__store_claim_undo(struct tw__store_batch *batch);

#endif
