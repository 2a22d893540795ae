/* SPDX-License-Identifier: MIT
 *
 * One call: a READY task becomes RUNNING, its callback runs, and the task is filed again or ends (S1).
 *
 *     READY  --try_begin()-->  RUNNING  --callback, hooks-->  finish()  --no call is left--------->  FREE
 *       |                                                        |------the next call is due------>  READY
 *       |                                                        +------the next call is later---->  PENDING
 *       +------the policy puts the call off------------------------------------------------------->  PENDING
 *
 * The lock is not held while a callback or a hook runs. A thread finishes one call and begins the next under
 * one hold of the lock.
 *
 * Missed periods. A repeating task stays in phase: its due times are first + n * period. If a call starts
 * late by a whole period or more, the policy of the task decides (the picture in task/periods.c). The period
 * counts from the tick on which the call could first be made. A call that is less than a period late is made
 * under every policy.
 */
#include "call.h"

#include <task/periods.h>

#include "clock.h"
#include "filing.h"
#include "lock.h"
#include "pool.h"
#include "stats.h"

/* ---- who is inside -------------------------------------------------------------------------------------- */

bool tw__sched_inside_task(const struct tw__sched_shard *shard, uint64_t id)
{
    TW_ASSERT(tw__sched_locked(shard));
    for (struct tw__link *at = shard->busy.next; at != &shard->busy; at = at->next) {
        const struct tw__sched_call *call = tw__sched_call_linked(at);
        if ((id == 0 || call->seen.id == id) && pthread_equal(call->thread, pthread_self()))
            return true;
    }
    return false;
}

struct tw__sched_call *tw__sched_call_of(const struct tw__sched_shard *shard, uint64_t id)
{
    TW_ASSERT(tw__sched_locked(shard));
    for (struct tw__link *at = shard->busy.next; at != &shard->busy; at = at->next)
        if (tw__sched_call_linked(at)->seen.id == id)
            return tw__sched_call_linked(at);
    return NULL;
}

bool tw__sched_inside(const struct tw_sched *sched)
{
    bool inside = false;
    for (uint32_t i = 0; i < tw__sched_made(sched) && !inside; i++) {
        tw__sched_lock(sched->shard[i]);
        inside = tw__sched_inside_task(sched->shard[i], 0);
        tw__sched_unlock(sched->shard[i]);
    }
    return inside;
}

#if TW_DEBUG > 0
void tw__sched_guest_comes(struct tw_sched *sched)
{
    if (!tw__sched_inside(sched))
        atomic_fetch_add(&sched->guests, 1);
}

void tw__sched_guest_goes(struct tw_sched *sched)
{
    if (!tw__sched_inside(sched))
        atomic_fetch_sub(&sched->guests, 1);
}
#endif

/* ---- periods; the lock is held -------------------------------------------------------------------------- */

/* Files a task that was filed before. This cannot fail: see the essay in filing.c. */
static void file_again(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    int error = tw__sched_task_file(shard, task, due_ns);
    TW_ASSERT(error == 0);
    (void)error;
}

/* The whole periods by which a call is late, counted from the tick on which it could first be made. */
static uint64_t periods_late(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                             const struct tw__sched_details *details, uint64_t now_ns)
{
    const struct tw_sched *sched = shard->sched;
    uint64_t from_ns = tw__sched_tick_start(sched, tw__sched_tick_due(sched, task->due_ns));
    return tw__task_periods_since(from_ns, details->period_ns, now_ns);
}

/* Applies the policy of a repeating task to a late call. Returns true if the task has no call to make now. */
static bool put_off(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t now_ns)
{
    struct tw__sched_details *details = tw__sched_task_details(task);
    if (details == NULL)
        return false;
    TW_ASSERT(details->missed_periods == 0);
    if (now_ns - task->due_ns < details->period_ns) /* mostly: then there is nothing to divide */
        return false;
    struct tw__task_turn turn = {.due = task->due_ns};
    uint64_t late = periods_late(shard, task, details, now_ns);
    tw__task_make_up(&turn, details->missed, late, details->period_ns);
    details->missed_periods = turn.missed_periods;
    if (turn.skipped == 0)
        return false;
    shard->stats.skipped += turn.skipped;
    file_again(shard, task, turn.due);
    return true;
}

/* How long after the due time a call starts. A period that had passed when the task was filed is late from the
 * filing on, because nobody could have made its call before. */
static uint64_t lateness(const struct tw__sched_task *task, uint64_t now_ns)
{
    const struct tw__sched_details *details = tw__sched_task_details(task);
    uint64_t from_ns = details != NULL && details->filed_ns > task->due_ns ? details->filed_ns : task->due_ns;
    return now_ns > from_ns ? now_ns - from_ns : 0;
}

/* ---- beginning; the lock is held ------------------------------------------------------------------------ */

bool tw__sched_call_try_begin(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t now_ns,
                              struct tw__sched_call *call)
{
    TW_ASSERT(tw__sched_locked(shard));
    __builtin_prefetch(task->ahead, 1);
    tw__sched_task_unfile(shard, task);
    if (put_off(shard, task, now_ns))
        return false;
    call->task = task;
    call->thread = pthread_self();
    call->begun_ns = now_ns;
    call->waited = false;
    tw__sched_task_describe(shard, task, &call->seen);
    call->seen.late_ns = lateness(task, now_ns);
    task->state = TW__SCHED_RUNNING;
    tw__list_append(&shard->busy, &call->link);
    shard->stats.running++;
    shard->stats.fired++;
    if (!tw__sched_task_goes_on(task))
        tw__sched_quota_give_back(shard, task);
    return true;
}

/* ---- finishing; the lock is held ------------------------------------------------------------------------ */

/* Files the next call of a repeating task. A call that is due already goes to the end of the ready list. That
 * comes to an end, because a period is not shorter than a tick. */
static void file_next(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    uint64_t tick = tw__sched_tick_due(shard->sched, due_ns);
    if (tick > tw_wheel_now(shard->wheel)) {
        file_again(shard, task, due_ns);
        return;
    }
    task->due_ns = due_ns;
    tw__sched_task_queue(&shard->ready, task, tw_wheel_now(shard->wheel)); /* as if it were due just now */
    shard->stats.pending++;
}

/* Files a task once more after its callback has returned, if it has a call left. Returns whether it has.
 *
 * If the task was moved or set during its callback, that due time is its next call, and `left` counts the
 * calls after it. Such a task goes through the wheel, so the tick after the wheel's present one is the
 * earliest. Otherwise a callback that keeps moving itself to now would keep all other tasks waiting.
 *
 * In a shard that is being stopped, tasks are still filed. The stop looks at the RUNNING tasks first and at
 * the pending tasks after them, so it finds the task in one place or the other. */
static bool go_on(struct tw__sched_shard *shard, struct tw__sched_task *task, const struct tw_task *seen)
{
    struct tw__sched_details *details = tw__sched_task_details(task);
    if (!tw__sched_task_goes_on(task))
        return false;
    shard->stats.again++;
    if (task->again) {
        task->again = 0;
        if (task->keyed)
            tw__sched_task_slot(shard, task)->fresh = 0;
        if (details != NULL)
            details->missed_periods = 0;
        file_again(shard, task, task->due_ns);
        return true;
    }
    if (details->left != TW_FOREVER)
        details->left--;
    uint64_t due_ns = tw__task_due_after(seen->due_ns, details->missed_periods + 1, details->period_ns);
    details->missed_periods = 0;
    file_next(shard, task, due_ns);
    return true;
}

/* Ends a call. Returns whether the task is now in the ready list. */
static bool finish(struct tw__sched_shard *shard, struct tw__sched_call *call)
{
    struct tw__sched_task *task = call->task;
    bool waited = call->waited || shard->stopped;
    tw__list_remove(&call->link);
    shard->stats.running--;
    bool goes_on = go_on(shard, task, &call->seen);
    bool ready = goes_on && task->state == TW__SCHED_READY;
    if (!goes_on)
        tw__sched_task_drop(shard, task);
    if (waited)
        pthread_cond_broadcast(&shard->idle);
    return ready;
}

/* ---- calling -------------------------------------------------------------------------------------------- */

/* Calls the late and the slow hook if the call passed their limits. No lock is held. */
static void tell_hooks(const struct tw_sched *sched, const struct tw__sched_call *call, uint64_t ended_ns)
{
    const struct tw_sched_options *options = &sched->options;
    uint64_t ran_ns = ended_ns - call->begun_ns;
    if (options->on_late != NULL && call->seen.late_ns > options->late_ns)
        options->on_late(options->hook_arg, &call->seen, call->seen.late_ns);
    if (options->on_slow != NULL && ran_ns > options->slow_ns)
        options->on_slow(options->hook_arg, &call->seen, ran_ns);
}

/* Runs the callback, and then the late and the slow hook; the task is RUNNING until they have returned. No
 * lock is held. Returns the time at which the callback returned; the hooks do not count. */
static uint64_t call_back(struct tw_sched *sched, const struct tw__sched_call *call)
{
    call->seen.fn(sched, &call->seen);
    uint64_t ended_ns = tw__sched_clock_read(sched);
    tell_hooks(sched, call, ended_ns);
    return ended_ns;
}

/* Releases the value of a call that has returned, unless the next call has the same value. The lock is
 * released meanwhile. During that time the task can go on only if its key is set anew, and then with another
 * value. */
static void release_called(struct tw__sched_shard *shard, const struct tw__sched_call *call)
{
    const struct tw__sched_value value = {call->seen.fn, call->seen.arg};
    bool fresh = tw__sched_task_fresh(shard, call->task);
    if (!tw__sched_value_owned(shard->sched, &value) || (!fresh && tw__sched_task_goes_on(call->task)))
        return;
    if (!fresh)
        call->task->dead = 1;
    tw__sched_unlock(shard);
    tw__sched_value_release(shard->sched, &value);
    tw__sched_lock(shard);
}

/* Counts a call that has returned. A call whose task was cancelled, moved, set anew or handed over meanwhile
 * has no end (docs/contract.md, "Counts"). */
static void count_call(struct tw__sched_shard *shard, const struct tw__sched_call *call, uint64_t ended_ns)
{
    if (!call->task->dead && !call->task->again)
        shard->stats.coalesced += call->seen.missed_periods;
    tw__sched_stats_call(shard, call->seen.late_ns, ended_ns - call->begun_ns);
}

uint64_t tw__sched_call_make(struct tw__sched_shard *shard, struct tw__sched_call *call, bool *ready)
{
    TW_ASSERT(tw__sched_locked(shard));
    tw__sched_unlock(shard);
    uint64_t ended_ns = call_back(shard->sched, call);
    tw__sched_lock(shard);
    count_call(shard, call, ended_ns);
    release_called(shard, call);
    *ready = finish(shard, call);
    return ended_ns;
}
