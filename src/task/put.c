/* SPDX-License-Identifier: MIT
 *
 * A put with KEEPDUE looks at the stored task alone, and asks the clock only where nothing else can tell a
 * time. So it does not matter whether the task has become ready meanwhile.
 *
 *     stored                          times            place in the order
 *     filed                           stay             stays
 *     filed, with another target      stay             the last of its time, with attempt 0
 *     taken, and both repeat          stay             -, and the attempt goes on
 *     taken, both repeat, another     next period      behind the attempt
 *     target
 *     taken, one of them is once      now              behind the attempt
 *     replaced                        stay             stays behind the attempt
 */
#include "put.h"

#include <base/saturate.h>

#include "conditions.h"
#include "outcome.h"
#include "periods.h"

/* Lets the new options count for the stored task, whose times and attempts stay. */
static void renew_options(struct tw__task_outcome *outcome, const struct tw__task *old)
{
    struct tw__task options = outcome->task;
    outcome->reply = TW__TASK_YES;
    outcome->task = *old;
    outcome->task.has_target = options.has_target;
    outcome->task.every_ms = options.every_ms;
    outcome->task.times = options.times;
    outcome->task.policy = options.policy;
    outcome->task.max_late_ms = options.max_late_ms;
    outcome->task.retry = options.retry;
    if (options.every_ms == 0)
        outcome->task.missed = 0; /* there are no periods any more */
}

/* The due time of a task that has to stand behind the attempt under way. */
static uint64_t due_behind(const struct tw__task *old, bool both_repeat, uint64_t now_ms)
{
    uint64_t periods = tw__add_saturating(old->missed, 1);
    return both_repeat ? tw__task_due_after(old->due_ms, periods, old->every_ms) : now_ms;
}

static void keep_due(struct tw__task_outcome *outcome, const struct tw__task *old, bool elsewhere,
                     uint64_t now_ms)
{
    bool both_repeat = old->every_ms > 0 && outcome->task.every_ms > 0;
    if (old->stage == TW__TASK_TAKEN && (elsewhere || !both_repeat)) {
        tw__task_place(outcome, old, due_behind(old, both_repeat, now_ms), now_ms);
        outcome->tally.replaced++;
        return;
    }
    renew_options(outcome, old);
    if (!elsewhere || old->stage != TW__TASK_FILED)
        return;
    tw__task_begin_anew(outcome);
    tw__task_void_lease(&outcome->task);
    tw__task_file(outcome, old->next_ms, now_ms);
}

void tw__task_put(const struct tw__task *old, const struct tw__task_call *call, uint64_t now_ms,
                  struct tw__task_outcome *outcome)
{
    bool there = old->stage != TW__TASK_NONE, lives = there && old->stage != TW__TASK_BURIED;
    if (!tw__task_conditions_met(call->conditions, there, old->due_ms, call->at_ms))
        return;
    outcome->task = *call->options;
    outcome->renewed = true;
    if (lives && (call->conditions & TW__TASK_KEEPDUE)) {
        keep_due(outcome, old, call->elsewhere, now_ms);
        return;
    }
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
