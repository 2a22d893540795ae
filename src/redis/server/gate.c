/* SPDX-License-Identifier: MIT */
#include "shared.h"

#include "config.h"
#include "rights.h"

enum tw__redis_defer tw__redis_gate(RedisModuleCtx *ctx)
{
    int flags = RedisModule_GetContextFlags(ctx);
    if (tw__redis_loading() || !(flags & REDISMODULE_CTX_FLAGS_MASTER) ||
        (flags & (TW__REDIS_LOADING | REDISMODULE_CTX_FLAGS_READONLY)))
        return TW__REDIS_DEFER_ROLE;
    if (!tw__redis_config.deliver)
        return TW__REDIS_DEFER_STOPPED;
    if (RedisModule_AvoidReplicaTraffic())
        return TW__REDIS_DEFER_PAUSE;
    if ((flags & REDISMODULE_CTX_FLAGS_OOM) && !(flags & REDISMODULE_CTX_FLAGS_EVICT))
        return TW__REDIS_DEFER_OOM;
    return TW__REDIS_DEFER_NONE;
}

bool tw__redis_gate_is_replica(RedisModuleCtx *ctx)
{
    return (RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_SLAVE) != 0;
}

bool tw__redis_gate_is_full(RedisModuleCtx *ctx)
{
    return (RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_OOM) != 0 && !tw__redis_caller_is_log(ctx);
}

enum tw__redis_defer tw__redis_gate_refusal(struct tw__redis_bytes error)
{
    static const struct {
        const char *beginning; /* an error may name a user or a key later, such as a user READONLY */
        enum tw__redis_defer why;
    } refusals[] = {
        {"OOM ", TW__REDIS_DEFER_OOM},
        {"NOREPLICAS", TW__REDIS_DEFER_REPLICAS},
        {"MISCONF", TW__REDIS_DEFER_DISK},
        {"READONLY", TW__REDIS_DEFER_ROLE},
        {"MASTERDOWN", TW__REDIS_DEFER_ROLE},
        {"CLUSTERDOWN", TW__REDIS_DEFER_SLOT},
        {"ERR Attempted to access a non local key", TW__REDIS_DEFER_SLOT},
        {"ERR Can not execute a command", TW__REDIS_DEFER_SLOT},       /* "while the cluster is down" */
        {"ERR Can not execute a write command", TW__REDIS_DEFER_SLOT}, /* the same, and the node may read */
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (tw__redis_bytes_begin(error, refusals[i].beginning))
            return refusals[i].why;
    return TW__REDIS_DEFER_REFUSED;
}
