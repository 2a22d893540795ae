/* SPDX-License-Identifier: MIT
 *
 * A batch of deliveries: which tasks leave their schedules, which are filed again, and how the log and the
 * replicas come to know.
 */
#ifndef TW_REDIS_BATCH_H
#define TW_REDIS_BATCH_H

#include "shared.h"

enum { TW__REDIS_BATCH_LEAVING = 8 };

/* A batch lies on the stack of the tick, or on that of TW.DRAIN. While it is open tw__redis_shared.batch leads
 * to it, for those whom the server calls in the middle of a delivery. */
struct tw__redis_batch {
    RedisModuleCtx *ctx;
    struct tw__redis_schedule *touched; /* the schedules that have part in it, linked by their `touched` */
    uint32_t settled;                   /* how often others were about to look at the schedules */
    uint32_t leaving_count;
    /* Tasks that have been delivered and are in their schedules still, so that what taking them out needs is
     * fetched while others are delivered. */
    struct tw__redis_leaving {
        struct tw__redis_schedule *schedule;
        struct tw__redis_task *task;
        uint64_t hash;
    } leaving[TW__REDIS_BATCH_LEAVING];
};

/* Opens a batch. Requires: none is open. */
void tw__redis_batch_begin(struct tw__redis_batch *batch, RedisModuleCtx *ctx);

/* A name that has to be told of: a schedule was there that tasks have left. */
struct tw__redis_told {
    struct tw__redis_told *following;
    RedisModuleString *name;
    int db;
};

/* Logs which tasks have left, and has all schedules leave the batch. Returns the names of the schedules that
 * tasks have left; the caller frees them. It returns names, as a handler that is told of one may remove any
 * schedule. */
struct tw__redis_told *tw__redis_batch_release(struct tw__redis_batch *batch);

/* Closes a batch. Requires: no schedule has part in it any more. */
void tw__redis_batch_end(struct tw__redis_batch *batch);

/* The schedule has part in the batch. */
void tw__redis_batch_touch(struct tw__redis_batch *batch, struct tw__redis_schedule *schedule);

/* A task leaves its schedule for good. Requires: it is filed nowhere. */
void tw__redis_batch_leave(struct tw__redis_batch *batch, struct tw__redis_schedule *schedule,
                           struct tw__redis_task *task);

/* A task is due again at `due`, `times` times; unless that is never, or past the end of time: then it leaves.
 * Requires: it is filed nowhere. */
void tw__redis_batch_rearm(struct tw__redis_batch *batch, struct tw__redis_schedule *schedule,
                           struct tw__redis_task *task, uint64_t due, uint64_t times, uint64_t now_ms);

/* A schedule will be removed: the open batch, if any, has nothing to do with it any more. */
void tw__redis_batch_forget(struct tw__redis_schedule *schedule);

/* Somebody is about to look at the schedules, or to change them, in the middle of a delivery: the tasks that
 * have been delivered leave, in the log too. */
void tw__redis_batch_settle_open(struct tw__redis_batch *batch);

/* The same if a batch is open. keys.c calls it for all who come to a schedule by its key, or to all
 * schedules. */
static inline void tw__redis_batch_settle(void)
{
    if (tw__redis_shared.batch != NULL)
        tw__redis_batch_settle_open(tw__redis_shared.batch);
}

#endif
