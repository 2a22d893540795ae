/* SPDX-License-Identifier: MIT */
#include "shared.h"

struct tw__redis_shared tw__redis_shared;

uint64_t tw__redis_now_ms(void)
{
    return (uint64_t)RedisModule_Milliseconds();
}

void tw__redis_log_changes(RedisModuleCtx *ctx, RedisModuleString *name, const struct tw__redis_buffer *changes)
{
    if (changes->size > 0)
        RedisModule_Replicate(ctx, "TW.FIRED", "ssb", name, tw__redis_shared.changes, changes->at,
                              changes->size);
}

void tw__redis_log_command(RedisModuleCtx *ctx, RedisModuleString *name)
{
    tw__redis_log_changes(ctx, name, &tw__redis_shared.log);
    tw__redis_buffer_reset(&tw__redis_shared.log, &tw__redis_shared.queues->memory);
}
