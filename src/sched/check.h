/* SPDX-License-Identifier: MIT
 *
 * The invariants S1 to S7, which the essay in sched.c states.
 */
#ifndef TW_SCHED_CHECK_H
#define TW_SCHED_CHECK_H

#include "internal.h"

/* Checks a shard. The caller holds its lock. Cost: O(tasks that the shard has memory for + slots of the
 * wheel). Returns: NULL, or the first invariant that does not hold, as a static string. */
const char *tw__sched_shard_check(const struct tw__sched_shard *shard);

/* Checks a shard for an assertion: writes the broken invariant to standard error. Returns true if none is
 * broken. */
bool tw__sched_expect_sound(const struct tw__sched_shard *shard);

/* Checks all shards, one after the other. The caller holds no lock. Returns: as tw__sched_shard_check(). */
const char *tw__sched_check(const struct tw_sched *sched);

#endif
