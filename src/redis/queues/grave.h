/* SPDX-License-Identifier: MIT
 *
 * Removed queues, until their tasks are freed.
 */
#ifndef TW_REDIS_GRAVE_H
#define TW_REDIS_GRAVE_H

#include "state.h"

/* Hands a queue over to be reaped. Requires: the queue is detached. Threads: any. */
void tw__redis_grave_bury(struct tw__redis_queue *queue);
/* Frees up to `limit` tasks of buried queues, and the buried queues that have no tasks left. Returns the
 * number of freed tasks, plus one for each queue that it looked at. */
uint64_t tw__redis_grave_reap(struct tw__redis_queues *queues, uint64_t limit);
/* Frees all buried queues. */
void tw__redis_grave_reap_all(struct tw__redis_queues *queues);
/* Whether there are detached queues, buried or not. */
bool tw__redis_grave_reaping(const struct tw__redis_queues *queues);

#endif
