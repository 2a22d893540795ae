/* SPDX-License-Identifier: MIT
 *
 * Statistics.
 */
#ifndef TW_SCHED_STATS_H
#define TW_SCHED_STATS_H

#include "internal.h"

/* Counts a call that started `late_ns` after its due time and ran for `run_ns`. The caller holds the shard's
 * lock. */
void tw__sched_stats_call(struct tw__sched_shard *shard, uint64_t late_ns, uint64_t run_ns);

#endif
