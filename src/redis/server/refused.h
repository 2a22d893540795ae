/* SPDX-License-Identifier: MIT
 *
 * Commands that the append-only file or the primary sends in the words of their callers, and that are refused.
 * This version logs outcomes, so another version or another module has written such a command. The server goes
 * on after an error of its log, with a line that names no queue. So a task may be lost, and nobody has a count.
 */
#ifndef TW_REDIS_REFUSED_H
#define TW_REDIS_REFUSED_H

#include "shared.h"

/* If the append-only file or the primary has sent a command that was refused, counts it, and says so in the
 * server's log. Many such commands take few lines. */
void tw__redis_refused(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

/* Writes to the server's log how many there were, if there were more since the last sum. */
void tw__redis_refused_sum(RedisModuleCtx *ctx);

/* Calls a command that writes, and looks whether it has replied with an error. */
static inline int tw__redis_refused_watch(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                                          RedisModuleCmdFunc call)
{
    tw__redis_shared.refusal.ctx = NULL;
    int result = call(ctx, argv, argc);
    if (tw__redis_shared.refusal.ctx == ctx)
        tw__redis_refused(ctx, argv, argc);
    return result;
}

#endif
