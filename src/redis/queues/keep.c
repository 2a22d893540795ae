/* SPDX-License-Identifier: MIT
 *
 * A task that is renewed in place keeps its timer or its link, and only its block is another one. So its place
 * in the order stays, whichever that is. Two tasks are not that simple:
 *
 *   - A held task is in the line of its route. If the new options make another route, it goes to the end of
 *     that line. It still waits for the next try of its target, and keeps its tries. With another target it is
 *     held no more, and waits for the same time.
 *   - The task that is being delivered, or whose lease has run out, is filed nowhere. Its delivery goes on with
 *     the other block, and settles it by the new options.
 */
#include "queue.h"

#include <base/assert.h>

#include "place.h"
#include "route.h"

/* ---- deciding -------------------------------------------------------------------------------------------- */

/* LEFT is an option of a List. */
static uint8_t kind_of(const struct tw__redis_plan *plan)
{
    return plan->kind == TW__REDIS_LIST_LEFT ? TW__REDIS_LIST : plan->kind;
}

static bool is_elsewhere(const struct tw__redis_route *route, const struct tw__redis_plan *plan)
{
    struct tw__redis_plan old = tw__redis_route_plan(route);
    return kind_of(&old) != kind_of(plan) || !tw__redis_bytes_equal(old.target, plan->target);
}

struct tw__task_keep tw__redis_keep_decide(const struct tw__redis_queues *queues,
                                           const struct tw__redis_task *old, const struct tw__redis_plan *plan,
                                           uint64_t every, uint64_t due, uint64_t now_ms)
{
    struct tw__task numbers = {.stage = TW__TASK_NONE};
    bool elsewhere = old != NULL && is_elsewhere(tw__redis_route_of(queues, old), plan);
    if (old != NULL)
        numbers = (struct tw__task){.stage = tw__redis_task_stage(old),
                                    .due_ms = tw__redis_task_first_due(old),
                                    .missed_periods = tw__redis_task_missed_periods(old),
                                    .every_ms = tw__redis_task_every(old)};
    return tw__task_keep(&numbers, every, elsewhere, due, now_ms);
}

bool tw__redis_keep_fits(const struct tw__redis_queue *queue, const struct tw__redis_task *old,
                         const struct tw__redis_route *route)
{
    if (old == NULL || tw__redis_task_stage(old) == TW__TASK_BURIED)
        return false;
    struct tw__redis_plan plan = tw__redis_route_plan(route);
    return tw__redis_task_stage(old) == TW__TASK_REPLACED ||
           !is_elsewhere(tw__redis_route_of(queue->queues, old), &plan);
}

/* ---- doing ----------------------------------------------------------------------------------------------- */

static void renew_in_place(struct tw__redis_queue *queue, struct tw__redis_task *task,
                           struct tw__redis_task *fresh, struct tw__redis_route *route)
{
    struct tw__redis_queues *queues = queue->queues;
    TW_ASSERT(tw__redis_task_filed(task) || queues->delivering == task);
    if (task->place != TW__REDIS_IN_HELD || route == tw__redis_route_of(queues, task)) {
        tw__redis_queue_renew(queue, task, fresh, route);
        return;
    }
    struct tw__redis_wait wait = tw__redis_place_let_go(queues, task);
    task = tw__redis_queue_renew(queue, task, fresh, route);
    tw__redis_place_hold_on(queues, task, &wait);
}

/* A task that waits for another time than its due time has an attempt state, which says so. */
static struct tw__redis_task *with_next(struct tw__redis_task *task, uint64_t due, uint64_t next,
                                        const struct tw__redis_memory *memory)
{
    if (next != due) {
        struct tw__redis_attempt attempt = {
            .stage = TW__TASK_FILED, .due = due, .worker = {"", 0}, .error = {"", 0}};
        struct tw__redis_task *copy = tw__redis_task_with_attempt(task, &attempt, memory);
        memory->free(task);
        task = copy;
    }
    tw__redis_task_set_due(task, next);
    return task;
}

void tw__redis_keep_put(struct tw__redis_queue *queue, struct tw__redis_task *task,
                        struct tw__redis_route *route, uint64_t hash, struct tw__redis_task *old,
                        enum tw__task_keepdue how, uint64_t now_ms)
{
    if (how == TW__TASK_KEEPDUE_IN_PLACE) {
        renew_in_place(queue, old, task, route);
        return;
    }
    TW_ASSERT(how == TW__TASK_KEEPDUE_SAME_TIMES && tw__redis_task_stage(old) == TW__TASK_FILED);
    uint64_t next = tw__redis_place_next(queue->queues, old, now_ms); /* of a held task that of its target */
    task = with_next(task, tw__redis_task_first_due(old), next, &queue->queues->memory);
    tw__redis_queue_put(queue, task, route, hash, old, now_ms);
}
