/* SPDX-License-Identifier: MIT
 *
 * Whether a claimed job may begin: its task is still there, and neither its queue nor the file keeps it back.
 */
#ifndef TW_STORE_CHECK_H
#define TW_STORE_CHECK_H

#include "job.h"

#include <pthread.h>

/* The commits to the file, as SQLite counts them. */
struct tw__store_commits {
    uint32_t before, after; /* a commit of ours */
    bool alone;             /* it has no work of other threads */
};

struct tw__store_check {
    pthread_mutex_t lock;   /* guards the window's connection */
    struct tw__store_db db; /* that connection, with statements of its own */
    int error;              /* of a job that could not be looked up; 0: none. Under the lock too */
    char message[TW_STORE_MESSAGE_SIZE];
    const volatile uint32_t *count; /* of the commits to the file, by whomever; NULL: SQLite does not tell */
    atomic_uint_least64_t known; /* the series of our commits that goes on, and the count after the last one */
    /* The runner's thread alone: */
    uint32_t since;  /* the count after the last commit of somebody else */
    uint32_t looked; /* the count before the last look at the file */
};

void tw__store_check_init(struct tw__store_check *check);
void tw__store_check_fini(struct tw__store_check *check);

/* Begins to check jobs. `db` is the window's connection, which has read the file. */
void tw__store_check_begin(struct tw__store_check *check, const struct tw__store_db *db);

/* Returns how many commits there were; 0: SQLite does not tell. */
uint32_t tw__store_check_count(const struct tw__store_check *check);

/* Notes a commit of the runner, before its jobs are handed out. Returns the series for these jobs. */
uint32_t tw__store_check_note(struct tw__store_check *check, const struct tw__store_commits *commits);

/* Returns whether a job may begin at this time of the monotonic clock: nobody has cancelled, moved or replaced
 * its task, its queue is not paused, the file is not marked as restored, and no other run has begun. If the
 * file cannot be read, or is not at its path any more, it may not. From any thread. */
bool tw__store_check_job(struct tw__store_check *check, const struct tw__store_job *job, uint64_t now_ns);

/* Takes the error of a job that could not be looked up since the last call. Requires: the lock is held.
 * Returns: 0, or the error, and then `db` has its message. */
int tw__store_check_error(struct tw__store_check *check, struct tw__store_db *db);

#endif
