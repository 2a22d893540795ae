/* SPDX-License-Identifier: MIT
 *
 * A batch of deliveries.
 */
#ifndef TW_REDIS_BATCH_H
#define TW_REDIS_BATCH_H

#include "shared.h"

/* The schedule has part in the batch. */
void tw__batch_touch(struct tw__schedule *schedule);

/* A task has been delivered, or given up: it leaves, or is filed for its next time. */
void tw__batch_go_on(struct tw__schedule *schedule, struct tw__task *task, uint64_t now_ms);

/* A task that can never be delivered leaves for good, though it repeats. */
void tw__batch_end_task(struct tw__schedule *schedule, struct tw__task *task);

/* LATE DROP: passes over what is too late. Returns whether the task has been dealt with. */
bool tw__batch_drop_late(struct tw__schedule *schedule, struct tw__task *task, uint64_t late_ms,
                         uint64_t now_ms);

/* From here on a batch is open; one at a time. */
void tw__batch_begin(RedisModuleCtx *ctx);

/* Ends it: replicates what left the schedules, tells of it, removes the empty ones. */
void tw__batch_finish(void);

/* Whether one is open: then the server itself, or a handler of another module, calls us. */
bool tw__batch_open(void);

/* The server will be called for a task; and has been: returns whether the task is unchanged. */
void tw__batch_watch(struct tw__task *task);
bool tw__batch_same(const struct tw__task *task);

/* Whether since tw__batch_watch() any schedule may have been looked at, changed or removed. */
bool tw__batch_disturbed(void);

/* Sees to it that nobody finds a task that has been delivered, nor puts one in its place before it has left: to be called
 * before a schedule is looked at or changed by anybody but the batch. */
void tw__batch_settle(void);

/* A schedule is to be removed: the batch has nothing to do with it any more. */
void tw__batch_forget(struct tw__schedule *schedule);

#endif
