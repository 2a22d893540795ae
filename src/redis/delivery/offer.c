/* SPDX-License-Identifier: MIT
 *
 * A task for workers becomes ready by the clock alone: in a tick or, if a worker asks before the tick, then.
 * Nothing is replicated for that: a replica has the task and its time, and would make it ready at once if it
 * were promoted. What workers and leases do is replicated.
 */
#include "workers.h"

#include <base/assert.h>

#include "purge.h"
#include "queues/lease.h"
#include "queues/place.h"
#include "queues/route.h"
#include "server/config.h"
#include "server/lateness.h"

enum {
    SLOT_WAIT_MS = 1000, /* until a lease that ran out in a slot that is migrating is looked at again */
    STEPS = 8            /* of the wheel's own work, for each task at which tw__redis_offer_due() looks */
};

static const char lease_ran_out[] = "the lease ran out";

void tw__redis_offer(struct tw__redis_delivery *delivery)
{
    struct tw__redis_task *task = delivery->task;
    tw__redis_batch_tell(delivery->batch, delivery->queue, TW__REDIS_TELL_READY);
    tw__redis_shared.counts.offered++;
    tw__redis_place_offer(tw__redis_shared.queues, task, delivery->now_ms);
    tw__redis_workers_wake(delivery->queue);
}

static bool is_for_workers(const struct tw__redis_queue *queue, const struct tw__redis_task *task)
{
    const struct tw__redis_route *route = tw__redis_route_of(queue->queues, task);
    return route->queue == queue && tw__redis_task_stage(task) == TW__TASK_FILED &&
           tw__redis_route_plan(route).kind == TW__REDIS_WORKERS;
}

/* Whether a task may be due that is not ready. The answer false is certain. */
static bool any_due(const struct tw__redis_queues *queues, uint64_t now_ms)
{
    return tw__redis_place_any_waiting(queues) || tw__redis_place_next_work(queues) <= now_ms;
}

/* Tasks that were taken out, and go back to where they were. */
struct passed {
    struct tw__redis_task *task[TW__REDIS_LOOKS];
    uint64_t since_ms[TW__REDIS_LOOKS];
    size_t count;
};

static void put_back(struct tw__redis_queues *queues, const struct passed *passed)
{
    for (size_t i = passed->count; i-- > 0;) {
        queues->late_since_ms = passed->since_ms[i];
        tw__redis_place_put_back(queues, passed->task[i], TW__REDIS_TAKEN_TASK);
    }
}

uint64_t tw__redis_offer_due(struct tw__redis_queue *queue, uint64_t count, uint64_t now_ms, uint32_t *looks)
{
    struct tw__redis_queues *queues = queue->queues;
    struct passed passed = {.count = 0};
    struct tw__redis_task *task;
    uint64_t offered = 0;
    if (queue->ready_count >= count || *looks == 0 || tw__redis_shared.batch != NULL ||
        !any_due(queues, now_ms))
        return 0;
    TW_ASSERT(*looks <= TW__REDIS_LOOKS);
    uint32_t work = ((uint32_t)(count - queue->ready_count) + *looks) * STEPS;
    while (*looks > 0 && queue->ready_count < count &&
           tw__redis_place_take(queues, now_ms, TW__REDIS_FROM_LATE, &work, &task) == TW__REDIS_TAKEN_TASK) {
        if (!is_for_workers(queue, task)) {
            passed.since_ms[passed.count] = queues->late_since_ms;
            passed.task[passed.count++] = task;
            --*looks;
            continue;
        }
        tw__redis_lateness_count(tw__redis_place_late_since(queues, task));
        tw__redis_place_offer(queues, task, now_ms);
        offered++;
    }
    put_back(queues, &passed);
    tw__redis_shared.counts.offered += offered;
    return offered;
}

struct tw__task_retry tw__redis_workers_retry(const struct tw__redis_task *task)
{
    struct tw__redis_plan plan = tw__redis_route_plan(tw__redis_route_of(tw__redis_shared.queues, task));
    return tw__redis_config_retry(&plan.retry);
}

/* The lease has run out. Returns whether the task has died. */
static bool lapse(struct tw__redis_delivery *delivery)
{
    struct tw__task_retry retry = tw__redis_workers_retry(delivery->task);
    struct tw__redis_verb verb = {
        .call = {.verb = TW__TASK_LAPSE}, .retry = &retry, .said = {lease_ran_out, sizeof lease_ran_out - 1}};
    struct tw__task_outcome outcome;
    tw__redis_lease_change(delivery->queue, delivery->task, &verb, delivery->now_ms,
                           tw__redis_batch_log(delivery->batch, delivery->queue), &outcome);
    return outcome.reply == TW__TASK_DIED;
}

enum tw__redis_defer tw__redis_offer_lapse(struct tw__redis_delivery *delivery)
{
    struct tw__redis_queue *queue = delivery->queue;
    struct tw__redis_attempt attempt = tw__redis_task_attempt(delivery->task);
    enum tw__redis_meanwhile others = tw__redis_call_may_write(delivery);
    struct tw__redis_task *task = delivery->task;
    if (others == TW__REDIS_GONE)
        return TW__REDIS_DEFER_NONE;
    TW_ASSERT(tw__redis_lease_has_token(task, attempt.token)); /* the attempt is still under way */
    if (delivery->why == TW__REDIS_DEFER_SLOT) {
        tw__redis_place_file(tw__redis_shared.queues, task, delivery->now_ms + SLOT_WAIT_MS, delivery->now_ms);
        return TW__REDIS_DEFER_NONE;
    }
    if (delivery->why != TW__REDIS_DEFER_NONE)
        return delivery->why;
    tw__redis_batch_tell(delivery->batch, queue, TW__REDIS_TELL_CHANGED);
    if (tw__redis_task_due(task) <= tw__redis_shared.serving_since_ms && !attempt.renewed) {
        tw__redis_shared.counts.renewed++;
        tw__redis_lease_renew(queue, task, delivery->now_ms, tw__redis_batch_log(delivery->batch, queue));
        return TW__REDIS_DEFER_NONE;
    }
    if (lapse(delivery))
        tw__redis_purge_after_death(delivery->batch, queue);
    return TW__REDIS_DEFER_NONE;
}
