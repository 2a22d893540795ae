/* SPDX-License-Identifier: MIT
 *
 * What happens to keys and to the server.
 */
#ifndef TW_REDIS_EVENTS_H
#define TW_REDIS_EVENTS_H

#include <redismodule.h>

int tw__redis_events_register(RedisModuleCtx *ctx);

#endif
