/* SPDX-License-Identifier: MIT
 *
 * From a due task to an entry of its Stream, or an element of its List.
 */
#ifndef TW_REDIS_DELIVER_H
#define TW_REDIS_DELIVER_H

#include "call.h"
#include "schedules/place.h"

/* Whether deliveries may be made at all: TW__REDIS_DEFER_NONE, or why not. */
enum tw__redis_defer tw__redis_deliver_allowed(RedisModuleCtx *ctx);

/* Begins a batch of deliveries, and finishes it: logs which tasks have left their schedules, tells of it, and
 * removes the schedules that are empty. */
void tw__redis_deliver_begin(struct tw__redis_batch *batch, RedisModuleCtx *ctx);
void tw__redis_deliver_finish(struct tw__redis_batch *batch);

/* Delivers a due task that was taken out, and is filed nowhere; afterwards it is gone, filed again, or held by
 * its route. Returns TW__REDIS_DEFER_NONE, or why nothing at all can be delivered now: then the task is filed
 * nowhere still. */
enum tw__redis_defer tw__redis_deliver(struct tw__redis_batch *batch, struct tw__redis_task *task,
                                       enum tw__redis_taken taken, uint64_t now_ms);

/* Delivers a task whatever its time, for TW.DRAIN: if the target takes it (`why` is TW__REDIS_DEFER_NONE), it
 * is gone or filed again; if not, it stays where it is filed, and the try does not count. Requires: it is
 * filed. */
enum tw__redis_meanwhile tw__redis_deliver_early(struct tw__redis_delivery *delivery);

#endif
