/* SPDX-License-Identifier: MIT
 *
 * Each queue with dead tasks has one timer, for the first of them (place.c). The cron asks whether a timer
 * has expired, and each tick removes dead tasks in a part of its budget. So neither a look nor a tick depends
 * on the number of queues, or on that of dead tasks.
 */
#include "purge.h"

#include "delivery.h"
#include "queues/lease.h"
#include "queues/place.h"
#include "queues/share.h"
#include "queues/sums.h"
#include "server/config.h"

enum {
    PURGE_MAX = 50,    /* tasks removed at a death */
    LOOK_AT_CLOCK = 8, /* tasks between two looks at the clock */
    BIG = 4096,        /* after a task of more bytes the clock is looked at too */
    TIMERS = 1000      /* steps of the wheel of deaths in one call */
};

void tw__redis_purge_task(struct tw__redis_queue *queue, struct tw__redis_task *task,
                          struct tw__redis_buffer *log)
{
    tw__redis_lease_remove(queue, task, log);
    tw__redis_shared.counts.purged++;
}

/* The first dead period of a series, if the last task that died is one too many of it; else NULL. */
static struct tw__redis_task *old_period(const struct tw__redis_queue *queue)
{
    struct tw__link *last = queue->dead.prev;
    return last == &queue->dead ? NULL : tw__redis_share_excess(tw__redis_task_of_link(last));
}

bool tw__redis_purge_excess(struct tw__redis_queue *queue, struct tw__redis_buffer *log)
{
    uint64_t most = (uint64_t)tw__redis_config.dead_max;
    struct tw__redis_task *period = old_period(queue);
    int purged = period != NULL;
    if (period != NULL)
        tw__redis_purge_task(queue, period, log);
    for (; purged < PURGE_MAX && most > 0 && queue->dead_count > most; purged++)
        tw__redis_purge_task(queue, tw__redis_place_first_dead(queue), log);
    return purged > 0;
}

void tw__redis_purge_after_death(struct tw__redis_batch *batch, struct tw__redis_queue *queue)
{
    tw__redis_batch_tell(batch, queue, TW__REDIS_TELL_DEAD);
    if (tw__redis_purge_excess(queue, tw__redis_batch_log(batch, queue)))
        tw__redis_batch_tell(batch, queue, TW__REDIS_TELL_PURGED);
}

/* ---- dead tasks that have to go -------------------------------------------------------------------------- */

/* One call of tw__redis_purge_some(). */
struct purge {
    struct tw__redis_batch *batch;
    uint64_t now_ms, until_us;
    uint32_t tasks; /* that may still be removed; 0 also when the time is over */
    bool removed;   /* whether any was */
};

static void look_at_clock(struct purge *purge)
{
    if (RedisModule_MonotonicMicroseconds() >= purge->until_us)
        purge->tasks = 0;
}

/* Returns the time by which a task must have died to have stayed too long now, or 0 if the setting lets all
 * dead tasks stay. */
static uint64_t too_old(uint64_t now_ms)
{
    uint64_t most_ms = (uint64_t)tw__redis_config.dead_ms;
    return most_ms > 0 && now_ms > most_ms ? now_ms - most_ms : 0;
}

/* Hands the setting down, as it may be another one since the last call. */
static struct tw__redis_queues *limited(void)
{
    tw__redis_sums_limit_dead(tw__redis_shared.queues, (uint64_t)tw__redis_config.dead_max);
    return tw__redis_shared.queues;
}

bool tw__redis_purge_any(uint64_t now_ms)
{
    return tw__redis_place_any_stale(limited(), too_old(now_ms));
}

/* The dead task of a queue that died first, if it has stayed too long, or if there are too many; else NULL. */
static struct tw__redis_task *old_task(const struct tw__redis_queue *queue, uint64_t now_ms)
{
    struct tw__redis_task *task = queue->attached ? tw__redis_place_first_dead(queue) : NULL;
    uint64_t most = queue->queues->dead_limit, by_ms = too_old(now_ms);
    if (task == NULL || (most > 0 && queue->dead_count > most))
        return task;
    return by_ms > 0 && tw__redis_task_due(task) <= by_ms ? task : NULL;
}

/* Whether the server lets us write to a stale queue now, whose first dead task is `task`. If not, another
 * queue has the next turn; *go_on tells whether that may be at once. */
static bool may_write(const struct purge *purge, struct tw__redis_queue *queue, struct tw__redis_task *task,
                      bool *go_on)
{
    struct tw__redis_delivery delivery;
    tw__redis_delivery_init(&delivery, purge->batch, task, purge->now_ms);
    RedisModule_SelectDb(purge->batch->ctx, queue->db);
    *go_on = false;
    if (tw__redis_call_may_write(&delivery) == TW__REDIS_GONE)
        return false; /* another module was faster, and may have removed the queue too */
    *go_on = delivery.why == TW__REDIS_DEFER_SLOT;
    if (delivery.why != TW__REDIS_DEFER_NONE)
        tw__redis_place_let_wait(queue);
    return delivery.why == TW__REDIS_DEFER_NONE;
}

/* Removes dead tasks of a stale queue. Returns false if the server lets nobody remove any now. */
static bool purge_from(struct purge *purge, struct tw__redis_queue *queue)
{
    struct tw__redis_task *task = old_task(queue, purge->now_ms);
    if (task == NULL) {
        tw__redis_place_let_stay(queue);
        return true;
    }
    bool go_on;
    if (!may_write(purge, queue, task, &go_on)) {
        purge->tasks--; /* so that a migrating slot does not hold up the others, and the tick comes to an end */
        return go_on;
    }
    purge->removed = true;
    tw__redis_batch_tell(purge->batch, queue, TW__REDIS_TELL_PURGED);
    while (purge->tasks > 0 && (task = old_task(queue, purge->now_ms)) != NULL) {
        bool big = tw__redis_shared.queues->memory.usable(task) > BIG;
        tw__redis_purge_task(queue, task, tw__redis_batch_log(purge->batch, queue));
        if (--purge->tasks % LOOK_AT_CLOCK == 0 || big)
            look_at_clock(purge);
    }
    return true;
}

bool tw__redis_purge_some(struct tw__redis_batch *batch, uint64_t now_ms, uint32_t tasks, uint64_t until_us)
{
    struct purge purge = {batch, now_ms, until_us, tasks, false};
    struct tw__redis_queues *queues = limited();
    struct tw__redis_queue *queue;
    uint32_t work = TIMERS;
    while (purge.tasks > 0 && (queue = tw__redis_place_first_stale(queues, too_old(now_ms), &work)) != NULL) {
        if (!purge_from(&purge, queue))
            return false;
        look_at_clock(&purge);
    }
    return (purge.removed && purge.tasks == 0) || work == 0;
}
