/* SPDX-License-Identifier: MIT
 *
 * The tick: what the module does when its timer rings.
 */
#ifndef TW_REDIS_TICK_H
#define TW_REDIS_TICK_H

#include "shared.h"

/* From now on the timer rings. */
void tw__redis_tick_start(RedisModuleCtx *ctx);

/* Ten times a second: steps of the clock, removed schedules that came from another thread. */
void tw__redis_tick_cron(RedisModuleCtx *ctx);

/* How much one tick may do at present. */
uint32_t tw__redis_tick_budget_tasks(void);
uint32_t tw__redis_tick_budget_us(void);

#endif
