/* SPDX-License-Identifier: MIT
 *
 * A delivered task stays in its schedule while a few more tasks are delivered. Meanwhile the memory that its
 * removal touches is prefetched. At the end of the batch TW.FIRED names the tasks that have left (ONCE), the
 * tasks that are due again (NEXT), and the tasks that were leased anew, have failed or have died (LIVES),
 * schedule by schedule.
 *
 * RedisModule_Call() can run other modules' keyspace handlers, and so can opening an expired key or sending
 * our own notifications. Such a handler may call our commands or delete any key. So before a handler sees or
 * changes a schedule, the delivered tasks leave it, in the AOF too: keys.c, the only way to a schedule,
 * settles the open batch. If a task was changed or removed during a call, the delivery leaves it alone. While
 * notifications are sent, the batch keeps the names of schedules and nothing else of them.
 *
 * A replica does not remove an emptied schedule by itself; it waits for DEL. Commands that a handler runs on
 * the emptied schedule are replicated after TW.FIRED and before DEL, in the order in which they ran here.
 * Example: a handler of tw.fired adds a task to the emptied schedule. The replica then gets TW.FIRED, TW.ADD
 * and no DEL.
 *
 * Invariants of an open batch
 *   B1  A schedule with `in_batch` is attached, and is in the list of touched schedules. All other schedules
 *       have nothing to replicate.
 *   B2  A leaving task is filed nowhere. It is in the table of its schedule, which tells TW__REDIS_TELL_FIRED.
 */
#include "batch.h"

#include <base/assert.h>
#include <string.h>

#include "chores.h"
#include "schedules/place.h"
#include "schedules/schedule.h"
#include "server/strings.h"

/* ---- checking -------------------------------------------------------------------------------------------- */

#if TW_DEBUG > 1
/* Returns the name of the first broken invariant, or NULL. */
static const char *broken(const struct tw__redis_batch *batch)
{
    uint64_t touched = 0;
    for (const struct tw__redis_schedule *schedule = batch->touched; schedule != NULL;
         schedule = schedule->touched, touched++)
        if (!schedule->in_batch || !schedule->attached)
            return "B1: a touched schedule is not in the batch, or is detached";
    struct tw__link *attached = &tw__redis_shared.schedules->attached;
    for (struct tw__link *link = attached->next; link != attached; link = link->next) {
        const struct tw__redis_schedule *schedule = tw__redis_schedule_at(link);
        touched -= schedule->in_batch;
        if (!schedule->in_batch && (schedule->tells != 0 || schedule->once.count > 0 ||
                                    schedule->next.count > 0 || schedule->changes.size > 0))
            return "B1: a schedule outside the batch has something to replicate";
    }
    if (touched != 0)
        return "B1: a schedule in the batch is not in the list of touched schedules";
    for (uint32_t i = 0; i < batch->leaving_count; i++) {
        const struct tw__redis_leaving *leaving = &batch->leaving[i];
        if (tw__redis_task_filed(leaving->task) || !(leaving->schedule->tells & TW__REDIS_TELL_FIRED) ||
            tw__redis_schedule_find(leaving->schedule, leaving->hash, tw__redis_task_id(leaving->task)) !=
                leaving->task)
            return "B2: a leaving task is filed, or not in its schedule, or its schedule tells nothing";
    }
    return NULL;
}

static void expect_sound(const struct tw__redis_batch *batch)
{
    const char *fault = broken(batch);
    if (fault != NULL)
        RedisModule_Log(batch->ctx, "warning", "tickwheel: %s", fault);
    TW_ASSERT(fault == NULL);
}
#else
#define expect_sound(batch) ((void)(batch))
#endif

/* ---- replication ----------------------------------------------------------------------------------------- */

void tw__redis_batch_touch(struct tw__redis_batch *batch, struct tw__redis_schedule *schedule)
{
    TW_ASSERT(schedule->attached);
    if (schedule->in_batch)
        return;
    schedule->in_batch = true;
    schedule->touched = batch->touched;
    batch->touched = schedule;
}

static void replicate(RedisModuleCtx *ctx, struct tw__redis_schedule *schedule, const char *what,
                      struct tw__redis_vector *strings)
{
    if (strings->count > 0)
        RedisModule_Replicate(ctx, "TW.FIRED", "scv", schedule->name, what, strings->at, strings->count);
    for (size_t i = 0; i < strings->count; i++)
        RedisModule_FreeString(NULL, strings->at[i]);
    RedisModule_Free(strings->at);
    memset(strings, 0, sizeof *strings);
}

/* Replicates the names of tasks that were delivered: a task is due again, and later it leaves. */
static void replicate_names(RedisModuleCtx *ctx, struct tw__redis_schedule *schedule)
{
    int db = RedisModule_GetSelectedDb(ctx);
    RedisModule_SelectDb(ctx, schedule->db);
    replicate(ctx, schedule, "NEXT", &schedule->next);
    replicate(ctx, schedule, "ONCE", &schedule->once);
    RedisModule_SelectDb(ctx, db);
}

static void replicate_changes(RedisModuleCtx *ctx, struct tw__redis_schedule *schedule)
{
    if (schedule->changes.size == 0)
        return;
    int db = RedisModule_GetSelectedDb(ctx);
    RedisModule_SelectDb(ctx, schedule->db);
    RedisModule_Replicate(ctx, "TW.FIRED", "scb", schedule->name, "LIVES", schedule->changes.at,
                          schedule->changes.size);
    tw__redis_buffer_free(&schedule->changes, &tw__redis_shared.schedules->memory);
    RedisModule_SelectDb(ctx, db);
}

/* A schedule has names to replicate or changes, never both: one task may be in both, and their order counts. */
static void replicate_left(RedisModuleCtx *ctx, struct tw__redis_schedule *schedule)
{
    replicate_changes(ctx, schedule);
    replicate_names(ctx, schedule);
}

struct tw__redis_buffer *tw__redis_batch_log(struct tw__redis_batch *batch, struct tw__redis_schedule *schedule)
{
    tw__redis_batch_touch(batch, schedule);
    replicate_names(batch->ctx, schedule);
    return &schedule->changes;
}

/* ---- after a delivery ------------------------------------------------------------------------------------ */

static void let_leave(struct tw__redis_batch *batch)
{
    for (uint32_t i = 0; i < batch->leaving_count; i++)
        tw__redis_schedule_remove(batch->leaving[i].schedule, batch->leaving[i].task, batch->leaving[i].hash);
    batch->leaving_count = 0;
}

void tw__redis_batch_leave(struct tw__redis_batch *batch, struct tw__redis_schedule *schedule,
                           struct tw__redis_task *task)
{
    struct tw__redis_bytes id = tw__redis_task_id(task);
    uint64_t hash = tw__redis_schedule_hash(tw__redis_shared.schedules, id);
    TW_ASSERT(!tw__redis_task_filed(task));
    tw__redis_table_prefetch(&schedule->tasks, hash);
    if (batch->leaving_count == TW__REDIS_BATCH_LEAVING)
        let_leave(batch);
    batch->leaving[batch->leaving_count++] = (struct tw__redis_leaving){schedule, task, hash};
    tw__redis_batch_touch(batch, schedule);
    replicate_changes(batch->ctx, schedule);
    schedule->tells |= TW__REDIS_TELL_FIRED;
    tw__redis_vector_add(&schedule->once, tw__redis_string_new(id), &tw__redis_shared.schedules->memory);
    expect_sound(batch);
}

void tw__redis_batch_rearm(struct tw__redis_batch *batch, struct tw__redis_schedule *schedule,
                           struct tw__redis_task *task, uint64_t due, uint64_t times, uint64_t now_ms)
{
    TW_ASSERT(!tw__redis_task_filed(task));
    if (times == 0 || due > TW__REDIS_TIME_MAX) {
        tw__redis_batch_leave(batch, schedule, task);
        return;
    }
    tw__redis_batch_touch(batch, schedule);
    replicate_changes(batch->ctx, schedule);
    schedule->tells |= TW__REDIS_TELL_FIRED;
    tw__redis_vector_add(&schedule->next, tw__redis_string_new(tw__redis_task_id(task)),
                         &tw__redis_shared.schedules->memory);
    tw__redis_vector_add(&schedule->next, tw__redis_string_of_number(due), &tw__redis_shared.schedules->memory);
    tw__redis_vector_add(
        &schedule->next,
        RedisModule_CreateStringFromLongLong(NULL, times == TW__REDIS_FOR_EVER ? -1 : (long long)times),
        &tw__redis_shared.schedules->memory);
    tw__redis_task_set_times(task, times);
    tw__redis_task_set_tries(task, 0);
    tw__redis_place_file(tw__redis_shared.schedules, task, due, now_ms);
    expect_sound(batch);
}

void tw__redis_batch_tell(struct tw__redis_batch *batch, struct tw__redis_schedule *schedule, uint8_t what)
{
    tw__redis_batch_touch(batch, schedule);
    schedule->tells |= what;
}

/* ---- from beginning to end ------------------------------------------------------------------------------- */

void tw__redis_batch_begin(struct tw__redis_batch *batch, RedisModuleCtx *ctx)
{
    TW_ASSERT(tw__redis_shared.batch == NULL);
    tw__redis_chores_settle(); /* a handler may have left one since the tick began */
    batch->ctx = ctx;
    batch->touched = NULL;
    batch->settled = batch->leaving_count = 0;
    tw__redis_shared.batch = batch;
}

static void log_left(struct tw__redis_batch *batch)
{
    let_leave(batch);
    for (struct tw__redis_schedule *schedule = batch->touched; schedule != NULL; schedule = schedule->touched)
        replicate_left(batch->ctx, schedule);
    expect_sound(batch);
}

struct tw__redis_told *tw__redis_batch_release(struct tw__redis_batch *batch)
{
    struct tw__redis_told *all = NULL;
    log_left(batch);
    while (batch->touched != NULL) {
        struct tw__redis_schedule *schedule = batch->touched;
        batch->touched = schedule->touched;
        if (schedule->tells != 0) {
            struct tw__redis_told *one = RedisModule_Alloc(sizeof *one);
            RedisModuleString *name = RedisModule_CreateStringFromString(NULL, schedule->name);
            *one = (struct tw__redis_told){all, name, schedule->db, schedule->tells};
            all = one;
        }
        schedule->in_batch = false;
        schedule->tells = 0;
    }
    return all;
}

void tw__redis_batch_end(struct tw__redis_batch *batch)
{
    TW_ASSERT(tw__redis_shared.batch == batch && batch->touched == NULL && batch->leaving_count == 0);
    (void)batch;
    tw__redis_shared.batch = NULL;
}

/* ---- other modules --------------------------------------------------------------------------------------- */

void tw__redis_batch_settle_open(struct tw__redis_batch *batch)
{
    batch->settled++;
    log_left(batch);
}

void tw__redis_batch_forget(struct tw__redis_schedule *schedule)
{
    if (!schedule->in_batch)
        return;
    TW_ASSERT(tw__redis_shared.batch != NULL);
    TW_ASSERT(tw__redis_shared.batch->leaving_count == 0); /* keys.c has settled the batch */
    struct tw__redis_schedule **link = &tw__redis_shared.batch->touched;
    while (*link != schedule)
        link = &(*link)->touched;
    *link = schedule->touched;
    schedule->in_batch = false;
    schedule->tells = 0;
}
