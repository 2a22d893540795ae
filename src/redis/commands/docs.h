/* SPDX-License-Identifier: MIT
 *
 * The description of the commands for COMMAND DOCS, COMMAND INFO and the ACL.
 */
#ifndef TW_REDIS_DOCS_H
#define TW_REDIS_DOCS_H

#include <redismodule.h>

int tw__redis_docs_register(RedisModuleCtx *ctx);

#endif
