/* SPDX-License-Identifier: MIT
 *
 * The server may free a value on a background thread (UNLINK, FLUSHALL ASYNC). That thread must not touch the
 * tasks, as they are linked into the wheel together with tasks of other schedules. So the background thread
 * puts the schedule on the list of graves, which alone has a lock here. The server's own thread then takes
 * the tasks out, a few at a time.
 */
#include "grave.h"

#include <base/assert.h>
#include <base/list.h>

#include "schedule.h"

void tw__redis_grave_bury(struct tw__redis_schedule *schedule)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    TW_ASSERT(!schedule->attached);
    pthread_mutex_lock(&schedules->graves_lock);
    schedule->grave = schedules->graves;
    schedules->graves = schedule;
    pthread_mutex_unlock(&schedules->graves_lock);
}

bool tw__redis_grave_reaping(const struct tw__redis_schedules *schedules)
{
    return !tw__list_empty(&schedules->detached);
}

static struct tw__redis_schedule *first_grave(struct tw__redis_schedules *schedules)
{
    pthread_mutex_lock(&schedules->graves_lock);
    struct tw__redis_schedule *schedule = schedules->graves;
    pthread_mutex_unlock(&schedules->graves_lock);
    return schedule;
}

/* Takes a grave off the list. Another thread may have put a newer grave before it meanwhile. */
static void close_grave(struct tw__redis_schedule *schedule)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    pthread_mutex_lock(&schedules->graves_lock);
    struct tw__redis_schedule **link = &schedules->graves;
    while (*link != schedule)
        link = &(*link)->grave;
    *link = schedule->grave;
    pthread_mutex_unlock(&schedules->graves_lock);
}

/* Frees up to `limit` tasks of one schedule, and the schedule too if it then has no tasks. */
static uint64_t reap_one(struct tw__redis_schedule *schedule, uint64_t limit)
{
    uint64_t freed = tw__redis_schedule_drop(schedule, limit);
    if (freed < limit && tw__redis_table_count(&schedule->tasks) == 0) {
        close_grave(schedule);
        tw__redis_schedule_free(schedule);
    }
    return freed;
}

uint64_t tw__redis_grave_reap(struct tw__redis_schedules *schedules, uint64_t limit)
{
    uint64_t freed = 0;
    struct tw__redis_schedule *schedule;
    while (freed < limit && (schedule = first_grave(schedules)) != NULL)
        freed += reap_one(schedule, limit - freed) + 1;
    return freed;
}

void tw__redis_grave_reap_all(struct tw__redis_schedules *schedules)
{
    while (tw__redis_grave_reap(schedules, UINT64_MAX) > 0)
        ;
}
