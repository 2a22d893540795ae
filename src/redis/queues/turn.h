/* SPDX-License-Identifier: MIT
 *
 * The turn of a task that is taken or delivered: what its policy for missed periods and its limit of lateness
 * make of the periods that have passed (task/periods.h).
 */
#ifndef TW_REDIS_TURN_H
#define TW_REDIS_TURN_H

#include <task/periods.h>

#include "state.h"

/* Decides about a task whose time has come. A call that has begun goes on with its due time and its periods,
 * however late it is: a worker has had the task, or its target has refused it. The tries of a task that was
 * held behind a refused one are not its own, and begin nothing. If the clock was set back since
 * the task became ready, it counts as standing at that time. Requires: the task is neither leased nor dead. */
struct tw__task_turn tw__redis_turn(const struct tw__redis_queues *queues, const struct tw__redis_task *task,
                                    uint64_t now_ms);

#endif
