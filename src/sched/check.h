/* SPDX-License-Identifier: MIT
 *
 * The invariants S1 to S6, which the essay in sched.c states.
 */
#ifndef TW_SCHED_CHECK_H
#define TW_SCHED_CHECK_H

#include "internal.h"

/* Checks a shard, whose lock is held. Cost: O(tasks that there is memory for + slots of the wheel).
 * Returns: NULL, or the first invariant that does not hold, as a static string. */
const char *tw__sched_shard_check(const struct tw__sched_shard *shard);

/* The same, for an assertion: says on standard error which invariant is broken. Returns whether none is. */
bool tw__sched_expect_sound(const struct tw__sched_shard *shard);

/* Checks all shards, one after the other. No lock is held. Returns: as above. */
const char *tw__sched_check(const struct tw_sched *sched);

#endif
