/* SPDX-License-Identifier: MIT
 *
 * A batch of deliveries: what leaves its schedule, what is filed again, and how the log and the replicas come to know.
 *
 * What has been delivered stays in its schedule while a few more are delivered, so that what taking it out needs is
 * fetched meanwhile. At the end of the batch TW.FIRED names what has left, one for each schedule.
 *
 * While the server does what it is called for, other modules may be told of it, and may call commands of ours, or remove
 * keys: so may they when a key is opened whose time to live is over, and when they are told of what we did. So before
 * they see or change anything, what has been delivered leaves, in the log too. A task that is not what it was when a call
 * returns is left alone, and of a schedule nothing but its name is kept while anybody is told.
 *
 * Replicas do not remove an emptied schedule by themselves: what a handler does with it meanwhile is logged between
 * TW.FIRED and DEL, as it happened here.
 */
#include "batch.h"

#include <string.h>

#include "keys.h"
#include "strings.h"
#include "schedules/place.h"
#include "schedules/schedule.h"

enum { LEAVING = 8 };

static struct tw__schedule *touched;
static RedisModuleCtx *batch; /* the context of the batch that is open, or NULL */
static bool disturbed;        /* since tw__batch_watch() something may have been looked at or changed */

/* ---- what is replicated ------------------------------------------------------------------------------------------ */

void tw__batch_touch(struct tw__schedule *schedule)
{
    if (schedule->in_batch)
        return;
    schedule->in_batch = true;
    schedule->touched = touched;
    touched = schedule;
}

static void replicate(RedisModuleCtx *ctx, struct tw__schedule *schedule, const char *what,
                      struct tw__vector *strings)
{
    if (strings->count > 0)
        RedisModule_Replicate(ctx, "TW.FIRED", "scv", schedule->name, what, strings->at, strings->count);
    for (size_t i = 0; i < strings->count; i++)
        RedisModule_FreeString(NULL, strings->at[i]);
    RedisModule_Free(strings->at);
    memset(strings, 0, sizeof *strings);
}

static void replicate_left(RedisModuleCtx *ctx, struct tw__schedule *schedule)
{
    RedisModule_SelectDb(ctx, schedule->db);
    replicate(ctx, schedule, "NEXT", &schedule->next);
    replicate(ctx, schedule, "ONCE", &schedule->once);
}

/* ---- leaving -------------------------------------------------------------------------------------------------------- */

/* Tasks that have been delivered and are in their schedules still, so that what taking them out needs is fetched while
 * others are delivered. */
static struct {
    struct tw__schedule *schedule;
    struct tw__task *task;
    uint64_t hash;
} leaving[LEAVING];
static uint32_t leaving_count;

static void let_leave(void)
{
    for (uint32_t i = 0; i < leaving_count; i++)
        tw__schedule_remove(leaving[i].schedule, leaving[i].task, leaving[i].hash);
    leaving_count = 0;
}

/* The task leaves its schedule for good. */
static void finish_task(struct tw__schedule *schedule, struct tw__task *task)
{
    struct tw__bytes id = tw__task_id(task);
    uint64_t hash = tw__schedule_hash(tw__shared.schedules, id);
    tw__table_prefetch(&schedule->tasks, hash);
    if (leaving_count == LEAVING)
        let_leave();
    leaving[leaving_count].schedule = schedule;
    leaving[leaving_count].task = task;
    leaving[leaving_count++].hash = hash;
    tw__batch_touch(schedule);
    schedule->left = true;
    tw__vector_add(&schedule->once, tw__string_new(id), &tw__shared.schedules->memory);
}

/* ---- from beginning to end ------------------------------------------------------------------------------------------ */

void tw__batch_begin(RedisModuleCtx *ctx)
{
    batch = ctx;
}

static void log_left(void)
{
    int db = RedisModule_GetSelectedDb(batch);
    let_leave();
    for (struct tw__schedule *schedule = touched; schedule != NULL; schedule = schedule->touched)
        replicate_left(batch, schedule);
    RedisModule_SelectDb(batch, db);
}

/* What is told when a batch ends: names, as a handler may remove any schedule. */
struct told {
    struct told *following;
    RedisModuleString *name;
    int db;
};

/* Has all schedules leave the batch; answers the names of those that tasks have left. */
static struct told *release(void)
{
    struct told *all = NULL;
    while (touched != NULL) {
        struct tw__schedule *schedule = touched;
        touched = schedule->touched;
        if (schedule->left) {
            struct told *one = RedisModule_Alloc(sizeof *one);
            *one = (struct told){all, RedisModule_CreateStringFromString(NULL, schedule->name), schedule->db};
            all = one;
        }
        schedule->in_batch = schedule->left = false;
    }
    return all;
}

void tw__batch_finish(void)
{
    int db = RedisModule_GetSelectedDb(batch);
    log_left();
    for (struct told *one = release(), *following; one != NULL; one = following) {
        following = one->following;
        RedisModule_SelectDb(batch, one->db);
        tw__keys_changed(batch, one->name, "tw.fired");
        tw__keys_remove_if_empty(batch, one->name, true);
        RedisModule_FreeString(NULL, one->name);
        RedisModule_Free(one);
    }
    RedisModule_SelectDb(batch, db);
    tw__shared.schedules->probe = NULL;
    batch = NULL;
}

void tw__batch_forget(struct tw__schedule *schedule)
{
    if (!schedule->in_batch)
        return;
    struct tw__schedule **link = &touched;
    while (*link != schedule)
        link = &(*link)->touched;
    *link = schedule->touched;
    schedule->in_batch = schedule->left = false;
}

/* ---- other modules ---------------------------------------------------------------------------------------------------- */

void tw__batch_watch(struct tw__task *task)
{
    disturbed = false;
    tw__shared.schedules->delivering = task;
}

bool tw__batch_same(const struct tw__task *task)
{
    bool same =
        tw__shared.schedules->delivering == task && tw__schedule_of(tw__shared.schedules, task)->attached;
    tw__shared.schedules->delivering = NULL;
    return same;
}

bool tw__batch_open(void)
{
    return batch != NULL;
}

bool tw__batch_disturbed(void)
{
    return disturbed;
}

void tw__batch_settle(void)
{
    if (batch == NULL)
        return;
    disturbed = true;
    log_left();
}

/* ---- after a delivery ---------------------------------------------------------------------------------------------- */

/* The task is due again at `due`, unless that is past the end of time. */
static void file_again(struct tw__schedule *schedule, struct tw__task *task, uint64_t due, uint64_t times,
                       uint64_t now_ms)
{
    if (times == 0 || due > TW__TIME_MAX) {
        finish_task(schedule, task);
        return;
    }
    tw__batch_touch(schedule);
    schedule->left = true;
    tw__vector_add(&schedule->next, tw__string_new(tw__task_id(task)), &tw__shared.schedules->memory);
    tw__vector_add(&schedule->next, tw__string_of_number(due), &tw__shared.schedules->memory);
    tw__vector_add(&schedule->next,
                   RedisModule_CreateStringFromLongLong(NULL, times == TW__FOR_EVER ? -1 : (long long)times),
                   &tw__shared.schedules->memory);
    tw__task_set_times(task, times);
    tw__task_set_tries(task, 0);
    tw__place_file(tw__shared.schedules, task, due, now_ms);
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* One delivery less to make. */
void tw__batch_go_on(struct tw__schedule *schedule, struct tw__task *task, uint64_t now_ms)
{
    uint64_t every = tw__task_every(task), times = tw__task_times(task);
    if (every == 0)
        finish_task(schedule, task);
    else
        file_again(schedule, task, add(tw__task_due(task), every), times == TW__FOR_EVER ? times : times - 1,
                   now_ms);
}

void tw__batch_end_task(struct tw__schedule *schedule, struct tw__task *task)
{
    finish_task(schedule, task);
}

/* ---- being late ------------------------------------------------------------------------------------------------------ */

/* LATE DROP: passes over what is too late. Returns whether the task has been dealt with. */
bool tw__batch_drop_late(struct tw__schedule *schedule, struct tw__task *task, uint64_t late_ms,
                         uint64_t now_ms)
{
    uint64_t due = tw__task_due(task), every = tw__task_every(task);
    if (due >= now_ms || now_ms - due <= late_ms)
        return false;
    uint64_t periods = every == 0 ? 1 : (now_ms - due - late_ms - 1) / every + 1;
    tw__shared.counts.dropped += periods;
    if (every == 0)
        finish_task(schedule, task);
    else
        file_again(schedule, task, due + periods * every, tw__task_times(task), now_ms);
    return true;
}
