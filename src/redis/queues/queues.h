/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of all queues, and removed queues until their tasks are freed.
 */
#ifndef TW_REDIS_QUEUES_H
#define TW_REDIS_QUEUES_H

#include "state.h"

/* Makes the state without any queue, at these times of the wall clock and of a monotonic clock. Routes and
 * queues keep strings of the server's; `forget` frees such a string. Returns NULL if there is no memory
 * for the wheels. */
struct tw__redis_queues *tw__redis_queues_new(const struct tw__redis_memory *memory,
                                              void (*forget)(void *string), uint64_t now_ms,
                                              uint64_t monotonic_ms);
/* Frees the state and the removed queues. Requires: all queues have been handed to the reaper. */
void tw__redis_queues_free(struct tw__redis_queues *queues);

/* ---- removed queues -------------------------------------------------------------------------------------- */

/* Hands a queue to the reaper. Requires: the queue is detached. Threads: any. */
void tw__redis_reaper_add(struct tw__redis_queue *queue);
/* Frees up to `limit` tasks of these queues, and the queues that have no tasks left. Returns the number of
 * freed tasks, plus one for each queue that it looked at. */
uint64_t tw__redis_reaper_run(struct tw__redis_queues *queues, uint64_t limit);
/* Frees all these queues. */
void tw__redis_reaper_run_all(struct tw__redis_queues *queues);
/* Whether there are detached queues, handed over or not. */
bool tw__redis_reaper_busy(const struct tw__redis_queues *queues);

#endif
