/* SPDX-License-Identifier: MIT
 *
 * Makes a scheduler spread its keys over its shards, as it does when several threads file tasks.
 */
#ifndef TW_TESTS_SCHED_SPREAD_H
#define TW_TESTS_SCHED_SPREAD_H

#include "outcome.h"
#include "tests/support/eventually.h"

#include <pthread.h>
#include <stdlib.h>
#include <tickwheel/sched.h>

static inline void never_called(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    abort();
}

static inline void *file_and_cancel(void *sched)
{
    uint64_t id;
    if (tw_sched_add_at(sched, UINT64_MAX - 1, never_called, NULL, &id) != 0 ||
        tw_sched_cancel(sched, id) != TW_CANCEL_CANCELLED)
        abort();
    return NULL;
}

/* Two threads file a task each, and cancel it. */
static inline void spread_keys(struct tw_sched *sched)
{
    pthread_t other;
    file_and_cancel(sched);
    if (pthread_create(&other, NULL, file_and_cancel, sched) != 0)
        abort();
    eventually_joined(other);
}

#endif
