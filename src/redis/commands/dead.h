/* SPDX-License-Identifier: MIT
 *
 * Dead tasks, and pauses: TW.DEAD, TW.REPLAY, TW.PURGE, TW.PAUSE.
 */
#ifndef TW_REDIS_DEAD_H
#define TW_REDIS_DEAD_H

#include "server/shared.h"

int tw__redis_dead_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int tw__redis_replay_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int tw__redis_purge_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int tw__redis_pause_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

#endif
