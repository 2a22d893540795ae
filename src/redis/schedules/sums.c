/* SPDX-License-Identifier: MIT
 *
 * Counts of a schedule, and their sums.
 *
 * Invariants
 * C1 A schedule is in the list of attached or of detached schedules, as its member `attached` says.
 * C2 Each sum adds up the counts of all attached schedules; `reaping` counts the tasks of detached schedules.
 * C3 The bytes of an attached schedule are those of its block, its tables, and the blocks of its tasks, of the
 *    payloads that they share, and of its routes.
 * C4 A schedule is too large if it is attached and its dump may take more than dump_limit bytes.
 * C5 The paused schedules come first in the list of attached schedules. So a look at the beginning of a long
 *    list finds a pause that somebody has forgotten.
 * C6 The bytes of dead tasks are those of the blocks in the line of dead tasks, and of each shared payload
 *    that has a dead user.
 */
#include "sums.h"

#include <base/list.h>

/* ---- schedules that are too large to be moved ------------------------------------------------------------ */

/* In memory a task has its block and a cell of the table of ids. In a dump it has the number of its route,
 * its due time, flags and sizes instead. A chunk ends after TW__REDIS_CHUNK_BYTES. If the definitions of all
 * routes take no more than half of that, tasks fill the other half. */
uint64_t tw__redis_sums_dump_most(const struct tw__redis_schedule *schedule)
{
    enum { ROUTE = 5, NUMBER = 2, DUE = 5, FLAGS = 1, SIZE = 3, REPEAT = 2, CHUNK = 24, SNAPSHOT = 64 };
    const uint64_t beside = offsetof(struct tw__redis_task, rest) + sizeof(uint64_t);
    uint64_t tasks = tw__redis_table_count(&schedule->tasks), routes = tw__redis_table_count(&schedule->routes);
    uint64_t definition = schedule->longest_route + ROUTE, chunks = tasks;
    if (routes * definition <= TW__REDIS_CHUNK_BYTES / 2)
        chunks = tasks / TW__REDIS_CHUNK_TASKS + schedule->bytes / (TW__REDIS_CHUNK_BYTES / 2) + 1;
    uint64_t definitions = routes * chunks < tasks ? routes * chunks : tasks;
    return schedule->bytes - tasks * (beside - NUMBER - DUE - FLAGS - SIZE - REPEAT) +
           definitions * definition + chunks * CHUNK + SNAPSHOT;
}

/* Keeps `too_large` correct, so that INFO does not have to go through all schedules. A task or a route that
 * comes or goes changes the bytes, so count_bytes() calls this function. tw__redis_sums_schedule() calls it
 * for schedules that come or go. */
static void weigh(struct tw__redis_schedule *schedule)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    bool too_large = schedule->attached && tw__redis_sums_dump_most(schedule) > schedules->dump_limit;
    if (too_large == schedule->too_large)
        return;
    schedule->too_large = too_large;
    schedules->too_large += too_large ? 1 : (uint64_t)-1;
}

/* Sets a limit. If it is another one than before, each attached schedule is looked at. */
static void set_limit(struct tw__redis_schedules *schedules, uint64_t *limit, uint64_t value,
                      void (*look_at)(struct tw__redis_schedule *schedule))
{
    if (value == *limit)
        return;
    *limit = value;
    for (struct tw__link *link = schedules->attached.next; link != &schedules->attached; link = link->next)
        look_at(tw__redis_schedule_at(link));
}

void tw__redis_sums_limit_dump(struct tw__redis_schedules *schedules, uint64_t bytes)
{
    set_limit(schedules, &schedules->dump_limit, bytes, weigh);
}

/* ---- schedules with too many dead tasks ------------------------------------------------------------------ */

static void weigh_dead(struct tw__redis_schedule *schedule)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    bool too_many = schedules->dead_limit > 0 && schedule->dead_count > schedules->dead_limit;
    if (schedule->attached && too_many && !tw__link_listed(&schedule->stale))
        tw__list_append(&schedules->stale, &schedule->stale);
}

void tw__redis_sums_limit_dead(struct tw__redis_schedules *schedules, uint64_t count)
{
    set_limit(schedules, &schedules->dead_limit, count, weigh_dead);
}

/* ---- bytes ----------------------------------------------------------------------------------------------- */

static void count_bytes(struct tw__redis_schedule *schedule, int64_t more)
{
    schedule->bytes += (uint64_t)more;
    if (schedule->attached)
        schedule->schedules->bytes += (uint64_t)more;
    weigh(schedule);
}

void tw__redis_sums_block(struct tw__redis_schedule *schedule, void *block, int sign)
{
    count_bytes(schedule, sign * (int64_t)schedule->schedules->memory.usable(block));
}

size_t tw__redis_sums_table_bytes(const struct tw__redis_schedule *schedule)
{
    return tw__redis_table_bytes(&schedule->tasks) + tw__redis_table_bytes(&schedule->routes);
}

void tw__redis_sums_tables(struct tw__redis_schedule *schedule, size_t before)
{
    count_bytes(schedule, (int64_t)tw__redis_sums_table_bytes(schedule) - (int64_t)before);
}

/* ---- tasks and schedules --------------------------------------------------------------------------------- */

/* The `empty` of a schedule: 1 if it is to be removed. */
static uint64_t is_empty(const struct tw__redis_schedule *schedule)
{
    return tw__redis_table_count(&schedule->tasks) == 0 && !schedule->paused;
}

static uint64_t stopped_of(const struct tw__redis_schedule *schedule)
{
    return schedule->paused ? schedule->in_line : 0;
}

/* Adds the numbers that a pause changes to the sums (`one` 1), or subtracts them (-1). */
static void count_pause(const struct tw__redis_schedule *schedule, uint64_t one)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    schedules->empty += one * is_empty(schedule);
    schedules->paused += one * schedule->paused;
    schedules->stopped += one * stopped_of(schedule);
}

void tw__redis_sums_schedule(struct tw__redis_schedule *schedule, int sign)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    uint64_t one = (uint64_t)(int64_t)sign;
    schedules->count += one;
    count_pause(schedule, one);
    schedules->pending += one * tw__redis_table_count(&schedule->tasks);
    schedules->in_line += one * schedule->in_line;
    schedules->held += one * schedule->held;
    schedules->ready_count += one * schedule->ready_count;
    schedules->leased_count += one * schedule->leased_count;
    schedules->dead_count += one * schedule->dead_count;
    schedules->bytes += one * schedule->bytes;
    schedules->dead_bytes += one * schedule->dead_bytes;
    schedules->reaping -= one * tw__redis_table_count(&schedule->tasks);
    weigh(schedule);
    weigh_dead(schedule);
}

void tw__redis_sums_task(struct tw__redis_schedule *schedule, int sign)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    if (schedule->attached) {
        schedules->pending += (uint64_t)(int64_t)sign;
        schedules->empty -= is_empty(schedule) ? (uint64_t)(int64_t)sign : 0;
    } else {
        schedules->reaping += (uint64_t)(int64_t)sign;
    }
}

void tw__redis_sums_list(struct tw__redis_schedule *schedule)
{
    struct tw__link *attached = &schedule->schedules->attached;
    tw__list_insert(&schedule->all, schedule->paused ? attached->next : attached);
}

void tw__redis_sums_pause(struct tw__redis_schedule *schedule, bool paused)
{
    if (!schedule->attached) {
        schedule->paused = paused;
        return;
    }
    count_pause(schedule, (uint64_t)-1);
    schedule->paused = paused;
    count_pause(schedule, 1);
    tw__list_remove(&schedule->all);
    tw__redis_sums_list(schedule);
}

/* ---- places and stages ----------------------------------------------------------------------------------- */

/* Adds to a count of a schedule, and to the sum over all attached schedules. */
static void add(const struct tw__redis_schedule *schedule, uint64_t *own, uint64_t *all, int more)
{
    *own += (uint64_t)(int64_t)more;
    if (schedule->attached)
        *all += (uint64_t)(int64_t)more;
}

void tw__redis_sums_in_line(struct tw__redis_schedule *schedule, int more)
{
    add(schedule, &schedule->in_line, &schedule->schedules->in_line, more);
    if (schedule->attached && schedule->paused)
        schedule->schedules->stopped += (uint64_t)(int64_t)more;
}

void tw__redis_sums_held(struct tw__redis_schedule *schedule, int more)
{
    add(schedule, &schedule->held, &schedule->schedules->held, more);
}

void tw__redis_sums_ready(struct tw__redis_schedule *schedule, int more)
{
    add(schedule, &schedule->ready_count, &schedule->schedules->ready_count, more);
}

void tw__redis_sums_dead_block(struct tw__redis_schedule *schedule, void *block, int sign)
{
    uint64_t more = (uint64_t)(int64_t)sign * schedule->schedules->memory.usable(block);
    schedule->dead_bytes += more;
    if (schedule->attached)
        schedule->schedules->dead_bytes += more;
}

void tw__redis_sums_dead(struct tw__redis_schedule *schedule, struct tw__redis_task *task, int sign)
{
    add(schedule, &schedule->dead_count, &schedule->schedules->dead_count, sign);
    tw__redis_sums_dead_block(schedule, task, sign);
    weigh_dead(schedule);
}

void tw__redis_sums_leased(struct tw__redis_schedule *schedule, const struct tw__redis_task *task, int sign)
{
    if (tw__redis_task_stage(task) == TW__REDIS_LEASED)
        add(schedule, &schedule->leased_count, &schedule->schedules->leased_count, sign);
}
