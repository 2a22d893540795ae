/* SPDX-License-Identifier: MIT
 *
 * A schedule is removed with its last task, as the server does it with its own types. Commands and batches
 * remove the schedule after they have sent their notifications. The tick removes schedules that another
 * module's handler has left without tasks.
 */
#include "keys.h"

#include <base/assert.h>

#include "alarm.h"
#include "batch.h"
#include "chores.h"
#include "schedules/schedule.h"
#include "server/rights.h"

enum { EMPTY_MAX = 8 }; /* removed in one tick */

/* The schedule that was unlinked last. A later notification may say why: it expired, or was evicted. */
static struct {
    RedisModuleString *name;
    uint64_t tasks;
} unlinked;

/* Before a caller reaches a schedule: finishes everything that is still to be done to the schedules. Either
 * the chores or the open batch have nothing to do. */
static void settle_all(void)
{
    tw__redis_chores_settle();
    tw__redis_batch_settle();
}

/* ---- finding --------------------------------------------------------------------------------------------- */

/* Finds the schedule that is the value of a key; NULL if there is none. Returns false if the key has another
 * type. */
static bool look_up(RedisModuleKey *key, struct tw__redis_schedule **schedule)
{
    *schedule = NULL;
    if (key == NULL || RedisModule_KeyType(key) == REDISMODULE_KEYTYPE_EMPTY)
        return true;
    if (RedisModule_ModuleTypeGetType(key) != tw__redis_shared.type)
        return false;
    *schedule = RedisModule_ModuleTypeGetValue(key);
    return true;
}

bool tw__redis_keys_find(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_schedule **schedule)
{
    settle_all();
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ);
    bool found = look_up(key, schedule);
    if (key != NULL)
        RedisModule_CloseKey(key);
    if (!found)
        RedisModule_ReplyWithError(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
    return found;
}

struct tw__redis_schedule *tw__redis_keys_peek(RedisModuleCtx *ctx, RedisModuleString *name)
{
    struct tw__redis_schedule *schedule;
    settle_all();
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ);
    if (!look_up(key, &schedule))
        schedule = NULL;
    if (key != NULL)
        RedisModule_CloseKey(key);
    return schedule;
}

int tw__redis_keys_reply_loading(RedisModuleCtx *ctx)
{
    return RedisModule_ReplyWithError(
        ctx, "LOADING the data set is being loaded: expected a call after loading has ended");
}

bool tw__redis_keys_open(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleKey **key,
                         struct tw__redis_schedule **schedule)
{
    tw__redis_chores_settle();
    return tw__redis_keys_open_quickly(ctx, name, key, schedule);
}

bool tw__redis_keys_open_quickly(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleKey **key,
                                 struct tw__redis_schedule **schedule)
{
    if (tw__redis_caller_is_early(ctx)) {
        tw__redis_keys_reply_loading(ctx);
        return false;
    }
    tw__redis_batch_settle();
    *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
    if (look_up(*key, schedule)) {
        tw__redis_shared.schedules->recent = *schedule;
        return true;
    }
    RedisModule_CloseKey(*key);
    RedisModule_ReplyWithError(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
    return false;
}

struct tw__redis_schedule *tw__redis_keys_value(const void *value)
{
    settle_all();
    return (struct tw__redis_schedule *)(uintptr_t)value;
}

struct tw__redis_schedules *tw__redis_keys_all(void)
{
    settle_all();
    return tw__redis_shared.schedules;
}

bool tw__redis_keys_has(RedisModuleCtx *ctx, const struct tw__redis_schedule *schedule)
{
    struct tw__redis_schedule *found;
    RedisModuleKey *key = RedisModule_OpenKey(ctx, schedule->name, REDISMODULE_READ | REDISMODULE_WRITE);
    bool same = look_up(key, &found) && found == schedule;
    RedisModule_CloseKey(key);
    return same;
}

/* ---- coming and going ------------------------------------------------------------------------------------ */

void tw__redis_keys_name(struct tw__redis_schedule *schedule, const RedisModuleString *name, int db)
{
    size_t size = 0;
    const char *bytes = name == NULL ? "" : RedisModule_StringPtrLen(name, &size);
    if (schedule->name != NULL)
        RedisModule_FreeString(NULL, schedule->name);
    schedule->name = RedisModule_CreateString(NULL, bytes, size);
    schedule->db = db;
}

void tw__redis_keys_set(RedisModuleCtx *ctx, RedisModuleKey *key, RedisModuleString *name,
                        struct tw__redis_schedule *schedule)
{
    TW_ASSERT(!schedule->attached);
    tw__redis_keys_name(schedule, name, RedisModule_GetSelectedDb(ctx));
    tw__redis_schedule_attach(schedule);
    RedisModule_ModuleTypeSetValue(key, tw__redis_shared.type, schedule);
}

void tw__redis_keys_renamed(RedisModuleCtx *ctx, RedisModuleString *name)
{
    struct tw__redis_schedule *schedule;
    settle_all();
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_OPEN_KEY_NOTOUCH);
    if (look_up(key, &schedule) && schedule != NULL) {
        tw__redis_keys_name(schedule, name, RedisModule_GetSelectedDb(ctx));
        tw__redis_schedule_attach(schedule);
        tw__redis_alarm_next();
    }
    if (key != NULL)
        RedisModule_CloseKey(key);
}

void tw__redis_keys_detach(struct tw__redis_schedule *schedule)
{
    tw__redis_batch_forget(schedule);
    tw__redis_schedule_detach(schedule);
}

void tw__redis_keys_unlinked(RedisModuleKeyOptCtx *context, const void *value)
{
    struct tw__redis_schedule *schedule = tw__redis_keys_value(value);
    if (unlinked.name != NULL)
        RedisModule_FreeString(NULL, unlinked.name);
    unlinked.name = RedisModule_CreateStringFromString(NULL, RedisModule_GetKeyNameFromOptCtx(context));
    unlinked.tasks = tw__redis_table_count(&schedule->tasks);
    tw__redis_keys_detach(schedule);
    tw__redis_alarm_at(tw__redis_now_ms());
}

uint64_t tw__redis_keys_take_unlinked(RedisModuleString *name)
{
    if (unlinked.name == NULL || RedisModule_StringCompare(unlinked.name, name) != 0)
        return 0;
    uint64_t tasks = unlinked.tasks;
    unlinked.tasks = 0;
    return tasks;
}

/* ---- telling --------------------------------------------------------------------------------------------- */

void tw__redis_keys_changed(RedisModuleCtx *ctx, RedisModuleString *name, const char *event)
{
    RedisModule_SignalModifiedKey(ctx, name);
    RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_MODULE, event, name);
}

void tw__redis_keys_remove_if_empty(RedisModuleCtx *ctx, RedisModuleString *name, bool replicate)
{
    struct tw__redis_schedule *schedule;
    if (tw__redis_shared.schedules->empty == 0)
        return;
    tw__redis_chores_settle(); /* a handler may have added a task */
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
    bool empty = look_up(key, &schedule) && schedule != NULL && tw__redis_table_count(&schedule->tasks) == 0 &&
                 !schedule->paused;
    if (empty)
        RedisModule_DeleteKey(key);
    RedisModule_CloseKey(key);
    if (!empty)
        return;
    RedisModule_SignalModifiedKey(ctx, name);
    if (replicate)
        RedisModule_Replicate(ctx, "DEL", "s", name);
    RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_GENERIC, "del", name);
}

/* Returns the first schedule without tasks, or NULL. */
static const struct tw__redis_schedule *first_empty(void)
{
    struct tw__link *attached = &tw__redis_shared.schedules->attached;
    for (struct tw__link *link = attached->next; link != attached; link = link->next) {
        const struct tw__redis_schedule *schedule = tw__redis_schedule_at(link);
        if (tw__redis_table_count(&schedule->tasks) == 0 && !schedule->paused)
            return schedule;
    }
    return NULL;
}

void tw__redis_keys_remove_empty_ones(RedisModuleCtx *ctx)
{
    int db = RedisModule_GetSelectedDb(ctx);
    const struct tw__redis_schedule *schedule;
    for (uint32_t i = 0;
         i < EMPTY_MAX && tw__redis_shared.schedules->empty > 0 && (schedule = first_empty()) != NULL; i++) {
        RedisModuleString *name = RedisModule_CreateStringFromString(NULL, schedule->name);
        RedisModule_SelectDb(ctx, schedule->db);
        tw__redis_keys_remove_if_empty(ctx, name, true);
        RedisModule_FreeString(NULL, name);
    }
    RedisModule_SelectDb(ctx, db);
}
