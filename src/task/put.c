/* SPDX-License-Identifier: MIT
 *
 * Put, send and move. keepdue.h has the rules of KEEPDUE.
 */
#include "put.h"

#include "conditions.h"
#include "keepdue.h"
#include "outcome.h"

/* Lets the new options count for the stored task, whose times and attempts stay. */
static void renew_options(struct tw__task_outcome *outcome, const struct tw__task *old)
{
    struct tw__task options = outcome->task;
    outcome->reply = TW__TASK_YES;
    outcome->task = *old;
    outcome->task.has_target = options.has_target;
    outcome->task.every_ms = options.every_ms;
    outcome->task.times = options.times;
    outcome->task.missed = options.missed;
    outcome->task.max_late_ms = options.max_late_ms;
    outcome->task.retry = options.retry;
    outcome->task.missed_periods =
        tw__task_missed_periods_renewed(old->missed_periods, old->every_ms, options.every_ms);
}

void tw__task_put(const struct tw__task *old, const struct tw__task_call *call, uint64_t now_ms,
                  struct tw__task_outcome *outcome)
{
    struct tw__task_keep keep = {TW__TASK_KEEPDUE_FILES, call->at_ms};
    bool there = old->stage != TW__TASK_NONE;
    if (!tw__task_conditions_met(call->conditions, there, old->due_ms, call->at_ms))
        return;
    outcome->task = *call->options;
    outcome->renewed = true;
    if (call->conditions & TW__TASK_KEEPDUE)
        keep = tw__task_keep(old, outcome->task.every_ms, call->elsewhere, call->at_ms, now_ms);
    if (keep.how == TW__TASK_KEEPDUE_FILES) {
        tw__task_place(outcome, old, keep.due_ms, now_ms);
        outcome->tally.replaced += there;
        return;
    }
    renew_options(outcome, old);
    if (keep.how == TW__TASK_KEEPDUE_SAME_TIMES) {
        tw__task_begin_anew(outcome);
        tw__task_void_lease(&outcome->task);
        tw__task_file(outcome, old->next_ms, now_ms);
    }
}

void tw__task_move(const struct tw__task *old, const struct tw__task_call *call, uint64_t now_ms,
                   struct tw__task_outcome *outcome)
{
    if (old->stage == TW__TASK_NONE)
        outcome->reply = TW__TASK_MISSING;
    else if (old->stage == TW__TASK_BURIED)
        outcome->reply = TW__TASK_IS_DEAD;
    else if (tw__task_conditions_met(call->conditions, true, old->due_ms, call->at_ms))
        tw__task_place(outcome, old, call->at_ms, now_ms);
}
