/* SPDX-License-Identifier: MIT
 *
 * The commands that read.
 */
#ifndef TW_REDIS_QUERIES_H
#define TW_REDIS_QUERIES_H

#include <redismodule.h>

int tw__redis_queries_register(RedisModuleCtx *ctx);

#endif
