/* SPDX-License-Identifier: MIT
 *
 * The data type: how a schedule is saved, loaded, logged, copied, digested, defragmented, freed.
 */
#ifndef TW_REDIS_PERSIST_H
#define TW_REDIS_PERSIST_H

#include <redismodule.h>

int tw__redis_persist_register(RedisModuleCtx *ctx);

#endif
