/* SPDX-License-Identifier: MIT
 *
 * The shards of a scheduler: how many there are, and which of them a thread and a key file into.
 */
#ifndef TW_SCHED_SHARD_H
#define TW_SCHED_SHARD_H

#include "internal.h"

/* Makes the first shard of a scheduler that no other thread knows yet. Returns: 0; TW_ENOMEM. */
int tw__sched_shards_begin(struct tw_sched *sched);
/* From here on no shard is made. The caller holds no lock. */
void tw__sched_shards_close(struct tw_sched *sched);
/* Frees all shards. The caller is the last that uses the scheduler. */
void tw__sched_shards_end(struct tw_sched *sched);

/* The shard into which this thread files its tasks. The caller holds no lock. */
struct tw__sched_shard *tw__sched_home(struct tw_sched *sched);
/* The shard in which the keys with a tag live. The caller holds no lock. */
struct tw__sched_shard *tw__sched_home_of_key(struct tw_sched *sched, uint32_t tag);
/* The shard with a number, which is made if it is the next one. Requires: number <= the shards that were made.
 * Returns NULL if it cannot be made. The caller holds no lock. */
struct tw__sched_shard *tw__sched_shard_at(struct tw_sched *sched, uint32_t number);

#endif
