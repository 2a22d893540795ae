/* SPDX-License-Identifier: MIT
 *
 * The lock of a shard.
 */
#ifndef TW_SCHED_LOCK_H
#define TW_SCHED_LOCK_H

#include "internal.h"

static inline void tw__sched_lock(struct tw__sched_shard *shard)
{
    pthread_mutex_lock(&shard->lock);
}

static inline void tw__sched_unlock(struct tw__sched_shard *shard)
{
    pthread_mutex_unlock(&shard->lock);
}

#endif
