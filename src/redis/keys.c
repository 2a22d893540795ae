/* SPDX-License-Identifier: MIT
 *
 * Schedules as keys: finding them, telling of changes, removing those without tasks.
 */
#include "keys.h"

#include "schedules/schedule.h"

enum { EMPTY_MAX = 8 }; /* removed in one tick */

enum tw__opened tw__keys_open(RedisModuleKey *key, struct tw__schedule **schedule)
{
    *schedule = NULL;
    if (key == NULL || RedisModule_KeyType(key) == REDISMODULE_KEYTYPE_EMPTY)
        return TW__OPEN_NONE;
    if (RedisModule_ModuleTypeGetType(key) != tw__shared.type)
        return TW__OPEN_OTHER;
    *schedule = RedisModule_ModuleTypeGetValue(key);
    return TW__OPEN_SCHEDULE;
}

void tw__keys_name(struct tw__schedule *schedule, const RedisModuleString *name, int db)
{
    size_t size = 0;
    const char *bytes = name == NULL ? "" : RedisModule_StringPtrLen(name, &size);
    if (schedule->name != NULL)
        RedisModule_FreeString(NULL, schedule->name);
    schedule->name = RedisModule_CreateString(NULL, bytes, size);
    schedule->db = db;
}

void tw__keys_changed(RedisModuleCtx *ctx, RedisModuleString *name, const char *event)
{
    RedisModule_SignalModifiedKey(ctx, name);
    RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_MODULE, event, name);
}

void tw__keys_remove_if_empty(RedisModuleCtx *ctx, RedisModuleString *name, bool replicate)
{
    struct tw__schedule *schedule;
    if (tw__shared.schedules->empty == 0)
        return;
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
    bool empty = tw__keys_open(key, &schedule) == TW__OPEN_SCHEDULE && tw__table_count(&schedule->tasks) == 0;
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

/* The first that has no tasks, or NULL. */
static const struct tw__schedule *first_empty(void)
{
    for (struct tw__link *link = tw__shared.schedules->attached.next; link != &tw__shared.schedules->attached;
         link = link->next) {
        const struct tw__schedule *schedule = tw__schedule_at(link);
        if (tw__table_count(&schedule->tasks) == 0)
            return schedule;
    }
    return NULL;
}

void tw__keys_remove_empty_ones(RedisModuleCtx *ctx)
{
    int db = RedisModule_GetSelectedDb(ctx);
    const struct tw__schedule *schedule;
    for (uint32_t i = 0; i < EMPTY_MAX && tw__shared.schedules->empty > 0 && (schedule = first_empty()) != NULL;
         i++) {
        RedisModuleString *name = RedisModule_CreateStringFromString(NULL, schedule->name);
        RedisModule_SelectDb(ctx, schedule->db);
        tw__keys_remove_if_empty(ctx, name, true);
        RedisModule_FreeString(NULL, name);
    }
    RedisModule_SelectDb(ctx, db);
}
