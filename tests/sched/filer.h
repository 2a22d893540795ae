/* SPDX-License-Identifier: MIT
 *
 * A thread that files one task in a scheduler, and stays until it may leave.
 */
#ifndef TW_TESTS_SCHED_FILER_H
#define TW_TESTS_SCHED_FILER_H

#include "support.h"

#include <pthread.h>
#include <semaphore.h>
#include <src/sched/pool.h>

struct filer {
    struct tw_sched *sched;
    void (*around)(bool begins); /* NULL, or is called before and after the task is filed */
    pthread_t thread;
    sem_t filed, may_leave;
    uint64_t id;
    int error;
};

static inline void *file_one(void *arg)
{
    struct filer *filer = arg;
    if (filer->around != NULL)
        filer->around(true);
    filer->error = tw_sched_after(filer->sched, ms, log_call, NULL, &filer->id);
    if (filer->around != NULL)
        filer->around(false);
    sem_post(&filer->filed);
    sem_wait(&filer->may_leave);
    return NULL;
}

static inline void come(struct filer *filer, struct tw_sched *sched)
{
    pthread_attr_t small;
    filer->sched = sched;
    sem_init(&filer->filed, 0, 0);
    sem_init(&filer->may_leave, 0, 0);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    assert_int_equal(pthread_create(&filer->thread, &small, file_one, filer), 0);
    pthread_attr_destroy(&small);
    sem_wait(&filer->filed);
}

static inline void go(struct filer *filer)
{
    sem_post(&filer->may_leave);
    pthread_join(filer->thread, NULL);
    sem_destroy(&filer->filed);
    sem_destroy(&filer->may_leave);
}

static inline uint32_t shard_of_this_thread(struct tw_sched *sched)
{
    uint64_t id;
    assert_int_equal(tw_sched_after(sched, ms, log_call, NULL, &id), 0);
    return tw__sched_id_shard(id);
}

#endif
