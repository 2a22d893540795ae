/* SPDX-License-Identifier: MIT */
#include "delivery.h"

#include <task/ends.h>

#include "queues/change.h"
#include "queues/queue.h"
#include "queues/route.h"

bool tw__redis_late_passes(struct tw__redis_delivery *delivery)
{
    struct tw__task_turn turn = tw__redis_turn(tw__redis_shared.queues, delivery->task, delivery->now_ms);
    delivery->missed_periods = turn.missed_periods;
    delivery->every = tw__redis_task_every(delivery->task);
    if (turn.dropped + turn.skipped == 0)
        return false;
    tw__redis_count(delivery->queue, TW__REDIS_DROPPED, turn.dropped);
    tw__redis_count(delivery->queue, TW__REDIS_SKIPPED, turn.skipped);
    if (turn.ends)
        tw__redis_batch_leave(delivery->batch, delivery->queue, delivery->task);
    else
        tw__redis_batch_rearm(delivery->batch, delivery->queue, delivery->task, turn.due,
                              tw__redis_task_times(delivery->task), delivery->now_ms);
    return true;
}

/* The missed periods of the call, in the periods that the task has now. */
static uint64_t missed_periods_now(const struct tw__redis_delivery *delivery)
{
    return tw__task_missed_periods_renewed(delivery->missed_periods, delivery->every,
                                           tw__redis_task_every(delivery->task));
}

void tw__redis_late_refused(struct tw__redis_delivery *delivery)
{
    struct tw__redis_task *task = delivery->task;
    uint64_t missed_periods = missed_periods_now(delivery);
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
    struct tw__redis_task *task = delivery->task;
    uint64_t every = tw__redis_task_every(task), left = tw__task_calls_left(every, tw__redis_task_times(task)),
             next =
                 tw__task_next_call(tw__redis_task_first_due(task), missed_periods_now(delivery), every, left);
    tw__redis_count(delivery->queue, TW__REDIS_COALESCED, delivery->missed_periods);
    if (next == TW__TASK_FOREVER)
        tw__redis_batch_leave(delivery->batch, delivery->queue, task);
    else
        tw__redis_batch_rearm(delivery->batch, delivery->queue, task, next, left, delivery->now_ms);
}
