/* SPDX-License-Identifier: MIT
 *
 * A put or a send with KEEPDUE, whose other conditions are met.
 */
#ifndef TW_REDIS_KEEP_H
#define TW_REDIS_KEEP_H

#include <task/keepdue.h>

#include "state.h"

/* What becomes of the new task, and its due time. */
struct tw__redis_keep {
    enum tw__task_keepdue how;
    uint64_t due;
};

/* Decides about a task with this plan and `every`, for which the call gives the time `due`. `old` has its id;
 * NULL: there is none. */
struct tw__redis_keep tw__redis_keep_decide(const struct tw__redis_queues *queues,
                                            const struct tw__redis_task *old, const struct tw__redis_plan *plan,
                                            uint64_t every, uint64_t due, uint64_t now_ms);

/* Whether `old`, which may be NULL, can be renewed in place with this route. */
bool tw__redis_keep_fits(const struct tw__redis_queue *queue, const struct tw__redis_task *old,
                         const struct tw__redis_route *route);

/* IN_PLACE and SAME_TIMES: lets the new task take the place of `old`, as was decided. Takes out and frees what
 * is not needed any more. Requires: the task is in no queue, and filed nowhere; its hash is `hash`, and its
 * route belongs to the queue. */
void tw__redis_keep_put(struct tw__redis_queue *queue, struct tw__redis_task *task,
                        struct tw__redis_route *route, uint64_t hash, struct tw__redis_task *old,
                        enum tw__task_keepdue how, uint64_t now_ms);

#endif
