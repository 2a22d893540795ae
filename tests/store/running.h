/* SPDX-License-Identifier: MIT
 *
 * Support for tests of a store that runs: a handler that writes down its calls and answers as it is told.
 */
#ifndef TESTS_STORE_RUNNING_H
#define TESTS_STORE_RUNNING_H

#include "support.h"

#include <pthread.h>
#include <tests/support/eventually.h>

/* The calls of a handler. */
struct calls {
    pthread_mutex_t lock;
    pthread_cond_t unblocked;
    char text[16384]; /* "id/attempt id/attempt ..." */
    int count;
    enum tw_answer answer; /* for the first `answers` calls; 0: for all */
    int answers;           /* later calls answer TW_ANSWER_DONE */
    const char *error;     /* for tw_job_fail(); NULL: none */
    uint64_t retry_ms;     /* for tw_job_retry_at(); 0: none */
    bool block;            /* calls wait until this is false */
    int under_way, most;   /* calls at the same time: now, and at most */
    struct tw_job last;    /* its pointers are not valid */
    char last_error[256], last_payload[256];
    struct tw_job *kept[2048]; /* with TW_ANSWER_LATER */
    int kept_count;
    uint64_t called_ms[64]; /* when: the first calls */
};

void calls_init(struct calls *calls);

/* The handler. */
enum tw_answer note_call(void *calls, struct tw_job *job);

/* How many calls there were, and how many of them answer later. */
int calls_of(struct calls *calls);
int kept_of(struct calls *calls);

/* Waits until there were at least n calls, and returns their text. */
const char *wait_for_calls(struct calls *calls, int n);

/* Ends `block`. */
void unblock(struct calls *calls);

/* Starts the store with this handler for queue "q". */
void start_with(struct tw_store *store, struct calls *calls);

struct tw_store_info stats_of(struct tw_store *store);

/* How many jobs the runner has claimed. After runner_idle() of clock.h no other one can follow by itself. */
uint64_t attempts(struct tw_store *store);

/* The attempts in the statistics that are done or have failed. wait_for_answers() waits until there are so
 * many. */
uint64_t answers(struct tw_store *store);
void wait_for_answers(struct tw_store *store, uint64_t n);

#endif
