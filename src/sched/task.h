/* SPDX-License-Identifier: MIT
 *
 * The functions that calls by id and calls by key share. The caller holds the shard's lock, unless a comment
 * says otherwise.
 */
#ifndef TW_SCHED_TASK_H
#define TW_SCHED_TASK_H

#include "internal.h"

/* Cancels a task in any state. *value receives the function and argument that nothing uses any more; the
 * caller releases them after it has released the lock. */
enum tw_cancel tw__sched_task_cancel(struct tw__sched_shard *shard, struct tw__sched_task *task,
                                     struct tw__sched_value *value);
/* Moves a task in any state. */
int tw__sched_task_move(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns);
/* Notes that a RUNNING task is to be filed when its callback has returned.
 * Returns: 0; TW_ERANGE; TW_ENOMEM; TW_EFULL. */
int tw__sched_task_again(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns);
/* Describes the task that a caller has looked up, in the caller's struct of `size` bytes; `task` may be NULL.
 * Returns: 0; TW_EGONE: no such task, or its last call is under way. */
int tw__sched_task_look(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                        struct tw_task *seen, size_t size);

/* Checks the period and the policy of a repeating task. No lock is needed. Returns: 0; TW_EINVAL. */
int tw__sched_every_check(const struct tw_sched *sched, const struct tw_every *every);
/* The time at which the first call is due, if the task is filed at the time now_ns. No lock is needed. */
uint64_t tw__sched_every_first(const struct tw_every *every, uint64_t now_ns);
void tw__sched_details_every(struct tw__sched_details *details, const struct tw_every *every, uint64_t now_ns);

#endif
