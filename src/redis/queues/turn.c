/* SPDX-License-Identifier: MIT */
#include "turn.h"

#include "route.h"

static bool has_begun(const struct tw__redis_task *task)
{
    if (!task->lived)
        return false;
    struct tw__redis_life life = tw__redis_task_life(task);
    return life.has_missed || life.attempt > 0;
}

struct tw__task_turn tw__redis_turn(const struct tw__redis_queues *queues, const struct tw__redis_task *task,
                                    uint64_t now_ms)
{
    struct tw__redis_plan plan = tw__redis_route_plan(tw__redis_route_of(queues, task));
    struct tw__task_period period = {.due = tw__redis_task_first_due(task),
                                     .next = tw__redis_task_due(task),
                                     .every = tw__redis_task_every(task),
                                     .max_late = plan.max_late_ms,
                                     .missed = (enum tw_missed)plan.missed};
    TW_ASSERT(tw__redis_task_stage(task) == TW__REDIS_WAITING);
    if (has_begun(task))
        return (struct tw__task_turn){.due = period.due, .missed = tw__redis_task_missed(task), .calls = true};
    return tw__task_turn(&period, now_ms > period.next ? now_ms : period.next);
}
