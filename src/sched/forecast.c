/* SPDX-License-Identifier: MIT
 *
 * The forecast: how many calls are due in each coming step of time. There are two ways to count them.
 *
 *     few due by the end     read the wheel, under one hold of the shard's lock
 *     many due by the end    go through the tasks in memory, SLICE of them under each hold of the lock
 *
 * From the wheel. The slots up to the end of the forecast hold the tasks that are due by then, however many
 * tasks are due later. The lock must be held throughout, because a reader that left the wheel in the middle
 * of a slot could not find its place again. So this way is taken only while it is little work: WHEEL tasks.
 *
 * From the tasks. A task never moves in memory, so a place among the tasks is only a number, and the lock can
 * be released after every SLICE of them. The tasks lie side by side. So a task costs a few nanoseconds there,
 * and a hundred in the wheel.
 *
 * Example: a million tasks are pending, and a caller asks for 60 steps of a second. If 500 tasks are due
 * within the minute, the forecast looks at about 500 timers. If 50,000 are due, it gives up at the wheel and
 * goes through the million tasks: 489 slices of 2,048.
 *
 * Between two slices the thread sleeps for a moment. A mutex is not fair, and a thread that takes it again at
 * once may keep the waiting threads waiting until the last slice.
 *
 * Rejected
 *   - Counts that every add, move and cancel keeps up to date: these calls have to be fast.
 *   - Going on at a tick or a slot after the lock was released: a million tasks may be due on the same tick.
 */
#include "clock.h"
#include "lock.h"
#include "pool.h"

#include <string.h>
#include <task/periods.h>
#include <time.h>
#include <wheel/private.h>

enum { WHEEL = 2048, SLICE = 2048 };

struct forecast {
    uint64_t now_ns, step_ns, end_ns;
    uint32_t steps;
    uint32_t work, most; /* under this hold of the lock: 1 for a task, and 1 for each step if it repeats */
    uint64_t *counts;
};

/* ---- one task -------------------------------------------------------------------------------------------- */

/* A series of calls: the due time of the first call, the period, and the number of calls. */
struct series {
    uint64_t due_ns, period_ns, calls;
};

static void count_once(const struct forecast *forecast, uint64_t due_ns)
{
    if (due_ns > forecast->end_ns || due_ns == UINT64_MAX)
        return;
    uint64_t now_ns = forecast->now_ns;
    forecast->counts[due_ns <= now_ns ? 0 : (due_ns - now_ns - 1) / forecast->step_ns]++;
}

static void count_series(const struct forecast *forecast, const struct series *series)
{
    uint64_t before = 0, ns = forecast->now_ns;
    for (uint32_t i = 0; i < forecast->steps && ns < UINT64_MAX - 1; i++) {
        ns = tw__add_saturating(ns, forecast->step_ns);
        if (ns == UINT64_MAX)
            ns--; /* a task that is due at the end of time never runs */
        uint64_t by = tw__task_calls_by(series->due_ns, series->period_ns, series->calls, ns);
        forecast->counts[i] += by - before;
        before = by;
    }
}

/* Counts all missed periods as one call. Only TW_MISSED_BURST makes up for each of them. */
static void pass_over_missed(const struct forecast *forecast, const struct tw__sched_details *details,
                             struct series *series)
{
    if (details->missed == TW_MISSED_BURST)
        return;
    uint64_t missed_periods = tw__task_periods_since(series->due_ns, series->period_ns, forecast->now_ns);
    series->due_ns = tw__task_due_after(series->due_ns, missed_periods, series->period_ns);
}

static void count_repeating(struct forecast *forecast, const struct tw__sched_task *task,
                            const struct tw__sched_details *details)
{
    struct series series = {task->due_ns, details->period_ns, tw__add_saturating(details->left, 1)};
    if (task->state == TW__SCHED_RUNNING && !task->again) { /* the call under way has started already */
        series.due_ns = tw__task_due_after(task->due_ns, details->missed_periods + 1, details->period_ns);
        series.calls = details->left;
    }
    if (series.due_ns > forecast->end_ns)
        return;
    pass_over_missed(forecast, details, &series);
    count_series(forecast, &series);
    forecast->work += forecast->steps;
}

/* Counts the coming calls of a task. Returns true if this was enough work under one hold of the lock. */
static bool count_calls(struct forecast *forecast, const struct tw__sched_task *task)
{
    const struct tw__sched_details *details = tw__sched_task_details(task);
    forecast->work++;
    if (task->state == TW__SCHED_FREE || (task->state == TW__SCHED_RUNNING && !tw__sched_task_goes_on(task)))
        return forecast->work >= forecast->most;
    if (details != NULL)
        count_repeating(forecast, task, details);
    else
        count_once(forecast, task->due_ns);
    return forecast->work >= forecast->most;
}

/* ---- from the wheel -------------------------------------------------------------------------------------- */

static int visit_timer(void *arg, struct tw_timer *timer)
{
    return count_calls(arg, (const struct tw__sched_task *)(const void *)timer);
}

/* Returns false if there is too much work for one hold of the lock. */
static bool count_list(struct forecast *forecast, const struct tw__link *head)
{
    for (struct tw__link *at = head->next; at != head; at = at->next)
        if (count_calls(forecast, tw__sched_task_linked(at)))
            return false;
    return true;
}

static bool count_busy(struct forecast *forecast, const struct tw__link *head)
{
    bool enough = false;
    for (struct tw__link *at = head->next; at != head && !enough; at = at->next)
        enough = count_calls(forecast, tw__sched_call_linked(at)->task);
    return !enough;
}

static bool read_wheel(struct forecast *forecast, struct tw__sched_shard *shard)
{
    uint32_t budget = WHEEL;
    forecast->work = 0;
    forecast->most = WHEEL + forecast->steps;
    tw__sched_loose_settle(shard);
    return tw__wheel_visit_budget(shard->wheel, tw__sched_tick_due(shard->sched, forecast->end_ns), &budget,
                                  visit_timer, forecast) &&
           count_list(forecast, &shard->ready) && count_list(forecast, &shard->sent) &&
           count_busy(forecast, &shard->busy);
}

/* ---- from the tasks -------------------------------------------------------------------------------------- */

/* A place among the tasks of a shard. */
struct place {
    uint32_t kind, index;
};

static bool count_slice(struct forecast *forecast, const struct tw__sched_shard *shard, struct place *at)
{
    forecast->work = 0;
    forecast->most = SLICE;
    for (; at->kind < TW__SCHED_KINDS; at->kind++, at->index = 0) {
        const struct tw__sched_lines *lines = &shard->lines[at->kind];
        while (at->index < tw__sched_lines_made(lines))
            if (count_calls(forecast, tw__sched_task_at(lines, at->index++)))
                return true;
    }
    return false;
}

static void let_others_in(struct tw__sched_shard *shard)
{
    tw__sched_unlock(shard);
    nanosleep(&(struct timespec){.tv_nsec = 1}, NULL);
    tw__sched_lock(shard);
}

static bool read_tasks(struct forecast *forecast, struct tw__sched_shard *shard)
{
    struct place at = {0, 0};
    while (count_slice(forecast, shard, &at))
        let_others_in(shard);
    return true;
}

/* ---- all shards ------------------------------------------------------------------------------------------ */

/* Counts the tasks of a shard, in one of the two ways. Returns false if there are too many tasks for this
 * way. */
typedef bool read_fn(struct forecast *forecast, struct tw__sched_shard *shard);

static bool count_shard(struct forecast *forecast, struct tw__sched_shard *shard, read_fn *read)
{
    tw__sched_lock(shard);
    bool all = read(forecast, shard);
    tw__sched_unlock(shard);
    return all;
}

static bool count_all(struct forecast *forecast, const struct tw_sched *sched, read_fn *read)
{
    memset(forecast->counts, 0, forecast->steps * sizeof *forecast->counts);
    for (uint32_t i = 0; i < tw__sched_made(sched); i++)
        if (!count_shard(forecast, sched->shard[i], read))
            return false;
    return true;
}

int tw_sched_forecast(const struct tw_sched *sched, uint64_t step_ns, uint32_t steps, uint64_t *counts)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(counts != NULL);
    if (step_ns == 0 || steps == 0 || steps > TW_FORECAST_MAX)
        return TW_EINVAL;
    struct forecast forecast = {
        .now_ns = tw__sched_clock_read(sched), .step_ns = step_ns, .steps = steps, .counts = counts};
    forecast.end_ns = tw__add_saturating(forecast.now_ns, tw__mul_saturating(steps, step_ns));
    if (!count_all(&forecast, sched, read_wheel))
        count_all(&forecast, sched, read_tasks);
    return 0;
}
