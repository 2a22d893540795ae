/* SPDX-License-Identifier: MIT
 *
 * An attempt: its beginning, its end, and a target's answer in place of a worker's.
 */
#ifndef TW_TASK_ATTEMPT_H
#define TW_TASK_ATTEMPT_H

#include "task.h"

void tw__task_take(const struct tw__task *old, const struct tw__task_call *call, uint64_t now_ms,
                   struct tw__task_outcome *outcome);
/* Touch, done, fail, kill and back. */
void tw__task_answer(const struct tw__task *old, const struct tw__task_call *call, uint64_t now_ms,
                     struct tw__task_outcome *outcome);
void tw__task_lapse(const struct tw__task *old, uint64_t now_ms, struct tw__task_outcome *outcome);

/* Of a task with a target. Each requires: it is filed. */
void tw__task_come_due(const struct tw__task *old, uint64_t now_ms, struct tw__task_outcome *outcome);
void tw__task_deliver(const struct tw__task *old, uint64_t now_ms, struct tw__task_outcome *outcome);
void tw__task_refuse(const struct tw__task *old, const struct tw__task_call *call, uint64_t now_ms,
                     struct tw__task_outcome *outcome);

#endif
