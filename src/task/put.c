/* SPDX-License-Identifier: MIT
 *
 * Put, send and move. keepdue.h has the rules of KEEPDUE.
 */
#include "put.h"

#include "conditions.h"
#include "ends.h"
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

/* Lets the new task stand behind the attempt under way. */
static void stand_behind(struct tw__task_outcome *outcome, const struct tw__task *old, uint64_t due_ms,
                         uint64_t now_ms)
{
    tw__task_place(outcome, old, due_ms, now_ms);
    outcome->tally.replaced++;
}

/* Returns false if the times that are given count, as without KEEPDUE. */
static bool keep_due(struct tw__task_outcome *outcome, const struct tw__task *old,
                     const struct tw__task_call *call, uint64_t now_ms)
{
    bool both_repeat = old->every_ms > 0 && outcome->task.every_ms > 0;
    uint64_t next_ms = tw__task_next_period(old->due_ms, old->missed_periods, old->every_ms);
    switch (tw__task_keepdue(old->stage, both_repeat, call->elsewhere)) {
    case TW__TASK_KEEPDUE_NEXT_PERIOD:
        if (next_ms == TW_FOREVER)
            return false; /* the series ends with this attempt, and has no time to keep */
        stand_behind(outcome, old, next_ms, now_ms);
        return true;
    case TW__TASK_KEEPDUE_NOW:
        stand_behind(outcome, old, now_ms, now_ms);
        return true;
    case TW__TASK_KEEPDUE_IN_PLACE:
        renew_options(outcome, old);
        return true;
    case TW__TASK_KEEPDUE_SAME_TIMES:
        renew_options(outcome, old);
        tw__task_begin_anew(outcome);
        tw__task_void_lease(&outcome->task);
        tw__task_file(outcome, old->next_ms, now_ms);
        return true;
    default:
        return false;
    }
}

void tw__task_put(const struct tw__task *old, const struct tw__task_call *call, uint64_t now_ms,
                  struct tw__task_outcome *outcome)
{
    bool there = old->stage != TW__TASK_NONE;
    if (!tw__task_conditions_met(call->conditions, there, old->due_ms, call->at_ms))
        return;
    outcome->task = *call->options;
    outcome->renewed = true;
    if (call->conditions & TW__TASK_KEEPDUE && keep_due(outcome, old, call, now_ms))
        return;
    tw__task_place(outcome, old, call->at_ms, now_ms);
    outcome->tally.replaced += there;
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
