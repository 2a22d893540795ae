/* SPDX-License-Identifier: MIT
 *
 * A thread that files one task in a scheduler, and stays until it may leave.
 */
#ifndef TW_TESTS_SCHED_FILER_H
#define TW_TESTS_SCHED_FILER_H

#include "support.h"
#include "tests/support/eventually.h"

#include <src/sched/pool.h>

struct filer {
    struct tw_sched *sched;
    void (*around)(bool begins); /* NULL, or is called before and after the task is filed */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stepped;
    bool filed, may_leave;
    uint64_t id;
    int error;
};

static inline void step(struct filer *filer, bool *taken)
{
    pthread_mutex_lock(&filer->lock);
    *taken = true;
    pthread_cond_broadcast(&filer->stepped);
    pthread_mutex_unlock(&filer->lock);
}

/* Sleeps: a thousand threads that look again and again would keep the machine busy. */
static inline void await_step(struct filer *filer, const bool *taken,
                              void (*woken)(pthread_cond_t *cond, pthread_mutex_t *lock))
{
    pthread_mutex_lock(&filer->lock);
    while (!*taken)
        woken(&filer->stepped, &filer->lock);
    pthread_mutex_unlock(&filer->lock);
}

static inline void *file_one(void *arg)
{
    struct filer *filer = arg;
    if (filer->around != NULL)
        filer->around(true);
    filer->error = tw_sched_add_in(filer->sched, ms, log_call, NULL, &filer->id);
    if (filer->around != NULL)
        filer->around(false);
    step(filer, &filer->filed);
    await_step(filer, &filer->may_leave, woken_by_test);
    return NULL;
}

static inline void come(struct filer *filer, struct tw_sched *sched)
{
    pthread_attr_t small;
    filer->sched = sched;
    filer->filed = filer->may_leave = false;
    pthread_mutex_init(&filer->lock, NULL);
    pthread_cond_init(&filer->stepped, NULL);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    assert_int_equal(pthread_create(&filer->thread, &small, file_one, filer), 0);
    pthread_attr_destroy(&small);
    await_step(filer, &filer->filed, eventually_woken);
}

static inline void go(struct filer *filer)
{
    step(filer, &filer->may_leave);
    eventually_joined(filer->thread);
    pthread_cond_destroy(&filer->stepped);
    pthread_mutex_destroy(&filer->lock);
}

static inline uint32_t shard_of_this_thread(struct tw_sched *sched)
{
    uint64_t id;
    assert_int_equal(tw_sched_add_in(sched, ms, log_call, NULL, &id), 0);
    return tw__sched_id_shard(id);
}

#endif
