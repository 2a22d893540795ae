/* SPDX-License-Identifier: MIT
 *
 * What happens to keys and to the server.
 */
#ifndef TW_REDIS_EVENTS_H
#define TW_REDIS_EVENTS_H

#include <redismodule.h>

int tw__events_register(RedisModuleCtx *ctx);

/* A key's value goes, or goes elsewhere. The data type calls it. */
void tw__unlinked(RedisModuleKeyOptCtx *context, const void *value);

#endif
