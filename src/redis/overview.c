/* SPDX-License-Identifier: MIT
 *
 * All schedules at once, for those who watch a server: how many tasks fall due when, and which schedules have most.
 * Free of Redis, as schedule.c is.
 *
 * The forecast is read from the wheel that all schedules share, as far as a budget goes, for the server does nothing
 * else meanwhile. If more is due than that, it is estimated: the tables of ids are in the order of a keyed hash, so
 * what lies in one place of a table is a fair sample of its schedule, and some of each of the largest schedules, in
 * proportion, is one of all tasks. Rejected: the first tasks of the wheel alone, which say nothing of the seconds
 * after them.
 */
#include "schedule.h"

#include <string.h>

enum {
    LOOK_MAX = 20000,      /* tasks in the wheel, and tasks of a sample: a millisecond or two each */
    SCHEDULES_MAX = 20000, /* looked at to find the largest */
    SAMPLED_MAX = 64       /* schedules that a sample is taken of */
};

struct ahead {
    uint64_t now_ms, step, to;
    uint64_t *counts;
    uint64_t seen, wanted; /* of a sample */
};

/* ---- the largest --------------------------------------------------------------------------------------------- */

/* Puts a schedule in its place among the largest so far. */
static size_t insert(const struct tw__schedule **largest, size_t count, size_t limit,
                     const struct tw__schedule *schedule)
{
    size_t at = count < limit ? count : limit - 1;
    uint64_t tasks = tw__table_count(&schedule->tasks);
    if (count == limit && tw__table_count(&largest[at]->tasks) >= tasks)
        return count;
    for (; at > 0 && tw__table_count(&largest[at - 1]->tasks) < tasks; at--)
        largest[at] = largest[at - 1];
    largest[at] = schedule;
    return count < limit ? count + 1 : limit;
}

size_t tw__overview_largest(const struct tw__schedule **largest, size_t limit)
{
    size_t count = 0;
    uint32_t left = SCHEDULES_MAX;
    struct tw_link *link = tw__all.attached.next;
    for (; limit > 0 && link != &tw__all.attached && left > 0; link = link->next, left--)
        count = insert(largest, count, limit, tw__schedule_at(link));
    return count;
}

/* ---- the forecast -------------------------------------------------------------------------------------------- */

static void count_task(struct ahead *ahead, const struct tw__task *task)
{
    uint64_t due = tw__task_due(task);
    if (due <= ahead->to)
        ahead->counts[due <= ahead->now_ms ? 0 : (due - ahead->now_ms - 1) / ahead->step]++;
}

static int count_in_wheel(void *arg, const struct tw_timer *timer)
{
    const struct tw__task *task = TW_CONTAINER(timer, const struct tw__task, timer);
    if (tw__schedule_of(task)->attached)
        count_task(arg, task);
    return 0;
}

static bool read_wheels(struct ahead *ahead)
{
    uint32_t budget = LOOK_MAX;
    return tw_wheel_visit_budget(tw__all.wheel, ahead->to, &budget, count_in_wheel, ahead) &&
           (tw__all.behind == NULL ||
            tw_wheel_visit_budget(tw__all.behind, ahead->to, &budget, count_in_wheel, ahead));
}

static void count_in_sample(void *entry, void *arg)
{
    struct ahead *ahead = arg;
    const struct tw__task *task = entry;
    if (ahead->seen == ahead->wanted)
        return;
    ahead->seen++;
    if (!(task->flags & TW__TASK_QUEUED))
        count_task(ahead, task);
}

/* Looks at `share` more tasks of a schedule, from anywhere on. */
static void take_sample(struct ahead *ahead, const struct tw__schedule *schedule, uint64_t share)
{
    static uint64_t samples;
    samples++;
    uint64_t cursor = tw__table_hash(&samples, sizeof samples);
    ahead->wanted = ahead->seen + share;
    while (ahead->seen < ahead->wanted)
        cursor = tw__table_scan(&schedule->tasks, cursor, count_in_sample, ahead);
}

/* Requires: there are tasks. */
static void estimate(struct ahead *ahead, size_t steps)
{
    const struct tw__schedule *largest[SAMPLED_MAX];
    size_t count = tw__overview_largest(largest, SAMPLED_MAX);
    uint64_t all = 0;
    memset(ahead->counts, 0, steps * sizeof *ahead->counts);
    for (size_t i = 0; i < count; i++)
        all += tw__table_count(&largest[i]->tasks);
    for (size_t i = 0; i < count; i++) {
        uint64_t tasks = tw__table_count(&largest[i]->tasks);
        double share = (double)LOOK_MAX * (double)tasks / (double)all;
        if (tasks > 0)
            take_sample(ahead, largest[i], share < 1 ? 1 : (uint64_t)share);
    }
    if (ahead->seen == 0)
        return; /* what is pending belongs to schedules that were not looked at, or that go */
    double weight = (double)tw__all.pending / (double)ahead->seen;
    for (size_t i = 0; i < steps; i++)
        ahead->counts[i] = (uint64_t)((double)ahead->counts[i] * weight + 0.5);
}

bool tw__overview_forecast(uint64_t now_ms, uint64_t step, size_t steps, uint64_t *counts)
{
    struct ahead ahead = {.now_ms = now_ms, .step = step, .counts = counts};
    ahead.to = step > (UINT64_MAX - now_ms) / steps ? UINT64_MAX : now_ms + step * steps;
    memset(counts, 0, steps * sizeof *counts);
    bool exact = read_wheels(&ahead) || tw__all.pending == 0;
    if (!exact)
        estimate(&ahead, steps);
    counts[0] += tw__all.queued + tw__all.held;
    return exact;
}
