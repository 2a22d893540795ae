/* SPDX-License-Identifier: MIT
 *
 * Looking for some of a schedule's tasks.
 */
#ifndef TW_REDIS_LOOK_H
#define TW_REDIS_LOOK_H

#include "state.h"

/* Which tasks of a schedule are looked for. */
struct tw__redis_wanted {
    uint64_t from, to;            /* from <= due <= to */
    struct tw__redis_task *after; /* if not NULL: in the order of delivery behind this one */
    uint64_t drain; /* if not 0: no held tasks, and none whose route refused this TW.DRAIN or a later one */
};

/* Up to `limit` of the tasks that are wanted, in the order of delivery, into `task`. Returns how many. Cost: a
 * look at the tasks of all schedules that are due before the last one, or at all tasks of this schedule,
 * whichever are fewer. */
size_t tw__redis_look_wanted(const struct tw__redis_schedule *schedule, const struct tw__redis_wanted *wanted,
                             uint64_t now_ms, size_t limit, struct tw__redis_task **task);
/* The same of the tasks with from <= due <= to. */
size_t tw__redis_look_earliest(const struct tw__redis_schedule *schedule, uint64_t from, uint64_t to,
                               uint64_t now_ms, size_t limit, struct tw__redis_task **task);

/* Counts a schedule's tasks that are due up to now_ms + step * count, by step. Requires: neither is 0. */
void tw__redis_look_forecast(const struct tw__redis_schedule *schedule, uint64_t now_ms, uint64_t step,
                             size_t count, uint64_t *counts);

/* All tasks of a schedule in order, in a block of memory that the caller frees. NULL: there are none. */
struct tw__redis_task **tw__redis_look_sorted(const struct tw__redis_schedule *schedule);

#endif
