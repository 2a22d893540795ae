/* SPDX-License-Identifier: MIT
 *
 * Statistics.
 */
#ifndef TW_SCHED_STATS_H
#define TW_SCHED_STATS_H

#include "internal.h"

/* Notes a call that started `late_ns` after it was due and took `run_ns`. The shard's lock is held. */
void tw__sched_stats_call(struct tw__sched_shard *shard, uint64_t late_ns, uint64_t run_ns);

#endif
