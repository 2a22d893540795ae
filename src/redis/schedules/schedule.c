/* SPDX-License-Identifier: MIT
 *
 * A schedule: its beginning and end, and the tasks that come and go. state.h has the overview.
 */
#include "schedule.h"

#include <base/assert.h>
#include <base/list.h>
#include <string.h>

#include "check.h"
#include "place.h"
#include "route.h"
#include "sums.h"

/* ---- attached and detached ------------------------------------------------------------------------------- */

struct tw__schedule *tw__schedule_new(struct tw__schedules *schedules)
{
    struct tw__schedule *schedule = schedules->memory.alloc(sizeof *schedule);
    memset(schedule, 0, sizeof *schedule);
    schedule->schedules = schedules;
    tw__table_init(&schedule->tasks, &schedules->of_tasks);
    tw__table_init(&schedule->routes, &schedules->of_routes);
    schedule->bytes = schedules->memory.usable(schedule);
    tw__list_append(&schedules->detached, &schedule->all);
    return schedule;
}

void tw__schedule_free(struct tw__schedule *schedule)
{
    struct tw__schedules *schedules = schedule->schedules;
    TW_ASSERT(!schedule->attached);
    tw__route_free_all(schedule);
    tw__table_fini(&schedule->tasks);
    tw__table_fini(&schedule->routes);
    tw__list_remove(&schedule->all);
    if (schedules->recent == schedule)
        schedules->recent = NULL;
    if (schedule->name != NULL)
        schedules->forget(schedule->name);
    schedules->memory.free(schedule);
}

void tw__schedule_attach(struct tw__schedule *schedule)
{
    if (schedule->attached)
        return;
    tw__list_remove(&schedule->all);
    tw__list_append(&schedule->schedules->attached, &schedule->all);
    schedule->attached = true;
    tw__sums_schedule(schedule, 1);
    tw__check_changed(schedule->schedules, tw__check_sums);
}

void tw__schedule_detach(struct tw__schedule *schedule)
{
    if (!schedule->attached)
        return;
    tw__list_remove(&schedule->all);
    tw__list_append(&schedule->schedules->detached, &schedule->all);
    schedule->attached = false;
    tw__sums_schedule(schedule, -1);
    tw__check_changed(schedule->schedules, tw__check_sums);
}

size_t tw__schedule_bytes(const struct tw__schedule *schedule)
{
    return schedule->bytes;
}

/* ---- tasks ----------------------------------------------------------------------------------------------- */

uint64_t tw__schedule_hash(const struct tw__schedules *schedules, struct tw__bytes id)
{
    return tw__table_hash(&schedules->of_tasks, id.at, id.size);
}

uint64_t tw__schedule_foresee(const struct tw__schedules *schedules, struct tw__bytes id)
{
    uint64_t hash = tw__schedule_hash(schedules, id);
    if (schedules->recent != NULL)
        tw__table_prefetch(&schedules->recent->tasks, hash);
    return hash;
}

void tw__schedule_foresee_task(const struct tw__schedules *schedules, uint64_t hash)
{
    if (schedules->recent != NULL)
        tw__table_prefetch_entry(&schedules->recent->tasks, hash);
}

struct tw__task *tw__schedule_find(const struct tw__schedule *schedule, uint64_t hash, struct tw__bytes id)
{
    return tw__table_find(&schedule->tasks, hash, id.at, id.size);
}

/* Takes a task from its place and from its route. */
static void leave(struct tw__schedule *schedule, struct tw__task *task)
{
    struct tw__schedules *schedules = schedule->schedules;
    struct tw__route *route = tw__route_of(schedules, task);
    if (schedules->delivering == task)
        schedules->delivering = NULL;
    tw__place_unfile(schedules, task);
    tw__sums_block(schedule, task, -1);
    tw__route_release(route);
}

void tw__schedule_put(struct tw__schedule *schedule, struct tw__task *task, struct tw__route *route,
                      uint64_t hash, struct tw__task *old, uint64_t now_ms)
{
    TW_ASSERT(route->schedule == schedule && !tw__task_filed(task));
    TW_ASSERT(tw__schedule_find(schedule, hash, tw__task_id(task)) == old);
    task->route = route->index;
    tw__route_keep(route);
    tw__sums_block(schedule, task, 1);
    if (old != NULL) {
        leave(schedule, old);
        tw__table_replace(&schedule->tasks, hash, old, task);
        schedule->schedules->memory.free(old);
    } else {
        size_t before = tw__sums_table_bytes(schedule);
        tw__sums_task(schedule, 1);
        tw__table_add(&schedule->tasks, hash, task);
        tw__sums_tables(schedule, before);
    }
    tw__place_file(schedule->schedules, task, tw__task_due(task), now_ms);
    tw__check_changed(schedule->schedules, tw__check_sums);
}

void tw__schedule_remove(struct tw__schedule *schedule, struct tw__task *task, uint64_t hash)
{
    size_t before = tw__sums_table_bytes(schedule);
    TW_ASSERT(tw__schedule_find(schedule, hash, tw__task_id(task)) == task);
    tw__table_remove(&schedule->tasks, hash, task);
    tw__sums_tables(schedule, before);
    tw__sums_task(schedule, -1);
    leave(schedule, task);
    schedule->schedules->memory.free(task);
    tw__check_changed(schedule->schedules, tw__check_sums);
}

void tw__schedule_moved(struct tw__schedule *schedule, const struct tw__task *old, struct tw__task *task)
{
    tw__place_moved(task);
    tw__table_replace(&schedule->tasks, tw__schedule_hash(schedule->schedules, tw__task_id(task)), old, task);
}

bool tw__schedule_relocate(struct tw__schedule *schedule, uint64_t *segment, void *(*move)(void *old))
{
    size_t before = tw__sums_table_bytes(schedule);
    bool there = tw__table_relocate(&schedule->tasks, segment, move);
    tw__sums_tables(schedule, before);
    return there;
}

uint64_t tw__schedule_drop(struct tw__schedule *schedule, uint64_t limit)
{
    struct tw__schedules *schedules = schedule->schedules;
    uint64_t dropped = 0;
    TW_ASSERT(!schedule->attached);
    struct tw__task *task;
    while (dropped < limit && (task = tw__table_pop(&schedule->tasks)) != NULL) {
        if (schedules->delivering == task)
            schedules->delivering = NULL;
        tw__place_unfile(schedules, task);
        schedules->memory.free(task);
        schedules->reaping--;
        dropped++;
    }
    return dropped;
}
