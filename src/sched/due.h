/* SPDX-License-Identifier: MIT
 *
 * Due tasks: from the wheels to the ready lists.
 */
#ifndef TW_SCHED_DUE_H
#define TW_SCHED_DUE_H

#include "internal.h"

/* The first ticks on which shards have work for the timer thread. */
struct tw__sched_firsts {
    uint32_t shards; /* that were made at that moment */
    uint64_t of[TW__SCHED_SHARDS];
    uint64_t all; /* the first of them */
};

/* Asks all shards for their first ticks. The caller holds no lock. */
void tw__sched_due_first(const struct tw_sched *sched, struct tw__sched_firsts *first);
/* Sets each shard's `wake`. Returns the tick until which all shards let the timer thread sleep. */
uint64_t tw__sched_due_asleep(struct tw_sched *sched);
/* Notes in each shard that the timer thread is awake, so that nobody wakes it. */
void tw__sched_due_awake(struct tw_sched *sched);

/* Moves tasks that are due on `tick` or before to the ready list: TW__SCHED_COLLECT units of the wheel's work.
 * The caller holds the shard's lock. Returns whether the wheel may have more of them. */
bool tw__sched_due_some(struct tw__sched_shard *shard, uint64_t tick);
/* Moves some of these tasks in every shard, so that all wheels stand on the tick. */
void tw__sched_due_begin(struct tw_sched *sched, uint64_t tick);
/* Moves all of these tasks in every shard, and tells the workers. */
void tw__sched_due_all(struct tw_sched *sched, uint64_t tick);

#endif
