/* SPDX-License-Identifier: MIT
 *
 * The verbs have their functions in put.c and attempt.c, and the verbs of people have theirs here. An outcome
 * begins with a copy of the task, and each function changes it as the table says.
 *
 *     NONE --put--> FILED --take--> TAKEN --done--> NONE, or FILED for the next period
 *                    ^  ^             | |
 *                    |  +- fail, back-+ +--put, move--> REPLACED --any end--> FILED with attempt 0
 *                    |     lapse      |
 *                    +--replay-- BURIED <--the last failure, the last lapse
 *
 * A period that dies leaves its task alive: the outcome has two tasks then, and the home names the dead one
 * (tw__task_suffix). A target takes nothing. It accepts or refuses, and a refusal counts as an attempt.
 *
 * The lease of a REPLACED task is that of the old attempt, and next_ms is that of the new task. So next_ms is
 * never the end of a lease, and a task that is given back finds there when it was ready.
 */
#include "state.h"

#include <base/assert.h>

#include "attempt.h"
#include "outcome.h"
#include "put.h"

/* ---- looks ----------------------------------------------------------------------------------------------- */

enum tw_state tw__task_state(const struct tw__task *task, uint64_t now_ms)
{
    TW_ASSERT(task->stage != TW__TASK_NONE);
    if (tw__task_is_leased(task))
        return TW_STATE_LEASED;
    if (task->stage == TW__TASK_BURIED)
        return TW_STATE_DEAD;
    return task->next_ms <= now_ms ? TW_STATE_READY : TW_STATE_WAITING;
}

uint64_t tw__task_next(const struct tw__task *task)
{
    if (task->stage == TW__TASK_BURIED)
        return 0;
    return tw__task_is_leased(task) ? task->end_ms : task->next_ms;
}

bool tw__task_has_lapsed(const struct tw__task *task, uint64_t now_ms)
{
    return tw__task_is_leased(task) && task->end_ms <= now_ms;
}

/* ---- people ---------------------------------------------------------------------------------------------- */

static void cancel_task(struct tw__task_outcome *outcome, const struct tw__task *old)
{
    outcome->reply = old->stage == TW__TASK_NONE ? TW__TASK_MISSING
                     : tw__task_is_leased(old)   ? TW__TASK_AT_WORK
                                                 : TW__TASK_CANCELLED;
    tw__task_leave(outcome);
}

static void promote_task(struct tw__task_outcome *outcome, const struct tw__task *old, uint64_t now_ms)
{
    if (old->stage != TW__TASK_FILED || old->next_ms <= now_ms)
        return;
    tw__task_file(outcome, now_ms, now_ms);
    outcome->reply = TW__TASK_YES;
}

static void purge_task(struct tw__task_outcome *outcome, const struct tw__task *old)
{
    if (old->stage != TW__TASK_BURIED)
        return;
    tw__task_leave(outcome);
    outcome->reply = TW__TASK_YES;
}

/* ---- the table ------------------------------------------------------------------------------------------- */

static void change_as_people(const struct tw__task *task, const struct tw__task_call *call, uint64_t now_ms,
                             struct tw__task_outcome *outcome)
{
    switch (call->verb) {
    case TW__TASK_CANCEL:
        cancel_task(outcome, task);
        break;
    case TW__TASK_PROMOTE:
        promote_task(outcome, task, now_ms);
        break;
    case TW__TASK_REPLAY:
        if (task->stage == TW__TASK_BURIED)
            tw__task_place(outcome, task, call->timed ? call->at_ms : now_ms, now_ms);
        break;
    default:
        TW_ASSERT(call->verb == TW__TASK_PURGE);
        purge_task(outcome, task);
    }
}

/* Sets all members but those of a dead period, which there is none of. They would take a third of the time. */
static void begin_outcome(struct tw__task_outcome *outcome, const struct tw__task *task)
{
    outcome->reply = TW__TASK_NO;
    outcome->value_ms = outcome->filed_ms = 0;
    outcome->task = *task;
    outcome->filed = outcome->renewed = outcome->clears_error = outcome->clears_worker = outcome->fails = false;
    outcome->dead.stage = TW__TASK_NONE;
    outcome->tally = (struct tw__task_tally){0};
}

void tw__task_change(const struct tw__task *task, const struct tw__task_call *call, uint64_t now_ms,
                     struct tw__task_outcome *outcome)
{
    begin_outcome(outcome, task);
    switch (call->verb) {
    case TW__TASK_PUT:
        tw__task_put(task, call, now_ms, outcome);
        break;
    case TW__TASK_MOVE:
        tw__task_move(task, call, now_ms, outcome);
        break;
    case TW__TASK_TAKE:
        tw__task_take(task, call, now_ms, outcome);
        break;
    case TW__TASK_TOUCH:
    case TW__TASK_DONE:
    case TW__TASK_FAILED:
    case TW__TASK_DEAD:
    case TW__TASK_BACK:
        tw__task_answer(task, call, now_ms, outcome);
        break;
    case TW__TASK_LAPSE:
        tw__task_lapse(task, now_ms, outcome);
        break;
    case TW__TASK_DUE:
        tw__task_come_due(task, now_ms, outcome);
        break;
    case TW__TASK_DELIVERED:
        tw__task_deliver(task, now_ms, outcome);
        break;
    case TW__TASK_REFUSED:
        tw__task_refuse(task, call, now_ms, outcome);
        break;
    default:
        change_as_people(task, call, now_ms, outcome);
    }
}
