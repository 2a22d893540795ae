/* SPDX-License-Identifier: MIT
 *
 * The data type: how a queue is saved, loaded, written to the AOF, copied, digested, defragmented and
 * freed.
 */
#ifndef TW_REDIS_PERSIST_H
#define TW_REDIS_PERSIST_H

#include <redismodule.h>

int tw__redis_persist_register(RedisModuleCtx *ctx);

#endif
