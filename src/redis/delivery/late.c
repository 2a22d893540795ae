/* SPDX-License-Identifier: MIT */
#include "delivery.h"

#include <task/periods.h>
#include <task/state.h>

#include "queues/change.h"
#include "queues/lease.h"
#include "queues/queue.h"

/* The task leaves, or is filed for its next period, as an outcome says. */
static void leave_or_rearm(const struct tw__redis_delivery *delivery, const struct tw__task_outcome *outcome)
{
    const struct tw__task *numbers = &outcome->task;
    tw__redis_lease_count(delivery->queue, &outcome->tally);
    if (numbers->stage == TW__TASK_NONE)
        tw__redis_batch_leave(delivery->batch, delivery->queue, delivery->task);
    else
        tw__redis_batch_rearm(delivery->batch, delivery->queue, delivery->task, numbers->due_ms, numbers->times,
                              delivery->now_ms);
}

bool tw__redis_late_passes(struct tw__redis_delivery *delivery)
{
    struct tw__task numbers = tw__redis_lease_numbers(tw__redis_shared.queues, delivery->task);
    struct tw__task_outcome outcome;
    uint64_t now_ms = delivery->now_ms > numbers.next_ms ? delivery->now_ms : numbers.next_ms;
    tw__task_change(&numbers, &(struct tw__task_call){.verb = TW__TASK_DUE}, now_ms, &outcome);
    delivery->missed_periods = outcome.task.missed_periods;
    delivery->every = numbers.every_ms;
    bool passes = outcome.filed || outcome.task.stage == TW__TASK_NONE;
    if (passes)
        leave_or_rearm(delivery, &outcome);
    return passes;
}

struct tw__task tw__redis_late_numbers(const struct tw__redis_delivery *delivery)
{
    struct tw__task numbers = tw__redis_lease_numbers(tw__redis_shared.queues, delivery->task);
    numbers.attempt = tw__redis_place_tries(tw__redis_shared.queues, delivery->task);
    numbers.missed_periods =
        tw__task_missed_periods_renewed(delivery->missed_periods, delivery->every, numbers.every_ms);
    return numbers;
}

void tw__redis_late_refused(struct tw__redis_delivery *delivery, uint64_t missed_periods)
{
    struct tw__redis_task *task = delivery->task;
    struct tw__redis_attempt attempt = tw__redis_task_any_attempt(task);
    if (attempt.has_missed_periods && attempt.missed_periods == missed_periods)
        return;
    attempt.has_missed_periods = true;
    attempt.missed_periods = missed_periods;
    delivery->task = tw__redis_queue_set_attempt(delivery->queue, task, &attempt);
    tw__redis_change_put(tw__redis_batch_log(delivery->batch, delivery->queue), tw__redis_shared.queues,
                         delivery->task);
}

void tw__redis_late_done(struct tw__redis_delivery *delivery)
{
    struct tw__task numbers = tw__redis_late_numbers(delivery);
    struct tw__task_outcome outcome;
    tw__task_change(&numbers, &(struct tw__task_call){.verb = TW__TASK_DELIVERED}, delivery->now_ms, &outcome);
    leave_or_rearm(delivery, &outcome);
}
