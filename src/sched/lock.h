/* SPDX-License-Identifier: MIT
 *
 * The lock of a shard.
 */
#ifndef TW_SCHED_LOCK_H
#define TW_SCHED_LOCK_H

#include "check.h"
#include "order.h"

static inline void tw__sched_lock(struct tw__sched_shard *shard)
{
    int error = pthread_mutex_lock(&shard->lock);
    TW_ASSERT(error == 0); /* EDEADLK: a memory hook or a signal handler made the call, and must not */
    (void)error;
}

/* With TW_DEBUG 2 checks the invariants of the shard. A check is due after every n-th change if the shard has
 * n chunks of tasks, so after every change of a small shard. */
static inline bool tw__sched_sound(struct tw__sched_shard *shard)
{
    if (TW_DEBUG <= 1 || ++shard->unchecked < shard->lines[TW__SCHED_PLAIN].chunk_count +
                                                  shard->lines[TW__SCHED_KEYED].chunk_count)
        return true;
    shard->unchecked = 0;
    return tw__sched_expect_sound(shard);
}

static inline void tw__sched_unlock(struct tw__sched_shard *shard)
{
    tw__sched_order_publish(shard);
    TW_ASSERT(tw__sched_sound(shard));
    pthread_mutex_unlock(&shard->lock);
}

#endif
