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
#include "share.h"
#include "sums.h"

/* ---- attached and detached ------------------------------------------------------------------------------- */

struct tw__redis_schedule *tw__redis_schedule_new(struct tw__redis_schedules *schedules)
{
    struct tw__redis_schedule *schedule = schedules->memory.alloc(sizeof *schedule);
    memset(schedule, 0, sizeof *schedule);
    schedule->schedules = schedules;
    tw__redis_table_init(&schedule->tasks, &schedules->of_tasks);
    tw__redis_table_init(&schedule->routes, &schedules->of_routes);
    tw__list_init(&schedule->stopped);
    tw__list_init(&schedule->ready);
    tw__list_init(&schedule->dead);
    schedule->bytes = schedules->memory.usable(schedule);
    tw__list_append(&schedules->detached, &schedule->all);
    return schedule;
}

void tw__redis_schedule_free(struct tw__redis_schedule *schedule)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    TW_ASSERT(!schedule->attached);
    tw__redis_route_free_all(schedule);
    tw__redis_table_fini(&schedule->tasks);
    tw__redis_table_fini(&schedule->routes);
    tw__list_remove(&schedule->all);
    if (tw__link_listed(&schedule->awake))
        tw__list_remove(&schedule->awake);
    TW_ASSERT(!tw__link_listed(&schedule->stale) && !tw_timer_pending(&schedule->death));
    if (schedules->recent == schedule)
        schedules->recent = NULL;
    if (schedule->name != NULL)
        schedules->forget(schedule->name);
    schedules->memory.free(schedule);
}

void tw__redis_schedule_attach(struct tw__redis_schedule *schedule)
{
    if (schedule->attached)
        return;
    tw__list_remove(&schedule->all);
    tw__redis_sums_list(schedule);
    schedule->attached = true;
    tw__redis_sums_schedule(schedule, 1);
    tw__redis_check_changed(schedule->schedules, tw__redis_check_sums);
}

void tw__redis_schedule_detach(struct tw__redis_schedule *schedule)
{
    if (!schedule->attached)
        return;
    tw__list_remove(&schedule->all);
    tw__list_append(&schedule->schedules->detached, &schedule->all);
    schedule->attached = false;
    tw__redis_sums_schedule(schedule, -1);
    tw__redis_check_changed(schedule->schedules, tw__redis_check_sums);
}

size_t tw__redis_schedule_bytes(const struct tw__redis_schedule *schedule)
{
    return schedule->bytes;
}

/* ---- tasks ----------------------------------------------------------------------------------------------- */

uint64_t tw__redis_schedule_hash(const struct tw__redis_schedules *schedules, struct tw__redis_bytes id)
{
    return tw__redis_table_hash(&schedules->of_tasks, id.at, id.size);
}

uint64_t tw__redis_schedule_foresee(const struct tw__redis_schedules *schedules, struct tw__redis_bytes id)
{
    uint64_t hash = tw__redis_schedule_hash(schedules, id);
    if (schedules->recent != NULL)
        tw__redis_table_prefetch_directory(&schedules->recent->tasks, hash);
    return hash;
}

void tw__redis_schedule_foresee_cells(const struct tw__redis_schedules *schedules, uint64_t hash)
{
    if (schedules->recent != NULL)
        tw__redis_table_prefetch(&schedules->recent->tasks, hash);
}

void tw__redis_schedule_foresee_removal(const struct tw__redis_schedule *schedule, uint64_t hash)
{
    void *task = tw__redis_table_prefetch_entry(&schedule->tasks, hash);
    if (task != NULL)
        (void)schedule->schedules->memory.usable(task); /* reads the allocator's entry while the task arrives */
}

struct tw__redis_task *tw__redis_schedule_find(const struct tw__redis_schedule *schedule, uint64_t hash,
                                               struct tw__redis_bytes id)
{
    return tw__redis_table_find(&schedule->tasks, hash, id.at, id.size);
}

/* Takes a task from its place, from its route and from the payload that it shares. */
static void leave(struct tw__redis_schedule *schedule, struct tw__redis_task *task)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    struct tw__redis_route *route = tw__redis_route_of(schedules, task);
    if (schedules->delivering == task)
        schedules->delivering = NULL;
    tw__redis_place_unfile(schedules, task);
    tw__redis_sums_leased(schedule, task, -1);
    tw__redis_sums_block(schedule, task, -1);
    if (task->shares)
        tw__redis_share_leave(schedule, task);
    tw__redis_route_release(route);
}

void tw__redis_schedule_put(struct tw__redis_schedule *schedule, struct tw__redis_task *task,
                            struct tw__redis_route *route, uint64_t hash, struct tw__redis_task *old,
                            uint64_t now_ms)
{
    TW_ASSERT(route->schedule == schedule && !tw__redis_task_filed(task));
    TW_ASSERT(tw__redis_schedule_find(schedule, hash, tw__redis_task_id(task)) == old);
    task->route = route->index & (TW__REDIS_ROUTES_MAX - 1);
    tw__redis_route_keep(route);
    tw__redis_sums_block(schedule, task, 1);
    tw__redis_sums_leased(schedule, task, 1);
    if (task->shares)
        tw__redis_share_join(schedule, task);
    if (old != NULL) {
        leave(schedule, old);
        tw__redis_table_replace(&schedule->tasks, hash, old, task);
        schedule->schedules->memory.free(old);
    } else {
        size_t before = tw__redis_sums_table_bytes(schedule);
        tw__redis_sums_task(schedule, 1);
        tw__redis_table_add(&schedule->tasks, hash, task);
        tw__redis_sums_tables(schedule, before);
    }
    tw__redis_place_file(schedule->schedules, task, tw__redis_task_due(task), now_ms);
    tw__redis_check_changed(schedule->schedules, tw__redis_check_sums);
}

void tw__redis_schedule_remove(struct tw__redis_schedule *schedule, struct tw__redis_task *task, uint64_t hash)
{
    size_t before = tw__redis_sums_table_bytes(schedule);
    TW_ASSERT(tw__redis_schedule_find(schedule, hash, tw__redis_task_id(task)) == task);
    tw__redis_table_remove(&schedule->tasks, hash, task);
    tw__redis_sums_tables(schedule, before);
    tw__redis_sums_task(schedule, -1);
    leave(schedule, task);
    schedule->schedules->memory.free(task);
    tw__redis_check_changed(schedule->schedules, tw__redis_check_sums);
}

/* Whether a life has the strings that the task's own life has, so that it fits in the task's block. */
static bool fits_in_place(const struct tw__redis_task *task, const struct tw__redis_life *life)
{
    if (!task->lived || life == NULL)
        return false;
    struct tw__redis_life own = tw__redis_task_whole_life(task);
    return tw__redis_bytes_equal(own.worker, life->worker) && tw__redis_bytes_equal(own.error, life->error);
}

/* Lets a copy take the place of a task, which it frees. */
static void replace_block(struct tw__redis_schedule *schedule, struct tw__redis_task *task,
                          struct tw__redis_task *copy)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    tw__redis_schedule_moved(schedule, task, copy);
    tw__redis_sums_block(schedule, copy, 1);
    tw__redis_sums_block(schedule, task, -1);
    if (schedules->delivering == task)
        schedules->delivering = copy;
    schedules->memory.free(task);
}

struct tw__redis_task *tw__redis_schedule_relive(struct tw__redis_schedule *schedule,
                                                 struct tw__redis_task *task, const struct tw__redis_life *life)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    TW_ASSERT(tw__redis_task_stage(task) != TW__REDIS_DEAD || !tw__redis_task_filed(task));
    tw__redis_sums_leased(schedule, task, -1);
    if (task->shares)
        tw__redis_share_dead(schedule, task, -1);
    if (fits_in_place(task, life)) {
        tw__redis_task_set_life(task, life);
    } else if (task->lived || life != NULL) {
        struct tw__redis_task *copy = tw__redis_task_relive(task, life, &schedules->memory);
        replace_block(schedule, task, copy);
        task = copy;
    }
    tw__redis_sums_leased(schedule, task, 1);
    if (task->shares)
        tw__redis_share_dead(schedule, task, 1);
    tw__redis_check_changed(schedules, tw__redis_check_sums);
    return task;
}

struct tw__redis_task *tw__redis_schedule_share(struct tw__redis_schedule *schedule,
                                                struct tw__redis_task *task)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    if (task->shares && tw__redis_task_share(task)->users < TW__REDIS_USERS_MAX)
        return task;
    bool dead = tw__redis_task_stage(task) == TW__REDIS_DEAD;
    struct tw__redis_share *share = tw__redis_share_new(schedule, task);
    struct tw__redis_task *copy = tw__redis_task_sharing(task, share, &schedules->memory);
    if (dead) {
        tw__redis_sums_dead_block(schedule, task, -1);
        tw__redis_sums_dead_block(schedule, copy, 1);
    }
    replace_block(schedule, task, copy);
    tw__redis_check_changed(schedules, tw__redis_check_sums);
    return copy;
}

void tw__redis_schedule_begin_anew(struct tw__redis_schedule *schedule, struct tw__redis_task *task,
                                   uint64_t due_ms, uint64_t now_ms)
{
    tw__redis_place_unfile(schedule->schedules, task);
    task = tw__redis_schedule_relive(schedule, task, NULL);
    tw__redis_task_set_tries(task, 0);
    tw__redis_place_file(schedule->schedules, task, due_ms, now_ms);
}

void tw__redis_schedule_moved(struct tw__redis_schedule *schedule, const struct tw__redis_task *old,
                              struct tw__redis_task *task)
{
    tw__redis_place_moved(task);
    if (task->shares)
        tw__redis_share_moved(old, task);
    tw__redis_table_replace(&schedule->tasks,
                            tw__redis_schedule_hash(schedule->schedules, tw__redis_task_id(task)), old, task);
}

bool tw__redis_schedule_relocate(struct tw__redis_schedule *schedule, uint64_t *segment,
                                 void *(*move)(void *old))
{
    size_t before = tw__redis_sums_table_bytes(schedule);
    bool there = tw__redis_table_relocate(&schedule->tasks, segment, move);
    tw__redis_sums_tables(schedule, before);
    return there;
}

uint64_t tw__redis_schedule_drop(struct tw__redis_schedule *schedule, uint64_t limit)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    uint64_t dropped = 0;
    TW_ASSERT(!schedule->attached);
    struct tw__redis_task *task;
    while (dropped < limit && (task = tw__redis_table_pop(&schedule->tasks)) != NULL) {
        if (schedules->delivering == task)
            schedules->delivering = NULL;
        tw__redis_place_unfile(schedules, task);
        tw__redis_sums_leased(schedule, task, -1);
        if (task->shares)
            tw__redis_share_leave(schedule, task);
        schedules->memory.free(task);
        schedules->reaping--;
        dropped++;
    }
    return dropped;
}
