/* SPDX-License-Identifier: MIT
 *
 * Handing over: a drain takes what is pending, a stop also the calls to come of tasks whose callbacks are under
 * way.
 */
#include "call.h"
#include "clock.h"
#include "filing.h"
#include "lock.h"
#include "pool.h"

/* ---- aside ---------------------------------------------------------------------------------------------- */

/* Moves what waits in lists, and some of the wheel, aside. False when nothing waits any more. */
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

/* Moves everything that is pending now aside, a little under each hold of the lock. What is filed meanwhile may
 * come first, so it goes on until as much was moved as there was and has come; that ends, as filing takes
 * longer than moving. */
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

/* A task that is being handed over. Its details are kept until it was. */
struct handing {
    struct tw_task seen;
    struct tw__sched_details *details;
    struct tw__sched_value value; /* which nothing uses after the hand-over */
};

/* Describes a task for its hand-over, and keeps its details. */
static void describe(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                     struct handing *handing)
{
    tw__sched_task_describe(shard, task, &handing->seen);
    handing->value = tw__sched_task_value(task);
    handing->details = tw__sched_task_details(task);
    if (handing->details != NULL)
        handing->details->holders++;
}

/* Takes a task out that was set aside. False when there is none. */
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

/* The call under way may end, and its value be released, while the task is being handed over: it goes
 * without. */
static void withhold_value(const struct tw__sched_shard *shard, struct handing *handing)
{
    if (handing->details != NULL && handing->details->fresh)
        return;
    if (tw__sched_value_owned(shard->sched, &handing->value)) {
        handing->seen.fn = NULL;
        handing->seen.arg = NULL;
    }
    handing->value.fn = NULL;
}

/* Takes the calls that are still to come from a task whose callback is under way. False when there is none
 * such. */
static bool take_busy(struct tw__sched_shard *shard, struct handing *handing)
{
    for (struct tw__link *at = shard->busy.next; at != &shard->busy; at = at->next) {
        struct tw__sched_task *task = tw__sched_call_linked(at)->task;
        if (!tw__sched_task_goes_on(task))
            continue;
        describe(shard, task, handing);
        if (!task->again) { /* the next call of one that repeats */
            struct tw__sched_details *details = handing->details;
            handing->seen.due_ns =
                tw__sched_periods_after(task->due_ns, details->missed + 1, details->period_ns);
            handing->seen.left = details->left == TW_FOREVER ? TW_FOREVER : details->left - 1;
            handing->seen.missed = 0;
        }
        withhold_value(shard, handing);
        task->dead = 1;
        shard->stats.again++; /* as if it had been filed just before */
        shard->stats.handed++;
        return true;
    }
    return false;
}

typedef bool take_fn(struct tw__sched_shard *shard, struct handing *handing);

/* Hands over, one by one, what `take` takes. Returns how many. */
static uint64_t hand_over(struct tw__sched_shard *shard, take_fn *take, tw_hand_fn *hand, void *arg)
{
    struct handing handing;
    uint64_t handed = 0;
    tw__sched_lock(shard);
    while (take(shard, &handing)) {
        handed++;
        if (hand != NULL || tw__sched_value_owned(shard->sched, &handing.value)) {
            tw__sched_unlock(shard);
            if (hand != NULL)
                hand(arg, &handing.seen);
            tw__sched_value_release(shard->sched, &handing.value);
            tw__sched_lock(shard);
        }
        if (handing.details != NULL)
            tw__sched_details_drop(shard, handing.details);
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

int64_t tw_sched_drain(struct tw_sched *sched, tw_hand_fn *hand, void *arg)
{
    TW_ASSERT(tw__sched_usable(sched));
    uint64_t handed = 0;
    if (is_stopped(&sched->shard[0])) /* a stop marks it first of all */
        return TW_ESTOPPED;
    tw__sched_guest_comes(sched);
    for (uint32_t i = 0; i < sched->options.shards; i++) {
        set_all_aside(&sched->shard[i]);
        handed += hand_over(&sched->shard[i], take_aside, hand, arg);
    }
    tw__sched_guest_goes(sched);
    return (int64_t)handed;
}

/* Waits until no callback is under way. */
static void wait_until_idle(struct tw__sched_shard *shard)
{
    tw__sched_lock(shard);
    while (!tw__list_empty(&shard->busy))
        pthread_cond_wait(&shard->idle, &shard->lock);
    tw__sched_unlock(shard);
}

/* From here on nothing is added, and no callback starts. */
static void mark_stopped(struct tw__sched_shard *shard)
{
    tw__sched_lock(shard);
    if (!shard->stopped)
        shard->at_stop = shard->stats.added + shard->stats.fired;
    shard->stopped = true;
    tw__sched_unlock(shard);
}

uint64_t tw_sched_stop(struct tw_sched *sched, unsigned flags, tw_hand_fn *hand, void *arg)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT((flags & ~(unsigned)TW_STOP_NOWAIT) == 0);
    bool wait = (flags & TW_STOP_NOWAIT) == 0 && !tw__sched_inside(sched);
    uint64_t handed = 0;
    tw__sched_guest_comes(sched);
    for (uint32_t i = 0; i < sched->options.shards; i++)
        mark_stopped(&sched->shard[i]);
    for (uint32_t i = 0; i < sched->options.shards; i++) {
        handed += hand_over(&sched->shard[i], take_busy, hand, arg);
        set_all_aside(&sched->shard[i]);
        handed += hand_over(&sched->shard[i], take_aside, hand, arg);
    }
    for (uint32_t i = 0; wait && i < sched->options.shards; i++)
        wait_until_idle(&sched->shard[i]);
    tw__sched_guest_goes(sched);
    return handed;
}
