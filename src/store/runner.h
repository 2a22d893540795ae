/* SPDX-License-Identifier: MIT
 *
 * The runner: one thread that loads, claims and hands out the tasks of a store, and the workers that call the
 * handlers. run.c begins and ends it.
 */
#ifndef TW_STORE_RUNNER_H
#define TW_STORE_RUNNER_H

#include "check.h"
#include "claim.h"
#include "pool.h"
#include "internal.h"
#include "lock.h"
#include "pace.h"
#include "watch.h"

#include <base/histogram.h>

enum { TW__STORE_TOLD = 16 };

struct tw__store_runner {
    struct tw_store *store;
    struct tw_store_run_options options; /* without zeroes: the defaults are filled in */
    pthread_t thread;
    /* The runner's thread alone: */
    struct tw__store_lock file_lock; /* so that no other process runs the tasks */
    char queues[TW__STORE_RUN_TEXT]; /* the names of the queues that have handlers; empty: all have one */
    struct tw__store_window window;  /* its connection is guarded by the lock of `check` */
    struct tw__store_watch watch;
    struct tw__store_table table;
    struct tw__store_batch batch;
    struct tw__store_job *answered; /* jobs whose answer is not written yet: a list */
    struct tw__store_lapses lapses; /* of earlier runs, or of leases of programs, which are not told yet */
    uint64_t told[TW__STORE_TOLD];  /* the last damaged rows that were told; 0: none */
    size_t told_count;
    uint64_t until_ms; /* that the file has: until then others hold the run for alive */
    uint64_t bytes;    /* of the jobs under way */
    struct tw__store_pace pace;
    bool must_look;           /* whether or not SQLite says that the file has changed */
    bool dropping;            /* the last claims were too late, and so may be the next ones */
    uint32_t series;          /* of the last commit (check.c) */
    uint64_t retry_ns;        /* after an error: nothing is tried before this time */
    uint64_t log_ns, log_max; /* when the log is looked at; how many bytes it may have */
    int result;               /* of the last round */
    bool last_try;            /* the run was stopped, and the last answers are being written */
    int lost;                 /* the run has ended by itself, with this error; 0: it has not */
    bool broken;              /* an error was told, and its end was not */
    /* All threads: */
    struct tw__store_pool pool;
    struct tw__store_check check;
    pthread_mutex_t lock; /* guards the members below */
    struct tw_store_info stats;
    uint64_t late[TW__HISTOGRAM_BUCKETS]; /* milliseconds */
};

/* Tries to lock the file, and begins a run. Returns: 0; TW_EBUSY if another process runs the tasks; or an
 * error. The message is the window's. */
int tw__store_runner_begin(struct tw__store_runner *runner);

/* The body of the thread, with a struct tw__store_runner. */
void *tw__store_runner_main(void *runner);

#endif
