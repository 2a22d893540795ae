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

/* Writes up to `limit` of the attached queues that are paused to `paused`: first those with the most ready
 * tasks, as far as ticks have seen. Returns how many. It looks at 20,000 paused queues at most. */
size_t tw__redis_overview_paused(const struct tw__redis_queues *queues, const struct tw__redis_queue **paused,
                                 size_t limit);

/* Writes how many tasks of each of these queues are ready, whether a tick has seen them or not. The numbers are
 * lower bounds if more than 20,000 timers had to be looked at. Requires: no queue is in the list twice, and
 * there are at most TW__REDIS_LISTED_MAX. */
enum { TW__REDIS_LISTED_MAX = 100 };
void tw__redis_overview_ready(const struct tw__redis_queues *queues, uint64_t now_ms,
                              const struct tw__redis_queue *const *list, size_t count, uint64_t *ready);

/* The ready tasks of all attached queues. A task of a queue that is not paused is late while it has neither
 * been delivered nor offered to workers. */
struct tw__redis_ready {
    uint64_t count, late;
    uint64_t since, late_since; /* the first time from which one of them has been so; TW_NEVER: there is none */
};

/* Counts these tasks. The numbers are lower bounds if more than 20,000 timers had to be looked at. For the
 * two times it looks at the first 20,000 queues, and at the first 1,000 tasks of each line. */
void tw__redis_overview_all_ready(const struct tw__redis_queues *queues, uint64_t now_ms,
                                  struct tw__redis_ready *ready);

/* Returns since when the task of a queue that has been ready longest has been so, as far as ticks have seen; or
 * TW_NEVER. It looks at the first 1,000 tasks of each line. */
uint64_t tw__redis_overview_ready_since(const struct tw__redis_queue *queue, uint64_t now_ms);

#endif
