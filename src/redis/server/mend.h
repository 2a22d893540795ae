/* SPDX-License-Identifier: MIT
 *
 * Mends an append-only file that was cut off. To be called before the server loads the file (begin), and
 * after that (finish).
 */
#ifndef TW_REDIS_MEND_H
#define TW_REDIS_MEND_H

#include <redismodule.h>

void tw__redis_mend_begin(RedisModuleCtx *ctx);
void tw__redis_mend_finish(RedisModuleCtx *ctx);

#endif
