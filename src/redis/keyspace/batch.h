/* SPDX-License-Identifier: MIT
 *
 * A batch of deliveries. It collects which tasks leave their queues and which tasks are filed again, and
 * writes both to the AOF and to the replicas.
 */
#ifndef TW_REDIS_BATCH_H
#define TW_REDIS_BATCH_H

#include "server/shared.h"

enum { TW__REDIS_BATCH_LEAVING = 8 };

/* A batch lives on the stack of the tick. While it is open, tw__redis_shared.batch points to it, so that
 * callbacks that the server runs in the middle of a delivery find it. */
struct tw__redis_batch {
    RedisModuleCtx *ctx;
    struct tw__redis_queue *touched; /* the queues in this batch, linked by their `touched` */
    uint32_t settled;                /* how often others were about to look at the queues */
    uint32_t leaving_count;
    /* Delivered tasks that are still in their queues. Their removal waits a little, so that the memory it
     * touches is prefetched while other tasks are delivered. */
    struct tw__redis_leaving {
        struct tw__redis_queue *queue;
        struct tw__redis_task *task;
        uint64_t hash;
    } leaving[TW__REDIS_BATCH_LEAVING];
};

/* Opens a batch. Requires: none is open. */
void tw__redis_batch_begin(struct tw__redis_batch *batch, RedisModuleCtx *ctx);

/* What has happened to the tasks of a queue, each with a keyspace notification of its own. CHANGED has
 * none: only clients that WATCH the key have to know. */
enum {
    TW__REDIS_TELL_DELIVERED = 1,
    TW__REDIS_TELL_READY = 2,
    TW__REDIS_TELL_DEAD = 4,
    TW__REDIS_TELL_PURGED = 8,
    TW__REDIS_TELL_CHANGED = 16
};

/* The name of a key for which keyspace notifications are due. When the batch was released, the value of the
 * key was a queue to which this had happened. */
struct tw__redis_told {
    struct tw__redis_told *following;
    RedisModuleString *name;
    int db;
    uint8_t tells;
};

/* Replicates what has happened, and takes all queues out of the batch. Returns the names of the queues
 * to which something has happened; the caller frees them. The result has names instead of pointers, because a
 * handler that is notified of one queue may remove any other. */
struct tw__redis_told *tw__redis_batch_release(struct tw__redis_batch *batch);

/* Closes a batch. Requires: no queue is in the batch any more. */
void tw__redis_batch_end(struct tw__redis_batch *batch);

/* Puts a queue into the batch, if it is not there yet. */
void tw__redis_batch_touch(struct tw__redis_batch *batch, struct tw__redis_queue *queue);

/* The task leaves its queue for good. Requires: the task is filed nowhere. */
void tw__redis_batch_leave(struct tw__redis_batch *batch, struct tw__redis_queue *queue,
                           struct tw__redis_task *task);

/* Files a repeating task again, due at `due` and with `times` deliveries left, at least one. Requires: the task
 * is filed nowhere. */
void tw__redis_batch_rearm(struct tw__redis_batch *batch, struct tw__redis_queue *queue,
                           struct tw__redis_task *task, uint64_t due, uint64_t times, uint64_t now_ms);

/* Puts a queue into the batch, if it is not there yet, and returns the buffer for changes of its tasks,
 * which the batch will replicate. */
struct tw__redis_buffer *tw__redis_batch_log(struct tw__redis_batch *batch, struct tw__redis_queue *queue);

/* Puts a queue into the batch, and notes what has happened to it: one of TW__REDIS_TELL_.... */
void tw__redis_batch_tell(struct tw__redis_batch *batch, struct tw__redis_queue *queue, uint8_t what);

/* Takes a queue that will be detached out of the open batch, if there is one. */
void tw__redis_batch_forget(struct tw__redis_queue *queue);

/* Removes the delivered tasks from their queues, and replicates that. To be called in the middle of a
 * delivery, before anybody else looks at the queues or changes them. */
void tw__redis_batch_settle_open(struct tw__redis_batch *batch);

/* The same if a batch is open. keys.c calls it for every caller that reaches a queue by its key, or
 * reaches all queues. */
static inline void tw__redis_batch_settle(void)
{
    if (tw__redis_shared.batch != NULL)
        tw__redis_batch_settle_open(tw__redis_shared.batch);
}

#endif
