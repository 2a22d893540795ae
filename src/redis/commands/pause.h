/* SPDX-License-Identifier: MIT
 *
 * Pauses of queues.
 */
#ifndef TW_REDIS_PAUSE_H
#define TW_REDIS_PAUSE_H

#include "server/shared.h"

/* Begins or ends the pause of a queue. `queue` is NULL if the key does not exist: then the pause makes a queue.
 * Requires: the queue is not in this state. */
void tw__redis_pause_set(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue *queue, bool on);

#endif
