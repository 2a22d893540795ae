/* SPDX-License-Identifier: MIT
 *
 * TW.FIRED and TW.LOAD: the commands that only the append-only file and the replication link may send.
 */
#ifndef TW_REDIS_FIRED_H
#define TW_REDIS_FIRED_H

#include "server/shared.h"

int tw__redis_fired_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int tw__redis_load_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

#endif
