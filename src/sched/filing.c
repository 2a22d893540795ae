/* SPDX-License-Identifier: MIT
 *
 * Filing: a shard's wheel, and how long the timer thread may sleep.
 *
 * Nothing is overslept (S4). `wake` of a shard is the tick until which the timer thread means to sleep. The
 * timer thread writes it under the shard's lock before it sleeps. A thread that files a task for an earlier
 * tick, under the same lock, sees that and wakes the timer thread. While the timer thread is awake, `wake` is
 * 0 and nobody needs to wake it, because it looks at every shard again before it sleeps.
 *
 * Example: a shard has one task, due on tick 500, so its `wake` is 500. Three threads add tasks:
 *
 *     add for tick 900     900 >= 500: the timer thread sleeps on
 *     add for tick 40      40 < 500: sets `wake` to 0 and wakes the timer thread
 *     add for tick 30      30 >= 0: a second wake-up is not needed
 *
 * The timer thread looks at the shard, sets `wake` to 30 and sleeps until then.
 *
 * Filing a task again cannot fail. The shard asked the wheel when the task was added or moved, because an
 * error could still be returned then: see tw__sched_every_reach() and tw__sched_task_probe(). If the wheel
 * has fallen behind, it moves to the present first: see tw__sched_catch_up().
 *
 * A READY task has the tick on which it was due. The lists of READY tasks are sorted by it (S7). A repeating
 * task whose next call is late joins the end of the ready list, as if it were due on the tick of the wheel.
 * Example: the wheel stands on tick 25, the list has tasks of ticks 20 and 24, and a call that was due on tick
 * 22 is filed. It starts after both, and after a task of tick 23 in another shard. If it kept its tick, a task
 * that takes longer than its period would fall further and further behind, and go before all tasks of other
 * shards for ever.
 *
 * Before the wheel is asked for due or next timers, the loose tasks are taken out of it (S6).
 */
#include "filing.h"

#include "clock.h"
#include "order.h"
#include "pool.h"

/* ---- waking --------------------------------------------------------------------------------------------- */

/* Wakes the timer thread if a task is due before `wake`. If `wake` is 0, the timer thread is awake and will
 * look at this shard again by itself. */
static void wake_for(struct tw__sched_shard *shard, uint64_t tick)
{
    if (tick >= shard->wake)
        return;
    shard->wake = 0;
    tw__sched_clock_wake(shard->sched);
}

void tw__sched_awake(struct tw__sched_shard *shard)
{
    TW_ASSERT(tw__sched_locked(shard));
    shard->wake = 0;
}

uint64_t tw__sched_first_tick(struct tw__sched_shard *shard)
{
    TW_ASSERT(tw__sched_locked(shard));
    bool for_workers = shard->sched->options.workers > 0;
    if (shard->stopped)
        return TW_NEVER;
    if (!for_workers && !tw__list_empty(&shard->ready))
        return tw__sched_order_first(&shard->ready);
    tw__sched_loose_settle(shard);
    return tw_wheel_next_bound(shard->wheel);
}

uint64_t tw__sched_asleep(struct tw__sched_shard *shard)
{
    TW_ASSERT(tw__sched_locked(shard));
    return shard->wake = tw__sched_first_tick(shard);
}

/* ---- the wheel ------------------------------------------------------------------------------------------ */

void tw__sched_catch_up(struct tw__sched_shard *shard)
{
    TW_ASSERT(tw__sched_locked(shard));
    uint64_t tick = tw__sched_tick_now(shard->sched, tw__sched_clock_read(shard->sched));
    struct tw_timer *timer;
    tw__sched_loose_settle(shard);
    bool any = false;
    for (; (timer = tw_wheel_poll(shard->wheel, tick)) != NULL; any = true)
        tw__sched_task_ready(&shard->ready, timer);
    if (any || shard->sched->options.workers > 0)
        tw__sched_clock_wake(shard->sched); /* which opens the horizon, and tells the workers */
}

/* A tick from `wake` on has not begun, or the timer thread is about to wake up for it. So the clock is read
 * only for a task that wakes that thread, or finds it awake. */
uint64_t tw__sched_due_once(struct tw__sched_shard *shard, uint64_t due_ns)
{
    const struct tw_sched *sched = shard->sched;
    TW_ASSERT(tw__sched_locked(shard));
    if (shard->wake != 0 && tw__sched_tick_due(sched, due_ns) >= shard->wake)
        return due_ns;
    uint64_t now_ns = tw__sched_clock_read(sched);
    if (due_ns >= now_ns)
        return due_ns;
    uint64_t begun_ns = tw__sched_tick_start(sched, tw__sched_tick_now(sched, now_ns));
    return due_ns > begun_ns ? due_ns : begun_ns;
}

/* Adds a timer to the wheel. If the wheel refuses, moves it to the present and tries once more. */
static int add_timer(struct tw__sched_shard *shard, struct tw_timer *timer, uint64_t tick)
{
    int error = tw_wheel_add_at(shard->wheel, timer, tick);
    if (error == 0)
        return 0;
    tw__sched_catch_up(shard);
    return tw_wheel_add_at(shard->wheel, timer, tick);
}

int tw__sched_task_file(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    TW_ASSERT(tw__sched_locked(shard));
    uint64_t tick = tw__sched_tick_due(shard->sched, due_ns);
    int error = add_timer(shard, &task->timer, tick);
    if (error != 0)
        return error;
    task->due_ns = due_ns;
    task->state = TW__SCHED_PENDING;
    shard->stats.pending++;
    wake_for(shard, tick);
    return 0;
}

void tw__sched_task_unfile(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    TW_ASSERT(tw__sched_locked(shard));
    tw__list_remove(&task->link);
    tw_timer_init(&task->timer);
    shard->stats.pending--;
}

static int refile_ready(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    struct tw__link *before = task->link.prev;
    uint64_t old = task->tick;
    tw__sched_task_unfile(shard, task);
    int error = tw__sched_task_file(shard, task, due_ns);
    if (error != 0) { /* back to its old place */
        tw__list_insert(&task->link, before->next);
        task->tick = old;
        shard->stats.pending++;
    }
    return error;
}

int tw__sched_task_refile(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    TW_ASSERT(tw__sched_locked(shard));
    uint64_t tick = tw__sched_tick_due(shard->sched, due_ns);
    int error = task->state == TW__SCHED_READY ? 0 : tw_wheel_move_at(shard->wheel, &task->timer, tick);
    if (error != 0)
        tw__sched_catch_up(shard); /* may make the task READY */
    if (task->state == TW__SCHED_READY)
        return refile_ready(shard, task, due_ns);
    if (error != 0 && (error = tw_wheel_move_at(shard->wheel, &task->timer, tick)) != 0)
        return error;
    task->due_ns = due_ns;
    wake_for(shard, tick);
    return 0;
}

/* Adds a timer to the wheel and takes it out again. Returns the error of the add. */
static int probe(struct tw__sched_shard *shard, uint64_t tick)
{
    struct tw_timer timer;
    tw_timer_init(&timer);
    int error = add_timer(shard, &timer, tick);
    tw_wheel_cancel(shard->wheel, &timer);
    return error;
}

int tw__sched_task_probe(struct tw__sched_shard *shard, uint64_t due_ns)
{
    TW_ASSERT(tw__sched_locked(shard));
    return probe(shard, tw__sched_tick_due(shard->sched, due_ns));
}

/* The next call lies one period after a call that is due. From any tick on which it may stand later, a wheel
 * that grows will reach at least half as far as it reaches now. So the probe asks for two periods. */
int tw__sched_every_reach(struct tw__sched_shard *shard, const struct tw_every *every)
{
    TW_ASSERT(tw__sched_locked(shard));
    uint64_t ticks = (every->period_ns - 1) / shard->sched->options.tick_ns + 1;
    if (ticks > tw_wheel_range(shard->wheel))
        return TW_ERANGE;
    if (shard->sched->geometry.overflow != TW_OVERFLOW_GROW)
        return 0;
    return probe(shard, tw__add_saturating(tw_wheel_now(shard->wheel), tw__add_saturating(ticks, ticks)));
}
