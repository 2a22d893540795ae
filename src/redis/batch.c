/* SPDX-License-Identifier: MIT
 *
 * A batch of deliveries: what leaves its schedule, what is filed again, and how the log and the replicas come to know.
 *
 * What has been delivered stays in its schedule while a few more are delivered, so that what taking it out needs is
 * fetched meanwhile. At the end of the batch TW.FIRED names what has left, one for each schedule.
 *
 * While the server does what it is called for, other modules may be told of it, and may call commands of ours, or remove
 * keys. So before that is let happen, what has been delivered leaves, in the log too, and a task that is not what it was
 * when the call returns is left alone.
 */
#include "module.h"

#include <string.h>

enum { LEAVING = 8 };

static struct tw__schedule *touched;
static RedisModuleCtx *calling; /* the batch's context while a call is made; else NULL */
static bool disturbed;          /* something was looked at or changed during the present call */

RedisModuleString *tw__new_string(struct tw__bytes bytes)
{
    return RedisModule_CreateString(NULL, bytes.at, bytes.size);
}

RedisModuleString *tw__new_number(uint64_t number)
{
    return RedisModule_CreateStringFromLongLong(NULL, (long long)number);
}

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

static void finish(RedisModuleCtx *ctx, struct tw__schedule *schedule)
{
    bool left = schedule->left;
    schedule->in_batch = schedule->left = false;
    replicate_left(ctx, schedule);
    if (!left || !schedule->attached)
        return;
    RedisModuleString *name = RedisModule_CreateStringFromString(NULL, schedule->name);
    tw__changed(ctx, name, "tw.fired");
    tw__remove_if_empty(ctx, name, schedule);
    RedisModule_FreeString(NULL, name);
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
    uint64_t hash = tw__table_hash(id.at, id.size);
    tw__table_prefetch(&schedule->tasks, hash);
    if (leaving_count == LEAVING)
        let_leave();
    leaving[leaving_count].schedule = schedule;
    leaving[leaving_count].task = task;
    leaving[leaving_count++].hash = hash;
    tw__batch_touch(schedule);
    schedule->left = true;
    tw__vector_add(&schedule->once, tw__new_string(id));
}

void tw__batch_finish(RedisModuleCtx *ctx)
{
    int db = RedisModule_GetSelectedDb(ctx);
    let_leave();
    while (touched != NULL) {
        struct tw__schedule *schedule = touched;
        touched = schedule->touched;
        finish(ctx, schedule);
    }
    RedisModule_SelectDb(ctx, db);
    tw__all.turn = NULL;
}

/* ---- other modules ---------------------------------------------------------------------------------------------------- */

void tw__batch_call_begins(RedisModuleCtx *ctx, struct tw__task *task)
{
    disturbed = false;
    tw__all.delivering = task;
    calling = ctx;
}

bool tw__batch_call_ended(const struct tw__task *task)
{
    bool same = tw__all.delivering != NULL && tw__schedule_of(task)->attached;
    calling = NULL;
    tw__all.delivering = NULL;
    return same;
}

bool tw__batch_calling(void)
{
    return calling != NULL;
}

bool tw__batch_disturbed(void)
{
    return disturbed;
}

void tw__batch_settle(void)
{
    if (calling == NULL)
        return;
    int db = RedisModule_GetSelectedDb(calling);
    disturbed = true;
    let_leave();
    for (struct tw__schedule *schedule = touched; schedule != NULL; schedule = schedule->touched)
        replicate_left(calling, schedule);
    RedisModule_SelectDb(calling, db);
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
    tw__vector_add(&schedule->next, tw__new_string(tw__task_id(task)));
    tw__vector_add(&schedule->next, tw__new_number(due));
    tw__vector_add(&schedule->next,
                   RedisModule_CreateStringFromLongLong(NULL, times == TW__FOR_EVER ? -1 : (long long)times));
    tw__task_set_times(task, times);
    tw__task_set_tries(task, 0);
    tw__file(task, due, now_ms);
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

/* ---- being late ------------------------------------------------------------------------------------------------------ */

/* LATE DROP: passes over what is too late. Returns whether the task has been dealt with. */
bool tw__batch_drop_late(struct tw__schedule *schedule, struct tw__task *task, uint64_t late_ms,
                         uint64_t now_ms)
{
    uint64_t due = tw__task_due(task), every = tw__task_every(task);
    if (due >= now_ms || now_ms - due <= late_ms)
        return false;
    uint64_t periods = every == 0 ? 1 : (now_ms - due - late_ms - 1) / every + 1;
    tw__counts.dropped += periods;
    if (every == 0)
        finish_task(schedule, task);
    else
        file_again(schedule, task, due + periods * every, tw__task_times(task), now_ms);
    return true;
}
