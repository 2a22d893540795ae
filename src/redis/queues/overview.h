/* SPDX-License-Identifier: MIT
 *
 * All queues at once.
 */
#ifndef TW_REDIS_OVERVIEW_H
#define TW_REDIS_OVERVIEW_H

#include "state.h"

/* Counts the tasks of all queues that are due up to now_ms + step * count, by step. A task that waits in a
 * line counts in the first step. Returns whether the counts are exact; if not, they are estimated from a
 * sample. Requires: neither `step` nor `count` is 0. */
bool tw__redis_overview_forecast(struct tw__redis_queues *queues, uint64_t now_ms, uint64_t step, size_t count,
                                 uint64_t *counts);

/* Writes up to `limit` of the attached queues with the most tasks to `largest`, the largest first. Returns
 * how many. */
size_t tw__redis_overview_largest(const struct tw__redis_queues *queues, const struct tw__redis_queue **largest,
                                  size_t limit);

/* The ready tasks of a queue, without those that became due since the last tick, which nobody has counted. Held
 * tasks are not ready. */
uint64_t tw__redis_overview_ready(const struct tw__redis_queue *queue);

/* Writes up to `limit` of the attached queues that are paused to `paused`: first those with the most ready
 * tasks. Returns how many. It looks at 20,000 paused queues at most. */
size_t tw__redis_overview_paused(const struct tw__redis_queues *queues, const struct tw__redis_queue **paused,
                                 size_t limit);

/* Returns since when the ready task that has been ready longest has been so; TW_NEVER if there is none. It
 * looks at the first 20,000 queues. */
uint64_t tw__redis_overview_oldest_ready(const struct tw__redis_queues *queues);

/* Returns the number of overdue tasks of all attached queues that are not paused, or a lower bound if more
 * than 20,000 timers had to be looked at. *oldest is the earliest due time among them, or TW_NEVER if there
 * are none. */
uint64_t tw__redis_overview_overdue(const struct tw__redis_queues *queues, uint64_t now_ms, uint64_t *oldest);

#endif
