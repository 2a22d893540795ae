/* SPDX-License-Identifier: MIT
 *
 * Mends an append-only file that was cut off: to be called before the file is loaded, and after that.
 */
#ifndef TW_REDIS_MEND_H
#define TW_REDIS_MEND_H

#include <redismodule.h>

void tw__redis_mend_begin(RedisModuleCtx *ctx);
void tw__redis_mend_finish(RedisModuleCtx *ctx);

#endif
