/* SPDX-License-Identifier: MIT
 *
 * Removed schedules, until their tasks are freed.
 */
#ifndef TW_REDIS_GRAVE_H
#define TW_REDIS_GRAVE_H

#include "state.h"

/* Hands a schedule over to be reaped. Requires: the schedule is detached. Threads: any. */
void tw__redis_grave_bury(struct tw__redis_schedule *schedule);
/* Frees up to `limit` tasks of buried schedules, and the buried schedules that have no tasks left. Returns the
 * number of freed tasks, plus one for each schedule that it looked at. */
uint64_t tw__redis_grave_reap(struct tw__redis_schedules *schedules, uint64_t limit);
/* Frees all buried schedules. */
void tw__redis_grave_reap_all(struct tw__redis_schedules *schedules);
/* Whether there are detached schedules, buried or not. */
bool tw__redis_grave_reaping(const struct tw__redis_schedules *schedules);

#endif
