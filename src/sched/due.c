/* SPDX-License-Identifier: MIT
 *
 * Collecting: due tasks go from the wheel to the ready list of their shard, tick by tick. While it collects,
 * the timer thread holds the lock of a shard for at most TW__SCHED_COLLECT units of the wheel's work at a time.
 *
 * Example: 4 workers, and 1,000 tasks of a shard are due on tick 7. The timer thread moves up to 64 of them to
 * the ready list, releases the lock, tells the workers, and takes the lock again: at least 16 times in all. So
 * the first callbacks start after 64 tasks instead of after 1,000, and other threads can get the lock after
 * every 64 tasks.
 *
 * Prefetching. The timer thread is faster than the workers, so a million tasks that are due together become a
 * list of a million cold cache lines. Each task in it knows the address of the task eight places on. The thread
 * that starts a task prefetches that line, and it has arrived when its turn comes. This halves the time of a
 * call of a worker. The address is only a hint: the task there may have ended long ago, and its line is never
 * given back before the scheduler ends.
 *
 * The horizon. Workers take the tasks of all shards in the order of their ticks, so they must know which ticks
 * they may start. The horizon is the tick up to which they may. No shard has a PENDING task that was due before
 * the horizon, unless it was filed when that tick had begun. So whichever task comes first in the ready lists
 * comes first of all.
 *
 * Example: the timer thread comes late, and 7 ticks have passed. Shard 0 has tasks on ticks 3 and 6, shard 1
 * on tick 5.
 *
 *     horizon 3    collects shards 0 and 1 up to tick 3; workers start the task of tick 3
 *     horizon 5    collects both up to tick 5; workers start the task of tick 5
 *     horizon 6    the same; and then 7, the present
 *
 * A thread that has to bring the wheel of shard 0 to the present, see tw__sched_catch_up(), makes its task of
 * tick 6 READY at once. This task lies beyond the horizon until the task of tick 5 was collected, so it waits.
 * That thread also wakes the timer thread, which opens the horizon as far as the wheel: a repeating task that
 * ends meanwhile may file a call that is READY on the wheel's tick.
 */
#include "due.h"

#include "clock.h"
#include "filing.h"
#include "lock.h"
#include "order.h"
#include "pool.h"

/* ---- the first tick -------------------------------------------------------------------------------------- */

void tw__sched_due_first(const struct tw_sched *sched, struct tw__sched_firsts *first)
{
    first->shards = tw__sched_made(sched);
    first->all = TW_NEVER;
    for (uint32_t i = 0; i < first->shards; i++) {
        tw__sched_lock(sched->shard[i]);
        first->of[i] = tw__sched_first_tick(sched->shard[i]);
        tw__sched_unlock(sched->shard[i]);
        if (first->of[i] < first->all)
            first->all = first->of[i];
    }
}

uint64_t tw__sched_due_asleep(struct tw_sched *sched)
{
    uint64_t next = TW_NEVER;
    for (uint32_t i = 0; i < tw__sched_made(sched); i++) {
        tw__sched_lock(sched->shard[i]);
        uint64_t tick = tw__sched_asleep(sched->shard[i]);
        tw__sched_unlock(sched->shard[i]);
        next = tick < next ? tick : next;
    }
    return next;
}

void tw__sched_due_awake(struct tw_sched *sched)
{
    for (uint32_t i = 0; i < tw__sched_made(sched); i++) {
        tw__sched_lock(sched->shard[i]);
        tw__sched_awake(sched->shard[i]);
        tw__sched_unlock(sched->shard[i]);
    }
}

/* ---- collecting ------------------------------------------------------------------------------------------ */

bool tw__sched_due_some(struct tw__sched_shard *shard, uint64_t tick)
{
    TW_ASSERT(tw__sched_locked(shard));
    uint32_t budget = TW__SCHED_COLLECT;
    struct tw_timer *timer;
    enum tw_poll polled;
    tw__sched_loose_settle(shard);
    while ((polled = tw_wheel_poll_budget(shard->wheel, tick, &budget, &timer)) == TW_POLL_DUE)
        tw__sched_task_collect(shard, timer);
    return polled == TW_POLL_MORE && !shard->stopped;
}

void tw__sched_due_begin(struct tw_sched *sched, uint64_t tick)
{
    for (uint32_t i = 0; i < tw__sched_made(sched); i++) {
        tw__sched_lock(sched->shard[i]);
        tw__sched_due_some(sched->shard[i], tick);
        tw__sched_unlock(sched->shard[i]);
    }
}

/* Tells the workers that tasks are ready. `told` counts these calls. A worker that has found no task sleeps
 * until `told` differs from the value it read before it looked, so a call that comes while it looks is not
 * missed. */
static void tell_workers(struct tw_sched *sched, bool several)
{
    pthread_mutex_lock(&sched->pool_lock);
    sched->told++;
    if (several)
        pthread_cond_broadcast(&sched->pool_work);
    else
        pthread_cond_signal(&sched->pool_work);
    pthread_mutex_unlock(&sched->pool_lock);
}

/* Tells the workers of every task that they may start, also of tasks that other threads have made READY. */
static void collect(struct tw__sched_shard *shard, uint64_t tick)
{
    for (bool more = true; more;) {
        tw__sched_lock(shard);
        more = tw__sched_due_some(shard, tick);
        bool any = tw__sched_order_first(&shard->ready) <= tick && !shard->stopped,
             several = shard->ready.next != shard->ready.prev;
        tw__sched_unlock(shard);
        if (any)
            tell_workers(shard->sched, several);
    }
}

void tw__sched_due_all(struct tw_sched *sched, uint64_t tick)
{
    tw__sched_order_open(sched, tick);
    for (uint32_t i = 0; i < tw__sched_made(sched); i++)
        collect(sched->shard[i], tick);
}
