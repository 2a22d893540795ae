/* SPDX-License-Identifier: MIT
 *
 * The settings: the module's, and the server's.
 */
#ifndef TW_REDIS_CONFIG_H
#define TW_REDIS_CONFIG_H

#include <redismodule.h>
#include <stddef.h>
#include <task/backoff.h>

#include "queues/state.h"

struct tw__redis_config {
    long long tasks_per_tick, us_per_tick, target_tries, default_maxlen, target_backoff_ms;
    long long tries, backoff_ms, backoff_factor_percent, backoff_max_ms, jitter;
    long long dead_max, dead_ms; /* of each queue: the most dead tasks, and how long they stay; 0: no limit */
    int deliver;                 /* 0: this server delivers nothing, and gives nothing out */
};
extern struct tw__redis_config tw__redis_config;

/* Registers the settings with the server, and reads the arguments that the module was loaded with. */
int tw__redis_config_register(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

/* The attempts and waits of a task for workers: its own, and the settings for what it leaves open. */
struct tw__task_retry tw__redis_config_retry(const struct tw__redis_retry *own);
/* The tries and waits of a task with a target, likewise. */
struct tw__task_retry tw__redis_config_target_retry(const struct tw__redis_retry *own);

/* Reads a setting of the server, or takes `usual` where CONFIG has been renamed. */
void tw__redis_config_of_server(RedisModuleCtx *ctx, const char *name, const char *usual, char *value,
                                size_t room);

#endif
