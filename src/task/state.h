/* SPDX-License-Identifier: MIT
 *
 * The table of the contract (docs/contract.md) as one function: a task, a verb and the time give an outcome.
 * The head of state.c has the picture.
 */
#ifndef TW_TASK_STATE_H
#define TW_TASK_STATE_H

#include "task.h"

/* The state that a look shows. */
enum tw_state tw__task_state(const struct tw__task *task, uint64_t now_ms);

/* The `next` that a look shows; 0 of a dead task. */
uint64_t tw__task_next(const struct tw__task *task);

/* Whether a lease has ended, so that TW__TASK_LAPSE has to come before any other verb. */
bool tw__task_has_lapsed(const struct tw__task *task, uint64_t now_ms);

/* Makes the call. The outcome of a call that changes nothing has the task as it was.
 * Requires: the numbers are in their ranges, and the conditions fit. A lease that has ended has lapsed before,
 * unless the home lets the verbs find it until its own timer has come (docs/contract.md). */
void tw__task_change(const struct tw__task *task, const struct tw__task_call *call, uint64_t now_ms,
                     struct tw__task_outcome *outcome);

#endif
