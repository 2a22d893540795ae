/* SPDX-License-Identifier: MIT */
#include "late.h"

#include <base/saturate.h>

bool tw__redis_late_drop(struct tw__redis_delivery *delivery)
{
    struct tw__redis_task *task = delivery->task;
    uint64_t due = tw__redis_task_due(task), every = tw__redis_task_every(task),
             late_ms = delivery->plan.late_ms;
    if (delivery->plan.late != TW__REDIS_LATE_DROP || due >= delivery->now_ms ||
        delivery->now_ms - due <= late_ms)
        return false;
    uint64_t periods = every == 0 ? 1 : (delivery->now_ms - due - late_ms - 1) / every + 1;
    tw__redis_shared.counts.dropped += periods;
    if (every == 0)
        tw__redis_batch_leave(delivery->batch, delivery->queue, task);
    else
        tw__redis_batch_rearm(delivery->batch, delivery->queue, task, due + periods * every,
                              tw__redis_task_times(task), delivery->now_ms);
    return true;
}

uint64_t tw__redis_late_missed(const struct tw__redis_delivery *delivery)
{
    uint64_t due = tw__redis_task_due(delivery->task), every = tw__redis_task_every(delivery->task);
    bool missed = delivery->plan.late == TW__REDIS_LATE_COALESCE && every > 0 && due < delivery->now_ms;
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
