/* SPDX-License-Identifier: MIT
 *
 * The order of READY tasks across shards.
 */
#ifndef TW_SCHED_ORDER_H
#define TW_SCHED_ORDER_H

#include "internal.h"

/* The tick of the first task of a list of READY tasks; TW_NEVER if there is none. The caller holds the lock of
 * the list's shard. */
static inline uint64_t tw__sched_order_first(const struct tw__link *list)
{
    return tw__list_empty(list) ? TW_NEVER : tw__sched_task_linked(list->next)->tick;
}

/* Writes one of the ticks that other threads read. A write of the same tick would cost them a cache miss. */
static inline void tw__sched_order_note(_Atomic uint64_t *at, uint64_t tick)
{
    if (atomic_load_explicit(at, memory_order_relaxed) != tick)
        atomic_store_explicit(at, tick, memory_order_release);
}

/* Publishes the first ticks of a shard before its lock is released (S7). In a stopped shard no task starts. */
static inline void tw__sched_order_publish(struct tw__sched_shard *shard)
{
    bool stopped = shard->stopped;
    tw__sched_order_note(&shard->ready_tick, stopped ? TW_NEVER : tw__sched_order_first(&shard->ready));
    tw__sched_order_note(&shard->sent_tick, stopped ? TW_NEVER : tw__sched_order_first(&shard->sent));
}

/* Lets the workers start tasks up to a tick. */
void tw__sched_order_open(struct tw_sched *sched, uint64_t tick);

/* A turn: a shard, and the tick up to which its tasks may start before those of any other shard. */
struct tw__sched_turn {
    struct tw__sched_shard *shard;
    uint64_t until;
};

/* Finds the shard with the earliest READY task: for a worker in the ready lists, up to the horizon, and
 * otherwise in the sent lists. Shards whose tasks have the same tick take turns. Returns false if there is no
 * such task. The caller holds no lock. */
bool tw__sched_order_worker(struct tw_sched *sched, struct tw__sched_turn *turn);
bool tw__sched_order_sent(struct tw_sched *sched, struct tw__sched_turn *turn);

/* The first task of a list, if it may start in this turn, or NULL. The caller holds the shard's lock. */
struct tw__sched_task *tw__sched_order_next(const struct tw__sched_turn *turn, const struct tw__link *list);

#endif
