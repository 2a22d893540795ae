/* SPDX-License-Identifier: MIT
 *
 * What COMMAND DOCS, COMMAND INFO and the ACL know of the commands.
 */
#ifndef TW_REDIS_DOCS_H
#define TW_REDIS_DOCS_H

#include <redismodule.h>

int tw__redis_docs_register(RedisModuleCtx *ctx);

#endif
