/* SPDX-License-Identifier: MIT
 *
 * From a due task to an entry of its Stream, or an element of its List.
 */
#ifndef TW_REDIS_DELIVER_H
#define TW_REDIS_DELIVER_H

#include "batch.h"

/* Delivers a task that is filed nowhere; afterwards it is gone, filed again, or held by its route.
 * Returns TW__DEFER_NONE, or why nothing at all can be delivered now: then the task is filed nowhere still. */
enum tw__defer tw__deliver(RedisModuleCtx *ctx, struct tw__task *task, uint64_t now_ms);

enum tw__drained {
    TW__DRAINED,          /* *delivered says how many; 0: none can be */
    TW__DRAINED_NONE_YET, /* the time was over while each was refused: the next call goes on behind these */
    TW__DRAIN_FORBIDDEN /* the caller may not write the target of one; nothing was delivered, the error has been sent */
};

/* Delivers up to `limit` of a schedule's tasks whatever their time, for about 20 ms. */
enum tw__drained tw__deliver_now(RedisModuleCtx *ctx, struct tw__schedule *schedule, uint64_t limit,
                                 uint64_t *delivered);

/* Whether deliveries may be made at all, and if not, why. */
enum tw__defer tw__deliver_allowed(RedisModuleCtx *ctx);

#endif
