/* SPDX-License-Identifier: MIT
 *
 * TW.DRAIN: delivers tasks regardless of their due times.
 */
#ifndef TW_REDIS_DRAIN_H
#define TW_REDIS_DRAIN_H

#include "server/shared.h"

/* To be called when the module is loaded. */
void tw__redis_drain_start(void);

enum tw__redis_drained {
    TW__REDIS_DRAINED, /* *delivered is their number; 0: no task can be delivered */
    /* time ran out, and all tasks so far were refused: the next call goes on after them */
    TW__REDIS_DRAINED_NONE_YET,
    TW__REDIS_DRAIN_FORBIDDEN /* the caller may not write a target: none delivered, error sent */
};

/* Delivers up to `limit` of a queue's tasks, for about 20 ms. Requires: no batch is open. */
enum tw__redis_drained tw__redis_drain(RedisModuleCtx *ctx, struct tw__redis_queue *queue, uint64_t limit,
                                       uint64_t *delivered);

#endif
