/* SPDX-License-Identifier: MIT
 *
 * From a due task to an entry of its Stream, or an element of its List.
 */
#ifndef TW_REDIS_DELIVER_H
#define TW_REDIS_DELIVER_H

#include "call.h"
#include "queues/place.h"

/* tw__redis_deliver_begin() opens a batch of deliveries. tw__redis_deliver_finish() replicates which tasks
 * have left their queues, sends keyspace notifications, removes the queues that are empty, and closes
 * the batch. */
void tw__redis_deliver_begin(struct tw__redis_batch *batch, RedisModuleCtx *ctx);
void tw__redis_deliver_finish(struct tw__redis_batch *batch);

/* Delivers a due task that was taken out and is filed nowhere. Returns TW__REDIS_DEFER_NONE: the task is then
 * gone, filed again, held by its route, stopped, ready or dead. Otherwise returns why the server can deliver
 * nothing at all now; the task is then still filed nowhere, and *task its block, which may be another one. */
enum tw__redis_defer tw__redis_deliver(struct tw__redis_batch *batch, struct tw__redis_task **task,
                                       enum tw__redis_taken taken, uint64_t now_ms);

#endif
