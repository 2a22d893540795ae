/* SPDX-License-Identifier: MIT */
#include "late.h"

#include <base/saturate.h>
#include <task/periods.h>

bool tw__redis_late_drop(struct tw__redis_delivery *delivery)
{
    struct tw__redis_task *task = delivery->task;
    struct tw__task_period period = {.due = tw__redis_task_first_due(task),
                                     .next = tw__redis_task_due(task),
                                     .every = tw__redis_task_every(task),
                                     .max_late = delivery->plan.late_ms,
                                     .missed = TW_MISSED_BURST};
    if (delivery->plan.late != TW__REDIS_LATE_DROP || period.next >= delivery->now_ms)
        return false;
    struct tw__task_turn turn = tw__task_turn(&period, delivery->now_ms);
    tw__redis_shared.counts.dropped += turn.dropped;
    if (turn.dropped == 0)
        return false;
    if (period.every == 0)
        tw__redis_batch_leave(delivery->batch, delivery->queue, task);
    else
        tw__redis_batch_rearm(delivery->batch, delivery->queue, task, turn.due, tw__redis_task_times(task),
                              delivery->now_ms);
    return true;
}

uint64_t tw__redis_late_missed(const struct tw__redis_delivery *delivery)
{
    uint64_t due = tw__redis_task_due(delivery->task), every = tw__redis_task_every(delivery->task);
    bool missed = delivery->plan.late == TW__REDIS_LATE_COALESCE && every > 0 && due < delivery->now_ms &&
                  !delivery->task->lived; /* it waited for another time than that of a period */
    return missed ? (delivery->now_ms - due) / every : 0;
}

void tw__redis_late_done(struct tw__redis_delivery *delivery)
{
    uint64_t every = tw__redis_task_every(delivery->task), times = tw__redis_task_times(delivery->task);
    if (every == 0)
        tw__redis_batch_leave(delivery->batch, delivery->queue, delivery->task);
    else
        tw__redis_batch_rearm(delivery->batch, delivery->queue, delivery->task,
                              tw__add_saturating(tw__redis_task_first_due(delivery->task), every),
                              times == TW__REDIS_FOR_EVER ? times : times - 1, delivery->now_ms);
}
