/* SPDX-License-Identifier: MIT
 *
 * tickwheel.so: delayed tasks as a data type of Redis and Valkey. Users read docs/redis.md.
 *
 *     TW.SEND -> put.c -----> queue.c: the task is in its queue, a key, and filed in the wheel
 *                                  |
 *     the server's timer -> tick.c | due
 *                                  v
 *                             deliver.c -> XADD or RPUSH, and TW.FIRED: one MULTI/EXEC in AOF and replication
 *
 * All queues of the process share one wheel and one timer. The timer is armed for the next tick with work,
 * so an idle server sleeps. Only a primary delivers. A replica's wheel turns too, but its due tasks wait in a
 * line until TW.FIRED takes them out, or until the replica is promoted. The AOF and the replicas get
 * absolute times and final ids.
 *
 * This file loads the module: it checks the server, passes on the server's memory functions, and calls the
 * registration of the other files.
 */
#include <string.h>
#include <tickwheel/version.h>

#include "commands/commands.h"
#include "delivery/delivery.h"
#include "delivery/tick.h"
#include "keyspace/keys.h"
#include "queues/queue.h"
#include "server/config.h"
#include "server/lateness.h"
#include "server/shared.h"

/* As MODULE LIST shows it: 10203 is 1.2.3. */
enum { MODULE_VERSION = TW_VERSION_MAJOR * 10000 + TW_VERSION_MINOR * 100 + TW_VERSION_PATCH };

static void forget_string(void *string)
{
    RedisModule_FreeString(NULL, string);
}

/* Returns whether the server has all functions that we always call. Newer functions are looked up one by
 * one. */
static bool server_is_new_enough(void)
{
    return RMAPI_FUNC_SUPPORTED(RedisModule_SetCommandInfo) && RMAPI_FUNC_SUPPORTED(RedisModule_LoadConfigs) &&
           RMAPI_FUNC_SUPPORTED(RedisModule_AvoidReplicaTraffic) &&
           RMAPI_FUNC_SUPPORTED(RedisModule_GetDbIdFromIO) &&
           RMAPI_FUNC_SUPPORTED(RedisModule_MonotonicMicroseconds);
}

/* Returns 0, or -1 if there is no memory. */
static int make_queues(void)
{
    const struct tw__redis_memory memory = {RedisModule_Alloc, RedisModule_Realloc, RedisModule_Free,
                                            RedisModule_MallocSize};
    tw__redis_shared.queues = tw__redis_queues_new(&memory, forget_string, tw__redis_now_ms(),
                                                   RedisModule_MonotonicMicroseconds() / 1000);
    return tw__redis_shared.queues == NULL ? -1 : 0;
}

/* Creates the objects that all deliveries share. */
static void make_deliveries(void)
{
    tw__redis_asked_start();
    tw__redis_call_start();
    tw__redis_lateness_start();
}

static int register_all(RedisModuleCtx *ctx)
{
    return tw__redis_persist_register(ctx) == REDISMODULE_OK &&
                   tw__redis_commands_register(ctx) == REDISMODULE_OK &&
                   tw__redis_info_register(ctx) == REDISMODULE_OK &&
                   tw__redis_events_register(ctx) == REDISMODULE_OK
               ? REDISMODULE_OK
               : REDISMODULE_ERR;
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (RedisModule_Init(ctx, "tickwheel", MODULE_VERSION, REDISMODULE_APIVER_1) == REDISMODULE_ERR)
        return REDISMODULE_ERR;
    if (!server_is_new_enough()) {
        RedisModule_Log(ctx, "warning", "tickwheel needs Redis 7.0 or Valkey 7.2, or later");
        return REDISMODULE_ERR;
    }
    RedisModule_SetModuleOptions(ctx, REDISMODULE_OPTIONS_HANDLE_IO_ERRORS |
                                          REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED);
    /* Read the arguments first. If a module fails to load, the server removes its settings and commands, but
     * not its subscriptions to events. */
    if (tw__redis_config_register(ctx, argv, argc) != REDISMODULE_OK || make_queues() != 0)
        return REDISMODULE_ERR;
    make_deliveries();
    if (register_all(ctx) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    tw__redis_tick_start(ctx);
    const char *warning = tw__redis_info_warning(ctx);
    if (strcmp(warning, "none") != 0)
        RedisModule_Log(ctx, "warning", "tickwheel: %s", warning);
    return REDISMODULE_OK;
}
