/* SPDX-License-Identifier: MIT
 *
 * What calls by id and calls by key have in common. The shard's lock is held, but where a comment says
 * otherwise.
 */
#ifndef TW_SCHED_TASK_H
#define TW_SCHED_TASK_H

#include "internal.h"

/* Cancels a task in any state. *value is what nothing uses any more, to be released when the lock is not
 * held. */
enum tw_cancelled tw__sched_task_cancel(struct tw__sched_shard *shard, struct tw__sched_task *task,
                                        struct tw__sched_value *value);
/* Moves a task in any state. */
int tw__sched_task_move(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns);
/* Has a RUNNING task filed when its callback has returned. Returns: 0; TW_ERANGE; TW_ENOMEM; TW_EFULL. */
int tw__sched_task_again(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns);
/* Describes a task, or NULL, that somebody asked for. Returns: 0; TW_EGONE: nothing will come of it. */
int tw__sched_task_look(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                        struct tw_task *seen);

/* Checks an interval. No lock is needed. Returns: 0; TW_EINVAL. */
int tw__sched_every_check(const struct tw_sched *sched, const struct tw_every *every);
/* When its first call is due. No lock is needed. */
uint64_t tw__sched_every_first(const struct tw_sched *sched, const struct tw_every *every);
void tw__sched_details_every(struct tw__sched_details *details, const struct tw_every *every);

#endif
