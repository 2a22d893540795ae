/* SPDX-License-Identifier: MIT */
#include "outcome.h"

#include "ends.h"

void tw__task_leave(struct tw__task_outcome *outcome)
{
    outcome->task.stage = TW__TASK_NONE;
    outcome->filed = false;
}

void tw__task_file(struct tw__task_outcome *outcome, uint64_t next_ms, uint64_t now_ms)
{
    outcome->task.stage = TW__TASK_FILED;
    outcome->task.next_ms = next_ms < TW__TASK_TIME_MAX ? next_ms : TW__TASK_TIME_MAX;
    outcome->value_ms = outcome->task.next_ms;
    outcome->filed = true;
    outcome->filed_ms = now_ms;
}

void tw__task_void_lease(struct tw__task *task)
{
    task->token = task->end_ms = 0;
    task->lease_ms = task->old_attempt = 0;
}

void tw__task_begin_anew(struct tw__task_outcome *outcome)
{
    outcome->task.attempt = outcome->task.lapses = 0;
    outcome->task.missed_periods = 0;
    outcome->clears_error = outcome->clears_worker = true;
}

/* Lets the new task stand behind the attempt under way. */
static void stand_behind(struct tw__task_outcome *outcome, const struct tw__task *old)
{
    struct tw__task *task = &outcome->task;
    task->stage = TW__TASK_REPLACED;
    task->token = old->token;
    task->end_ms = old->end_ms;
    task->lease_ms = old->lease_ms;
    task->old_attempt = old->stage == TW__TASK_TAKEN ? old->attempt : old->old_attempt;
    outcome->filed = outcome->clears_worker = false;
}

void tw__task_place(struct tw__task_outcome *outcome, const struct tw__task *old, uint64_t due_ms,
                    uint64_t now_ms)
{
    outcome->reply = TW__TASK_YES;
    outcome->task.due_ms = due_ms < TW__TASK_TIME_MAX ? due_ms : TW__TASK_TIME_MAX;
    tw__task_begin_anew(outcome);
    tw__task_void_lease(&outcome->task);
    tw__task_file(outcome, due_ms, now_ms);
    if (tw__task_is_leased(old))
        stand_behind(outcome, old);
}

void tw__task_end_call(struct tw__task_outcome *outcome, uint64_t now_ms)
{
    struct tw__task *task = &outcome->task;
    uint64_t left = tw__task_calls_left(task->every_ms, task->times),
             due_ms = tw__task_next_call(task->due_ms, task->missed_periods, task->every_ms, left);
    outcome->tally.coalesced += task->missed_periods;
    tw__task_void_lease(task);
    if (due_ms == TW_FOREVER) {
        tw__task_leave(outcome);
        return;
    }
    task->times = left;
    task->due_ms = due_ms;
    tw__task_begin_anew(outcome);
    tw__task_file(outcome, due_ms, now_ms);
}

void tw__task_bury(struct tw__task_outcome *outcome, uint64_t now_ms)
{
    struct tw__task dead = outcome->task;
    tw__task_void_lease(&dead);
    dead.stage = TW__TASK_BURIED;
    dead.every_ms = 0;
    dead.times = 1;
    dead.missed_periods = 0;
    if (outcome->task.every_ms == 0) {
        outcome->task = dead;
    } else {
        outcome->dead = dead;
        tw__task_end_call(outcome, now_ms);
    }
    outcome->reply = TW__TASK_DIED;
    outcome->value_ms = 0;
    outcome->fails = true;
    outcome->tally.died++;
}

void tw__task_retry(struct tw__task_outcome *outcome, uint64_t next_ms, uint64_t now_ms)
{
    outcome->reply = TW__TASK_YES;
    outcome->fails = true;
    tw__task_file(outcome, next_ms, now_ms);
}
