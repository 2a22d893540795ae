/* SPDX-License-Identifier: MIT
 *
 * The worker pool: jobs on their way between the runner and the workers, to a worker, and back with an answer.
 */
#ifndef TW_STORE_POOL_H
#define TW_STORE_POOL_H

#include "check.h"
#include "watch.h"

/* What the runner wants to be woken for while it has claimed no more jobs. */
enum tw__store_more {
    TW__STORE_NO_MORE,         /* there may be none */
    TW__STORE_MORE_AHEAD,      /* no job waits for a worker any more */
    TW__STORE_MORE_FOR_WORKERS /* a worker has nothing to do */
};

struct tw__store_pool {
    struct tw_sched *sched; /* its workers call the handlers */
    uint32_t workers;
    struct tw__store_check *check; /* set before the first job is given */
    /* Jobs that wait for a worker: a ring of pointers. The runner moves the tail, the workers move the head. */
    _Atomic(struct tw__store_job *) *ring;
    uint64_t mask;
    atomic_uint_least64_t head, tail;
    atomic_uint active;              /* workers that take jobs out of the ring, or are about to */
    atomic_uint_least64_t waited_ns; /* the longest wait of a job since the runner looked at this number */
    atomic_uint_least64_t took_ns;   /* the same: the longest call of a handler that has returned */
    atomic_bool stale;               /* a job could not begin: the file has to be looked at */
    /* Jobs with an answer, the last one first. */
    _Atomic(struct tw__store_job *) answered;
    atomic_uint answering; /* threads that bring an answer at this moment */
    /* How the runner is woken. */
    const struct tw__store_watch *watch;
    atomic_bool asleep;   /* it waits, or is about to */
    atomic_bool stopping; /* no handler is called any more: jobs are given back */
    _Atomic(enum tw__store_more) more;
};

/* Makes the threads. At most `jobs` jobs are under way. Returns: 0, TW_ENOMEM or TW_ESYSTEM. */
int tw__store_pool_init(struct tw__store_pool *pool, const struct tw__store_watch *watch, uint32_t workers,
                        uint32_t jobs);

/* Waits for the threads. Requires: no job is under way. */
void tw__store_pool_fini(struct tw__store_pool *pool);

/* Gives a job to the workers, which tw__store_pool_call() then calls. */
void tw__store_pool_give(struct tw__store_pool *pool, struct tw__store_job *job);
void tw__store_pool_call(struct tw__store_pool *pool);

/* How many jobs wait for a worker, and how many workers have nothing to do. */
uint64_t tw__store_pool_waiting(const struct tw__store_pool *pool);
uint64_t tw__store_pool_idle(const struct tw__store_pool *pool);

/* When the job was given that waits for a worker longest; UINT64_MAX: none waits. The runner's thread alone. */
uint64_t tw__store_pool_oldest(const struct tw__store_pool *pool);

/* If a job waits for a worker that was given at this time or before, takes all back that wait: they get the
 * answer TW_ANSWER_BACK. The runner's thread alone. Returns whether it did so. */
bool tw__store_pool_take_back(struct tw__store_pool *pool, uint64_t given_ns);

/* Notes that a job has an answer, and wakes the runner; a tw__store_answered_fn with a struct tw__store_pool.
 * From any thread. */
void tw__store_pool_answer(void *pool, struct tw__store_job *job);

/* Takes the jobs that have an answer, in the order of their answers. */
struct tw__store_job *tw__store_pool_answers(struct tw__store_pool *pool);

/* The runner is about to wait. Returns whether it may: an answer (with `answers`) or the event of `more` wakes
 * it from now on. */
bool tw__store_pool_sleep(struct tw__store_pool *pool, bool answers, enum tw__store_more more);
void tw__store_pool_awake(struct tw__store_pool *pool);

#endif
