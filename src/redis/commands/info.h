/* SPDX-License-Identifier: MIT
 *
 * INFO tickwheel.
 */
#ifndef TW_REDIS_INFO_H
#define TW_REDIS_INFO_H

#include <redismodule.h>

int tw__redis_info_register(RedisModuleCtx *ctx);

/* Reads the server's settings that INFO warns by. */
void tw__redis_info_settings(RedisModuleCtx *ctx);

/* Returns how the server's present configuration endangers tasks, or "none". */
const char *tw__redis_info_warning(RedisModuleCtx *ctx);

#endif
