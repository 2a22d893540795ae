/* SPDX-License-Identifier: MIT
 *
 * Handing over: a drain and a stop give tasks back to the caller, one after the other, through its `visit`.
 *
 *     wheel, ready list, sent list  -- set_aside() -->  aside list  -- take_aside() -->  visit   drain, stop
 *     busy list                     -- take_busy() ----------------------------------->  visit   stop only
 *
 * A drain hands over the pending tasks, and the scheduler goes on. A stop hands over the pending tasks and
 * the calls that are still to come of tasks whose callbacks are under way. After it nothing is added or
 * started (S5). The lock is not held while `visit` runs. A task that is set aside is READY, so other threads
 * can still cancel or move it until take_aside() takes it (S1).
 *
 * Example: a shard has 100,000 pending tasks. A drain sets 64 of them aside under each hold of the lock, so
 * in about 1,563 holds, and other threads get the lock in between. Then it hands over the 100,000 tasks.
 */
#include "call.h"
#include "clock.h"
#include "filing.h"
#include "lock.h"
#include "pool.h"
#include "shard.h"

#include <task/periods.h>

/* ---- aside ---------------------------------------------------------------------------------------------- */

/* Sets aside the tasks of the ready and the sent list, and at most 64 tasks of the wheel. Returns false if
 * the wheel is empty. */
static bool set_aside(struct tw__sched_shard *shard)
{
    tw__list_move_all(&shard->ready, &shard->aside);
    tw__list_move_all(&shard->sent, &shard->aside);
    tw__sched_loose_settle(shard);
    struct tw_timer *timer = NULL;
    for (int i = 0; i < TW__SCHED_COLLECT && (timer = tw_wheel_drain(shard->wheel)) != NULL; i++)
        tw__sched_task_ready(&shard->aside, timer);
    return timer != NULL;
}

static uint64_t ever_filed(const struct tw__sched_shard *shard)
{
    return shard->stats.added + shard->stats.again + shard->stats.moved;
}

/* Sets aside all tasks that are pending now, a few under each hold of the lock. Tasks that are filed
 * meanwhile may come out of the wheel before them. So it goes on until it has moved as many tasks as were
 * pending at the beginning, plus those filed since. That comes to an end, because filing a task takes longer
 * than moving it. */
static void set_all_aside(struct tw__sched_shard *shard)
{
    tw__sched_lock(shard);
    uint64_t most = shard->stats.pending - ever_filed(shard);
    for (uint64_t moved = 0; set_aside(shard) && moved < most + ever_filed(shard); moved += TW__SCHED_COLLECT) {
        tw__sched_unlock(shard);
        tw__sched_lock(shard);
    }
    tw__sched_unlock(shard);
}

/* ---- one task ------------------------------------------------------------------------------------------- */

/* A task that is being handed over. Its key is kept until `visit` has returned. */
struct handing {
    struct tw_task seen;
    struct tw__sched_kept key;
    struct tw__sched_value value; /* nothing uses this value after the hand-over */
};

/* Describes a task for its hand-over, and keeps its key. */
static void describe(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                     struct handing *handing)
{
    tw__sched_task_describe(shard, task, &handing->seen);
    handing->value = tw__sched_task_value(task);
    handing->seen.key.data = tw__sched_key_keep(shard, task, &handing->key);
}

/* Takes one task off the aside list and ends it. Returns false if the list is empty. */
static bool take_aside(struct tw__sched_shard *shard, struct handing *handing)
{
    if (tw__list_empty(&shard->aside))
        return false;
    struct tw__sched_task *task = tw__sched_task_linked(shard->aside.next);
    tw__sched_task_unfile(shard, task);
    describe(shard, task, handing);
    tw__sched_task_drop(shard, task);
    shard->stats.handed++;
    return true;
}

/* The call under way may end during the hand-over, and its value may then be released. So the task is handed
 * over without this value. */
static void withhold_value(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                           struct handing *handing)
{
    if (tw__sched_task_fresh(shard, task))
        return;
    if (tw__sched_value_owned(shard->sched, &handing->value)) {
        handing->seen.fn = NULL;
        handing->seen.arg = NULL;
    }
    handing->value.fn = NULL;
}

/* Takes the calls that are still to come from one task whose callback is under way. Returns false if no such
 * task has calls to come. */
static bool take_busy(struct tw__sched_shard *shard, struct handing *handing)
{
    for (struct tw__link *at = shard->busy.next; at != &shard->busy; at = at->next) {
        struct tw__sched_task *task = tw__sched_call_linked(at)->task;
        if (!tw__sched_task_goes_on(task))
            continue;
        describe(shard, task, handing);
        if (!task->again) { /* the task repeats: describe its next call */
            const struct tw__sched_details *details = tw__sched_task_details(task);
            handing->seen.due_ns =
                tw__task_due_after(task->due_ns, details->missed_periods + 1, details->period_ns);
            handing->seen.left = details->left == TW_FOREVER ? TW_FOREVER : details->left - 1;
            handing->seen.missed_periods = 0;
        }
        withhold_value(shard, task, handing);
        task->dead = 1;
        shard->stats.again++; /* for S3: as if the task had been filed again before it was handed over */
        shard->stats.handed++;
        return true;
    }
    return false;
}

typedef bool take_fn(struct tw__sched_shard *shard, struct handing *handing);

/* Hands over the tasks that `take` takes, one by one. Returns the number of tasks. */
static uint64_t hand_over(struct tw__sched_shard *shard, take_fn *take, tw_sched_visit_fn *visit, void *arg)
{
    struct handing handing;
    uint64_t handed = 0;
    tw__sched_lock(shard);
    while (take(shard, &handing)) {
        handed++;
        if (visit != NULL || tw__sched_value_owned(shard->sched, &handing.value)) {
            tw__sched_unlock(shard);
            if (visit != NULL)
                visit(arg, &handing.seen);
            tw__sched_value_release(shard->sched, &handing.value);
            tw__sched_lock(shard);
        }
        tw__sched_key_give_up(shard, &handing.key);
    }
    tw__sched_unlock(shard);
    return handed;
}

/* ---- drain and stop ------------------------------------------------------------------------------------- */

static bool is_stopped(struct tw__sched_shard *shard)
{
    tw__sched_lock(shard);
    bool stopped = shard->stopped;
    tw__sched_unlock(shard);
    return stopped;
}

int tw_sched_drain(struct tw_sched *sched, tw_sched_visit_fn *visit, void *arg, uint64_t *handed)
{
    TW_ASSERT(tw__sched_usable(sched));
    uint64_t n = 0;
    if (is_stopped(sched->shard[0])) /* a stop marks this shard first */
        return TW_ESTOPPED;
    tw__sched_guest_comes(sched);
    for (uint32_t i = 0; i < tw__sched_made(sched); i++) {
        set_all_aside(sched->shard[i]);
        n += hand_over(sched->shard[i], take_aside, visit, arg);
    }
    tw__sched_guest_goes(sched);
    if (handed != NULL)
        *handed = n;
    return 0;
}

/* Waits until no callback is under way. */
static void wait_until_idle(struct tw__sched_shard *shard)
{
    tw__sched_lock(shard);
    while (!tw__list_empty(&shard->busy))
        pthread_cond_wait(&shard->idle, &shard->lock);
    tw__sched_unlock(shard);
}

/* From here on no task is added to the shard, and no callback starts in it (S5). */
static void mark_stopped(struct tw__sched_shard *shard)
{
    tw__sched_lock(shard);
    if (!shard->stopped)
        shard->at_stop = shard->stats.added + shard->stats.fired;
    shard->stopped = true;
    tw__sched_unlock(shard);
}

uint64_t tw_sched_stop(struct tw_sched *sched, unsigned flags, tw_sched_visit_fn *visit, void *arg)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT((flags & ~(unsigned)TW_SCHED_STOP_NOWAIT) == 0);
    bool wait = (flags & TW_SCHED_STOP_NOWAIT) == 0 && !tw__sched_inside(sched);
    uint64_t handed = 0;
    tw__sched_guest_comes(sched);
    tw__sched_shards_close(sched);
    for (uint32_t i = 0; i < tw__sched_made(sched); i++)
        mark_stopped(sched->shard[i]);
    for (uint32_t i = 0; i < tw__sched_made(sched); i++) {
        handed += hand_over(sched->shard[i], take_busy, visit, arg);
        set_all_aside(sched->shard[i]);
        handed += hand_over(sched->shard[i], take_aside, visit, arg);
    }
    for (uint32_t i = 0; wait && i < tw__sched_made(sched); i++)
        wait_until_idle(sched->shard[i]);
    tw__sched_guest_goes(sched);
    return handed;
}
