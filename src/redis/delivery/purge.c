/* SPDX-License-Identifier: MIT
 *
 * The schedules with dead tasks are in a list, and each look goes on where the last one has ended. So the
 * cost of a look depends neither on the number of schedules nor on that of dead tasks.
 */
#include "purge.h"

#include <base/list.h>

#include "call.h"
#include "schedules/lease.h"
#include "schedules/place.h"
#include "schedules/share.h"
#include "server/config.h"

enum { LOOK_AT = 16, PURGE_MAX = 50 }; /* schedules in one look; tasks of one schedule in one call */

void tw__redis_purge_task(struct tw__redis_schedule *schedule, struct tw__redis_task *task,
                          struct tw__redis_buffer *log)
{
    tw__redis_lease_remove(schedule, task, log);
    tw__redis_shared.counts.purged++;
}

/* The first dead period of a series, if the last task that died is one too many of it; else NULL. */
static struct tw__redis_task *old_period(const struct tw__redis_schedule *schedule)
{
    struct tw__link *last = schedule->dead.prev;
    return last == &schedule->dead ? NULL : tw__redis_share_excess(tw__redis_task_of_link(last));
}

bool tw__redis_purge_excess(struct tw__redis_schedule *schedule, struct tw__redis_buffer *log)
{
    uint64_t most = (uint64_t)tw__redis_config.dead_max;
    struct tw__redis_task *period = old_period(schedule);
    int purged = period != NULL;
    if (period != NULL)
        tw__redis_purge_task(schedule, period, log);
    for (; purged < PURGE_MAX && most > 0 && schedule->dead_count > most; purged++)
        tw__redis_purge_task(schedule, tw__redis_place_first_dead(schedule), log);
    return purged > 0;
}

void tw__redis_purge_after_death(struct tw__redis_batch *batch, struct tw__redis_schedule *schedule)
{
    tw__redis_batch_tell(batch, schedule, TW__REDIS_TELL_DEAD);
    if (tw__redis_purge_excess(schedule, tw__redis_batch_log(batch, schedule)))
        tw__redis_batch_tell(batch, schedule, TW__REDIS_TELL_PURGED);
}

/* The dead task of a schedule that died first, if it has stayed too long, or if there are too many; else
 * NULL. */
static struct tw__redis_task *old_task(const struct tw__redis_schedule *schedule, uint64_t now_ms)
{
    struct tw__redis_task *task = tw__redis_place_first_dead(schedule);
    uint64_t most_ms = (uint64_t)tw__redis_config.dead_ms, most = (uint64_t)tw__redis_config.dead_max;
    if (task == NULL || (most > 0 && schedule->dead_count > most))
        return task;
    bool old = most_ms > 0 && tw__redis_task_due(task) < now_ms && now_ms - tw__redis_task_due(task) >= most_ms;
    return old ? task : NULL;
}

/* Takes the next schedule with dead tasks, and puts it to the end of the list. */
static struct tw__redis_schedule *next_schedule(void)
{
    struct tw__link *list = &tw__redis_shared.schedules->with_dead;
    struct tw__redis_schedule *schedule = TW_CONTAINER(list->next, struct tw__redis_schedule, with_dead);
    tw__list_remove(&schedule->with_dead);
    tw__list_append(list, &schedule->with_dead);
    return schedule;
}

static bool may_be_old(void)
{
    return (tw__redis_config.dead_ms > 0 || tw__redis_config.dead_max > 0) &&
           !tw__list_empty(&tw__redis_shared.schedules->with_dead);
}

bool tw__redis_purge_any_old(uint64_t now_ms)
{
    const struct tw__link *list = &tw__redis_shared.schedules->with_dead;
    for (int i = 0; i < LOOK_AT && may_be_old(); i++) {
        struct tw__redis_schedule *schedule = next_schedule();
        if (schedule->attached && old_task(schedule, now_ms) != NULL) {
            /* to the head, where tw__redis_purge_old() begins */
            tw__list_remove(&schedule->with_dead);
            tw__list_insert(&schedule->with_dead, list->next);
            return true;
        }
    }
    return false;
}

/* Whether the server lets us write to the schedule now. */
static bool may_write(struct tw__redis_batch *batch, struct tw__redis_task *task, uint64_t now_ms)
{
    struct tw__redis_delivery delivery;
    tw__redis_delivery_init(&delivery, batch, task, now_ms);
    RedisModule_SelectDb(batch->ctx, delivery.schedule->db);
    return tw__redis_call_may_write(&delivery) != TW__REDIS_GONE && delivery.why == TW__REDIS_DEFER_NONE;
}

void tw__redis_purge_old(struct tw__redis_batch *batch, uint64_t now_ms)
{
    for (int i = 0; i < LOOK_AT && may_be_old(); i++) {
        struct tw__redis_schedule *schedule = next_schedule();
        struct tw__redis_task *task = schedule->attached ? old_task(schedule, now_ms) : NULL;
        if (task == NULL || !may_write(batch, task, now_ms))
            continue;
        tw__redis_batch_tell(batch, schedule, TW__REDIS_TELL_PURGED);
        for (int j = 0; j < PURGE_MAX && (task = old_task(schedule, now_ms)) != NULL; j++)
            tw__redis_purge_task(schedule, task, tw__redis_batch_log(batch, schedule));
    }
}
