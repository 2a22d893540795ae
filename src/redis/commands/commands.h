/* SPDX-License-Identifier: MIT
 *
 * The commands that write.
 */
#ifndef TW_REDIS_COMMANDS_H
#define TW_REDIS_COMMANDS_H

#include <redismodule.h>

int tw__redis_commands_register(RedisModuleCtx *ctx);

#endif
