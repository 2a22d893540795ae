/* SPDX-License-Identifier: MIT
 *
 * TW.PUT, a task for workers, and TW.SEND, a task with a target.
 */
#include "commands.h"

#include "filing.h"
#include "queues/queue.h"
#include "server/strings.h"

static int put_or_send(RedisModuleCtx *ctx, bool send, RedisModuleString **argv, int argc)
{
    struct tw__redis_filing filing;
    int id_at = send ? 3 : 2;
    if (argc <= id_at)
        return RedisModule_WrongArity(ctx);
    uint64_t hash = tw__redis_queue_foresee(tw__redis_shared.queues, tw__redis_string_bytes(argv[id_at]));
    if (!tw__redis_filing_read(ctx, &filing, send, argv, argc))
        return REDISMODULE_OK;
    return tw__redis_filing_file(ctx, &filing, hash, send ? "tw.send" : "tw.put");
}

int tw__redis_put_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return put_or_send(ctx, false, argv, argc);
}

int tw__redis_send_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return put_or_send(ctx, true, argv, argc);
}
