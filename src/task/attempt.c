/* SPDX-License-Identifier: MIT
 *
 * A failure is number n = attempt - lapses, because the attempts before it have failed or lapsed. So n selects
 * the wait, and the task is dead once n reaches the tries. A lapse takes the wait of the failure that
 * did not come, and leaves n as it was. Example: a task whose process dies three times in a row waits for the
 * first wait each time.
 */
#include "attempt.h"

#include <base/assert.h>

#include "ends.h"
#include "outcome.h"

/* ---- the beginning --------------------------------------------------------------------------------------- */

/* Drops or skips the periods that get no call of their own, and fixes how many the call stands for. Returns
 * whether there is a call now. */
static bool take_turn(struct tw__task_outcome *outcome, uint64_t now_ms)
{
    struct tw__task *task = &outcome->task;
    struct tw__task_period period = {task->due_ms, task->next_ms, task->every_ms, task->max_late_ms,
                                     task->missed};
    struct tw__task_turn turn = tw__task_turn(&period, now_ms);
    outcome->tally.dropped += turn.dropped;
    outcome->tally.skipped += turn.skipped;
    outcome->reply = turn.calls ? TW__TASK_YES : TW__TASK_LATE;
    task->missed_periods = turn.missed_periods;
    if (turn.ends) {
        tw__task_leave(outcome);
    } else if (turn.due != task->due_ms) {
        task->due_ms = turn.due;
        tw__task_file(outcome, turn.due, now_ms);
    }
    return turn.calls;
}

void tw__task_take(const struct tw__task *old, const struct tw__task_call *call, uint64_t now_ms,
                   struct tw__task_outcome *outcome)
{
    struct tw__task *task = &outcome->task;
    if (old->stage != TW__TASK_FILED || old->has_target || old->next_ms > now_ms)
        return;
    TW_ASSERT(call->token != 0);
    if (old->attempt == 0 && !take_turn(outcome, now_ms))
        return;
    outcome->reply = TW__TASK_YES;
    outcome->filed = false;
    task->stage = TW__TASK_TAKEN;
    task->attempt++;
    task->token = call->token;
    task->lease_ms = call->lease_ms;
    task->end_ms = call->lease_ms > 0 ? now_ms + call->lease_ms : TW_FOREVER;
    outcome->value_ms = task->end_ms;
}

/* ---- the end --------------------------------------------------------------------------------------------- */

static uint64_t retry_at(const struct tw__task *task, uint64_t end_ms)
{
    return tw__task_retry_at(&task->retry, tw__task_failure(task->attempt, task->lapses), task->token, end_ms);
}

/* The attempt of a replaced task has ended: the new task waits, and its lateness counts from here at least. */
static void end_replaced(struct tw__task_outcome *outcome, uint64_t end_ms)
{
    uint64_t next_ms = outcome->task.next_ms;
    outcome->reply = TW__TASK_YES;
    outcome->clears_worker = true;
    tw__task_void_lease(&outcome->task);
    tw__task_file(outcome, next_ms > end_ms ? next_ms : end_ms, end_ms);
}

static void end_done(struct tw__task_outcome *outcome, const struct tw__task *old, uint64_t now_ms)
{
    outcome->tally.done++;
    if (old->stage == TW__TASK_REPLACED)
        end_replaced(outcome, now_ms);
    else
        tw__task_end_call(outcome, now_ms);
    outcome->reply = TW__TASK_YES;
}

static void end_unsuccessful(struct tw__task_outcome *outcome, const struct tw__task *old,
                             const struct tw__task_call *call, uint64_t now_ms)
{
    outcome->tally.failed++;
    if (old->stage == TW__TASK_REPLACED) {
        end_replaced(outcome, now_ms);
    } else if (call->verb == TW__TASK_DEAD ||
               tw__task_failure_kills(old->attempt, old->lapses, old->retry.tries)) {
        tw__task_bury(outcome, now_ms);
    } else {
        tw__task_void_lease(&outcome->task);
        tw__task_retry(outcome, call->timed ? call->at_ms : retry_at(old, now_ms), now_ms);
    }
}

/* Without a time, the task has its `next` and its place in the order as before it was taken. If the clock was
 * set back to a time before that `next`, the task is ready all the same. */
static void end_given_back(struct tw__task_outcome *outcome, const struct tw__task *old,
                           const struct tw__task_call *call, uint64_t now_ms)
{
    struct tw__task *task = &outcome->task;
    outcome->tally.back++;
    if (old->stage == TW__TASK_REPLACED) {
        end_replaced(outcome, now_ms);
        return;
    }
    tw__task_void_lease(task);
    task->attempt--;
    if (task->attempt == 0)
        task->missed_periods = 0; /* the next take fixes it anew */
    uint64_t ready_ms = old->next_ms < now_ms ? old->next_ms : now_ms;
    tw__task_file(outcome, call->timed ? call->at_ms : ready_ms, now_ms);
    outcome->filed = call->timed;
    outcome->clears_worker = true;
    outcome->reply = TW__TASK_YES;
}

static void extend(struct tw__task_outcome *outcome, const struct tw__task_call *call, uint64_t now_ms)
{
    outcome->reply = TW__TASK_YES;
    outcome->task.lease_ms = call->lease_ms;
    outcome->value_ms = outcome->task.end_ms = now_ms + call->lease_ms;
}

void tw__task_answer(const struct tw__task *old, const struct tw__task_call *call, uint64_t now_ms,
                     struct tw__task_outcome *outcome)
{
    bool late = old->stage == TW__TASK_FILED && call->verb == TW__TASK_DONE;
    if (call->token == 0 || call->token != old->token || !(late || tw__task_is_leased(old)))
        return;
    switch (call->verb) {
    case TW__TASK_TOUCH:
        extend(outcome, call, now_ms);
        break;
    case TW__TASK_DONE:
        end_done(outcome, old, now_ms);
        break;
    case TW__TASK_BACK:
        end_given_back(outcome, old, call, now_ms);
        break;
    default:
        end_unsuccessful(outcome, old, call, now_ms);
    }
}

/* A run that has ended leaves leases without an end of their own: they end now. */
void tw__task_lapse(const struct tw__task *old, uint64_t now_ms, struct tw__task_outcome *outcome)
{
    uint64_t end_ms = old->end_ms < now_ms ? old->end_ms : now_ms;
    if (!tw__task_is_leased(old))
        return;
    outcome->tally.lapsed++;
    if (old->stage == TW__TASK_REPLACED) {
        end_replaced(outcome, end_ms);
        return;
    }
    outcome->task.lapses++;
    if (tw__task_lapse_kills(outcome->task.lapses)) {
        tw__task_bury(outcome, end_ms);
        return;
    }
    tw__task_void_lease(&outcome->task);
    outcome->task.token = old->token; /* good for a late acknowledgement */
    tw__task_retry(outcome, retry_at(old, end_ms), end_ms);
}

/* ---- targets --------------------------------------------------------------------------------------------- */

void tw__task_come_due(const struct tw__task *old, uint64_t now_ms, struct tw__task_outcome *outcome)
{
    TW_ASSERT(old->stage == TW__TASK_FILED && old->has_target && old->next_ms <= now_ms);
    outcome->reply = TW__TASK_YES;
    if (old->attempt == 0)
        take_turn(outcome, now_ms);
}

void tw__task_deliver(const struct tw__task *old, uint64_t now_ms, struct tw__task_outcome *outcome)
{
    TW_ASSERT(old->stage == TW__TASK_FILED && old->has_target);
    (void)old;
    outcome->tally.delivered++;
    tw__task_end_call(outcome, now_ms);
    outcome->reply = TW__TASK_YES;
}

void tw__task_refuse(const struct tw__task *old, const struct tw__task_call *call, uint64_t now_ms,
                     struct tw__task_outcome *outcome)
{
    TW_ASSERT(old->stage == TW__TASK_FILED && old->has_target);
    outcome->task.attempt++;
    if (tw__task_failure_kills(outcome->task.attempt, 0, old->retry.tries))
        tw__task_bury(outcome, now_ms);
    else
        tw__task_retry(outcome, call->at_ms, now_ms);
}
