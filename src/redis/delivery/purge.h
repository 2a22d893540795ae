/* SPDX-License-Identifier: MIT
 *
 * Dead tasks that may not stay: by tickwheel.dead-max and tickwheel.dead-ms, and periods of a series that has
 * died more than TW__REDIS_DEATHS_MAX times.
 */
#ifndef TW_REDIS_PURGE_H
#define TW_REDIS_PURGE_H

#include "keyspace/batch.h"

/* Removes a dead task, and counts it. Adds what it does to `log`. */
void tw__redis_purge_task(struct tw__redis_queue *queue, struct tw__redis_task *task,
                          struct tw__redis_buffer *log);

/* Removes the tasks that died first, while the queue, or the series of the task that died last, has more
 * dead tasks than it may have. Adds what it does to `log`. Returns whether it has removed any. To be called
 * when a task has died. */
bool tw__redis_purge_excess(struct tw__redis_queue *queue, struct tw__redis_buffer *log);

/* The same in a batch, which will tell of the death, and of the tasks that were removed. */
void tw__redis_purge_after_death(struct tw__redis_batch *batch, struct tw__redis_queue *queue);

/* Whether there may be dead tasks that have stayed too long, or that are too many. The answer false is
 * certain. */
bool tw__redis_purge_any(uint64_t now_ms);

/* Removes such dead tasks, in each queue in the order of their deaths: at most `tasks`, and until the
 * monotonic clock shows `until_us`. Returns whether there may be more that can be removed at once. */
bool tw__redis_purge_some(struct tw__redis_batch *batch, uint64_t now_ms, uint32_t tasks, uint64_t until_us);

#endif
