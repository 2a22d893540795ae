/* SPDX-License-Identifier: MIT
 *
 * The settings: the module's, and the server's.
 */
#ifndef TW_REDIS_CONFIG_H
#define TW_REDIS_CONFIG_H

#include <redismodule.h>
#include <stddef.h>

struct tw__redis_config {
    long long tasks_per_tick, us_per_tick, dead_letter_tries, default_maxlen, retry_ms;
};
extern struct tw__redis_config tw__redis_config;

/* Registers the settings with the server, and reads the arguments that the module was loaded with. */
int tw__redis_config_register(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

/* Reads a setting of the server, or takes `usual` where CONFIG has been renamed. */
void tw__redis_config_of_server(RedisModuleCtx *ctx, const char *name, const char *usual, char *value,
                                size_t room);

#endif
