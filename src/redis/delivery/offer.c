/* SPDX-License-Identifier: MIT
 *
 * A task for workers becomes ready by the clock alone: in a tick or, if a worker asks before the tick, then.
 * Nothing is replicated for that: a replica has the task and its time, and would make it ready at once if it
 * were promoted. What workers and leases do is replicated.
 */
#include "workers.h"

#include <base/assert.h>
#include <task/ends.h>

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

/* The task dies, with its last error. Returns 0. */
static uint64_t die(struct tw__redis_queue *queue, struct tw__redis_task *task, struct tw__redis_bytes error,
                    uint64_t now_ms, struct tw__redis_buffer *log)
{
    tw__redis_count(queue, TW__REDIS_DIED, 1);
    tw__redis_count(queue, TW__REDIS_COALESCED, tw__redis_task_missed_periods(task));
    tw__redis_lease_kill(queue, task, tw__redis_task_attempt(task).number, error, now_ms, log);
    return 0;
}

static struct tw__task_retry retry_of(const struct tw__redis_task *task)
{
    struct tw__redis_plan plan = tw__redis_route_plan(tw__redis_route_of(tw__redis_shared.queues, task));
    return tw__redis_config_retry(&plan.retry);
}

/* The time after the wait that follows an attempt. */
static uint64_t after_wait(uint64_t end_ms, const struct tw__task_retry *retry,
                           const struct tw__redis_attempt *attempt)
{
    return tw__task_retry_at(retry, tw__task_failure(attempt->number, attempt->lapses), attempt->token, end_ms);
}

uint64_t tw__redis_offer_fail(struct tw__redis_queue *queue, struct tw__redis_task *task,
                              struct tw__redis_bytes error, uint64_t at_ms, bool last, uint64_t now_ms,
                              struct tw__redis_buffer *log)
{
    struct tw__task_retry retry = retry_of(task);
    struct tw__redis_attempt attempt = tw__redis_task_attempt(task);
    if (last || tw__task_failure_kills(attempt.number, attempt.lapses, retry.tries))
        return die(queue, task, error, now_ms, log);
    if (at_ms == 0)
        at_ms = after_wait(now_ms, &retry, &attempt);
    tw__redis_lease_fail(queue, task, false, error, at_ms, now_ms, log);
    return at_ms;
}

/* The lease has run out. The wait begins at its end, whenever that is noticed. Returns whether the task has
 * died. */
static bool lapse(struct tw__redis_delivery *delivery, const struct tw__redis_attempt *attempt)
{
    struct tw__redis_task *task = delivery->task;
    struct tw__redis_buffer *log = tw__redis_batch_log(delivery->batch, delivery->queue);
    struct tw__redis_bytes error = {lease_ran_out, sizeof lease_ran_out - 1};
    uint64_t end_ms = tw__redis_task_due(task), now_ms = delivery->now_ms;
    tw__redis_count(delivery->queue, TW__REDIS_LAPSED, 1);
    if (attempt->stage == TW__TASK_REPLACED) {
        tw__redis_lease_end_replaced(delivery->queue, task, end_ms < now_ms ? end_ms : now_ms, now_ms, log);
        return false;
    }
    tw__redis_lease_count_lapse(task);
    if (tw__task_lapse_kills(attempt->lapses + 1)) {
        die(delivery->queue, task, error, now_ms, log);
        return true;
    }
    struct tw__task_retry retry = retry_of(task);
    uint64_t at_ms = after_wait(end_ms < now_ms ? end_ms : now_ms, &retry, attempt);
    tw__redis_lease_fail(delivery->queue, task, true, error, at_ms, now_ms, log);
    return false;
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
        tw__redis_lease_extend(queue, task, attempt.lease_ms, true, delivery->now_ms,
                               tw__redis_batch_log(delivery->batch, queue));
        return TW__REDIS_DEFER_NONE;
    }
    if (lapse(delivery, &attempt))
        tw__redis_purge_after_death(delivery->batch, queue);
    return TW__REDIS_DEFER_NONE;
}
