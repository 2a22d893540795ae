/* SPDX-License-Identifier: MIT
 *
 * The tick: the work of the module's timer callback.
 */
#ifndef TW_REDIS_TICK_H
#define TW_REDIS_TICK_H

#include "server/shared.h"

/* Starts the timer. */
void tw__redis_tick_start(RedisModuleCtx *ctx);

/* Called ten times a second: looks at the clocks, and for removed queues that came from another thread. */
void tw__redis_tick_cron(RedisModuleCtx *ctx);

/* Called when an event-loop iteration begins: looks at the clocks. */
void tw__redis_tick_iteration(RedisModuleCtx *ctx);

/* To be called when a data set has been loaded: leases that have run out meanwhile begin anew. */
void tw__redis_tick_loaded(void);

/* The present budget of one tick: a number of tasks, and microseconds. */
uint32_t tw__redis_tick_budget_tasks(void);
uint32_t tw__redis_tick_budget_us(void);

#endif
