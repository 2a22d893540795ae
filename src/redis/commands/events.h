/* SPDX-License-Identifier: MIT
 *
 * Handlers of keyspace notifications and of server events.
 */
#ifndef TW_REDIS_EVENTS_H
#define TW_REDIS_EVENTS_H

#include <redismodule.h>

int tw__redis_events_register(RedisModuleCtx *ctx);

#endif
