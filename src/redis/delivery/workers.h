/* SPDX-License-Identifier: MIT
 *
 * Workers that wait in TW.TAKE: the queues whose ready tasks they have not seen.
 */
#ifndef TW_REDIS_WORKERS_H
#define TW_REDIS_WORKERS_H

#include "server/shared.h"

/* Notes that a queue has a ready task, or that its ready tasks may be given out again. */
void tw__redis_workers_wake(struct tw__redis_queue *queue);

/* The same for all queues that have ready tasks. Cost: a look at each queue. */
void tw__redis_workers_wake_all(void);

/* Tells the server which queues have ready tasks, if it may give them out. The server then serves the
 * clients that are blocked on these keys, in the order in which they were blocked. */
void tw__redis_workers_signal(RedisModuleCtx *ctx);

/* Blocks the client of a TW.TAKE until one of the keys has a ready task; 0 ms: without an end. */
void tw__redis_workers_block(RedisModuleCtx *ctx, RedisModuleString **keys, int count, long long ms);

#endif
