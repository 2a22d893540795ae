/* SPDX-License-Identifier: MIT
 *
 * Parts of outcomes that several verbs share. Each function changes the task of the outcome, which began as a
 * copy of the stored one.
 */
#ifndef TW_TASK_OUTCOME_H
#define TW_TASK_OUTCOME_H

#include "task.h"

/* The task leaves. */
void tw__task_leave(struct tw__task_outcome *outcome);

/* Files the task for a time. `now_ms` is the time of the filing. */
void tw__task_file(struct tw__task_outcome *outcome, uint64_t next_ms, uint64_t now_ms);

/* Ends the lease: nothing of the attempt stays. */
void tw__task_void_lease(struct tw__task *task);

/* Lets the attempts begin anew: those of a new task, or of the next period. */
void tw__task_begin_anew(struct tw__task_outcome *outcome);

/* Gives the task a new due time. It waits for that time, or stands behind the attempt that `old` has under
 * way. */
void tw__task_place(struct tw__task_outcome *outcome, const struct tw__task *old, uint64_t due_ms,
                    uint64_t now_ms);

/* The call has ended, by done, by a delivery or by death: the task waits for its next period, or leaves. */
void tw__task_end_call(struct tw__task_outcome *outcome, uint64_t now_ms);

/* The call dies: the task or, if it repeats, the period. */
void tw__task_bury(struct tw__task_outcome *outcome, uint64_t now_ms);

/* The attempt has failed, and the next one comes at `next_ms`. */
void tw__task_retry(struct tw__task_outcome *outcome, uint64_t next_ms, uint64_t now_ms);

#endif
