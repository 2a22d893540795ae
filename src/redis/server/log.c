/* SPDX-License-Identifier: MIT
 *
 * Tells the append-only file and the replicas of changes, and knows whether anybody reads that.
 *
 * RedisModule_Replicate() looks its command up by name and makes strings. Then the server throws them away if
 * it has neither an append-only file nor replicas. That is a quarter of a TW.SEND. So a command asks first:
 *
 *     is the append-only file on, is the server a replica, or in a cluster?   the flags of the context
 *     has the server replicas, or a replication backlog for them?            INFO
 *
 * INFO takes too long for each command, so the answer is kept. When a replica asks for its first snapshot, the
 * server makes a backlog, and may wait some seconds before it writes that snapshot. Until then the answer
 * "nobody" stands, and the backlog gets the commands as the clients typed them. No replica reads those: each
 * one begins with a snapshot of a later time. So the module asks again after each of these, which the server
 * tells it before the next command:
 *
 *   - a fork: a child process writes a snapshot for a replica, for BGSAVE, or for an append-only file;
 *   - a snapshot without a fork: SAVE, DEBUG RELOAD, SHUTDOWN SAVE, RedisModule_RdbSave(). A replica may begin
 *     with a copy of its file, and go on with the backlog, as the file has the place in it;
 *   - another role. A server that is a replica has a backlog, and keeps it when it is promoted;
 *   - CONFIG SET, so that the commands are cheap again after `appendonly no`.
 *
 *     replica: PSYNC       TW.SEND a                            fork, SAVE     TW.SEND b
 *     ----------------------------------------------------------------------------------->
 *     the backlog begins   as typed, and is in the snapshot     forget         asks again, and is logged
 *
 * In a cluster a command always logs, because a migration of slots may read that. The ticks log always: they
 * name many tasks at once.
 *
 * Rejected: the flags of the context alone, for each command. None of them tells of replicas.
 */
#include "shared.h"

#include <base/assert.h>

/* ---- who reads ------------------------------------------------------------------------------------------- */

/* Asks the server whether nobody reads. */
static bool nobody_reads(RedisModuleCtx *ctx)
{
    const int readers = REDISMODULE_CTX_FLAGS_AOF | REDISMODULE_CTX_FLAGS_SLAVE | REDISMODULE_CTX_FLAGS_CLUSTER;
    int replicas_told, backlog_told;
    if (RedisModule_GetContextFlags(ctx) & readers)
        return false;
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(ctx, "replication");
    uint64_t replicas = RedisModule_ServerInfoGetFieldUnsigned(info, "connected_slaves", &replicas_told),
             backlog = RedisModule_ServerInfoGetFieldUnsigned(info, "repl_backlog_active", &backlog_told);
    RedisModule_FreeServerInfo(ctx, info);
    return replicas_told == REDISMODULE_OK && backlog_told == REDISMODULE_OK && replicas == 0 && backlog == 0;
}

void tw__redis_log_forget_readers(void)
{
    tw__redis_shared.readers = TW__REDIS_READERS_UNKNOWN;
}

struct tw__redis_buffer *tw__redis_log_open(RedisModuleCtx *ctx)
{
    struct tw__redis_shared *shared = &tw__redis_shared;
    if (shared->readers == TW__REDIS_READERS_UNKNOWN && !tw__redis_loading())
        shared->readers = nobody_reads(ctx) ? TW__REDIS_READERS_NONE : TW__REDIS_READERS_SOME;
    return shared->readers == TW__REDIS_READERS_NONE ? NULL : &shared->log;
}

/* ---- what they read -------------------------------------------------------------------------------------- */

void tw__redis_log_changes(RedisModuleCtx *ctx, RedisModuleString *name, const struct tw__redis_buffer *changes)
{
    TW_ASSERT(changes->size > 0);
    RedisModule_Replicate(ctx, "TW.FIRED", "sb", name, changes->at, changes->size);
}

void tw__redis_log_close(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_buffer *log)
{
    if (log == NULL)
        RedisModule_ReplicateVerbatim(ctx); /* nobody reads it; it counts a change for the next snapshot */
    else
        tw__redis_log_changes(ctx, name, log);
    tw__redis_buffer_reset(&tw__redis_shared.log, &tw__redis_shared.queues->memory);
}

void tw__redis_log_command(RedisModuleCtx *ctx, RedisModuleString *name)
{
    if (tw__redis_shared.log.size > 0)
        tw__redis_log_close(ctx, name, tw__redis_log_open(ctx));
}
