/* SPDX-License-Identifier: MIT
 *
 * tickwheel.so: delayed tasks as a data type of Redis and Valkey. docs/redis.md is what users read.
 *
 *     TW.ADD -> commands.c -> schedule.c: the task is in its schedule, a key, and filed in the wheel
 *                                  |
 *     the server's timer -> tick.c | due
 *                                  v
 *                             deliver.c -> XADD or RPUSH, and TW.FIRED: one MULTI/EXEC in AOF and replication
 *
 * One wheel and one timer for all schedules of the process. The timer is armed to the next tick with work, so an idle
 * server sleeps. Only a master delivers; a replica's wheel turns too, but what comes due waits in a queue until TW.FIRED
 * takes it out, or the replica is made a master. What is logged and replicated carries absolute times and final ids.
 *
 * This file loads the module: it checks the server, hands over its memory, and has the other files register.
 */
#include "module.h"

#include <strings.h>
#include <tickwheel/version.h>
#include <time.h>

#include "schedules/memory.h"

enum { EMPTY_MAX = 8 }; /* removed in one tick */

/* As MODULE LIST has it: 10203 is 1.2.3. */
enum { VERSION = TW_VERSION_MAJOR * 10000 + TW_VERSION_MINOR * 100 + TW_VERSION_PATCH };

RedisModuleType *tw__type;
struct tw__counts tw__counts;

uint64_t tw__now_ms(void)
{
    return (uint64_t)RedisModule_Milliseconds();
}

/* ---- schedules as keys -------------------------------------------------------------------------------------- */

enum tw__opened tw__open(RedisModuleKey *key, struct tw__schedule **schedule)
{
    *schedule = NULL;
    if (key == NULL || RedisModule_KeyType(key) == REDISMODULE_KEYTYPE_EMPTY)
        return TW__OPEN_NONE;
    if (RedisModule_ModuleTypeGetType(key) != tw__type)
        return TW__OPEN_OTHER;
    *schedule = RedisModule_ModuleTypeGetValue(key);
    return TW__OPEN_SCHEDULE;
}

void tw__name(struct tw__schedule *schedule, const RedisModuleString *name, int db)
{
    size_t size = 0;
    const char *bytes = name == NULL ? "" : RedisModule_StringPtrLen(name, &size);
    if (schedule->name != NULL)
        RedisModule_FreeString(NULL, schedule->name);
    schedule->name = RedisModule_CreateString(NULL, bytes, size);
    schedule->db = db;
}

void tw__changed(RedisModuleCtx *ctx, RedisModuleString *name, const char *event)
{
    RedisModule_SignalModifiedKey(ctx, name);
    RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_MODULE, event, name);
}

void tw__remove_if_empty(RedisModuleCtx *ctx, RedisModuleString *name, bool replicate)
{
    struct tw__schedule *schedule;
    if (tw__all.empty == 0)
        return;
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
    bool empty = tw__open(key, &schedule) == TW__OPEN_SCHEDULE && tw__table_count(&schedule->tasks) == 0;
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
    for (struct tw__link *link = tw__all.attached.next; link != &tw__all.attached; link = link->next) {
        const struct tw__schedule *schedule = tw__schedule_at(link);
        if (tw__table_count(&schedule->tasks) == 0)
            return schedule;
    }
    return NULL;
}

void tw__remove_empty_ones(RedisModuleCtx *ctx)
{
    int db = RedisModule_GetSelectedDb(ctx);
    const struct tw__schedule *schedule;
    for (uint32_t i = 0; i < EMPTY_MAX && tw__all.empty > 0 && (schedule = first_empty()) != NULL; i++) {
        RedisModuleString *name = RedisModule_CreateStringFromString(NULL, schedule->name);
        RedisModule_SelectDb(ctx, schedule->db);
        tw__remove_if_empty(ctx, name, true);
        RedisModule_FreeString(NULL, name);
    }
    RedisModule_SelectDb(ctx, db);
}

/* ---- loading -------------------------------------------------------------------------------------------------- */

static void forget_string(void *string)
{
    RedisModule_FreeString(NULL, string);
}

/* The oldest server that has all we call. Newer calls are asked for one by one. */
static bool server_is_new_enough(void)
{
    return RMAPI_FUNC_SUPPORTED(RedisModule_SetCommandInfo) && RMAPI_FUNC_SUPPORTED(RedisModule_LoadConfigs) &&
           RMAPI_FUNC_SUPPORTED(RedisModule_AvoidReplicaTraffic) &&
           RMAPI_FUNC_SUPPORTED(RedisModule_GetDbIdFromIO) &&
           RMAPI_FUNC_SUPPORTED(RedisModule_MonotonicMicroseconds);
}

static void use_memory_of_server(void)
{
    tw__memory.alloc = RedisModule_Alloc;
    tw__memory.realloc = RedisModule_Realloc;
    tw__memory.free = RedisModule_Free;
    tw__memory.usable = RedisModule_MallocSize;
    tw__all.forget_target = forget_string;
}

static int register_all(RedisModuleCtx *ctx)
{
    return tw__type_register(ctx) == REDISMODULE_OK && tw__commands_register(ctx) == REDISMODULE_OK &&
                   tw__queries_register(ctx) == REDISMODULE_OK && tw__docs_register(ctx) == REDISMODULE_OK &&
                   tw__info_register(ctx) == REDISMODULE_OK && tw__events_register(ctx) == REDISMODULE_OK
               ? REDISMODULE_OK
               : REDISMODULE_ERR;
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (RedisModule_Init(ctx, "tickwheel", VERSION, REDISMODULE_APIVER_1) == REDISMODULE_ERR)
        return REDISMODULE_ERR;
    if (!server_is_new_enough()) {
        RedisModule_Log(ctx, "warning", "tickwheel needs Redis 7.0 or Valkey 7.2, or later");
        return REDISMODULE_ERR;
    }
    use_memory_of_server();
    RedisModule_SetModuleOptions(ctx, REDISMODULE_OPTIONS_HANDLE_IO_ERRORS |
                                          REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED);
    /* The arguments first: a server takes back settings and commands of a module that fails to load, but not what it
     * asked to be told of. */
    if (tw__config_register(ctx, argv, argc) != REDISMODULE_OK ||
        tw__all_start(tw__now_ms(), RedisModule_MonotonicMicroseconds() / 1000) != 0 ||
        register_all(ctx) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    tw__tick_start(ctx);
    const char *warning = tw__warning(ctx);
    if (strcasecmp(warning, "none") != 0)
        RedisModule_Log(ctx, "warning", "tickwheel: %s", warning);
    return REDISMODULE_OK;
}
