/* SPDX-License-Identifier: MIT
 *
 * The tick: the one timer of the server that turns the wheel.
 */
#ifndef TW_REDIS_TICK_H
#define TW_REDIS_TICK_H

#include "shared.h"

void tw__tick_start(RedisModuleCtx *ctx);
/* Sees to it that the server's timer comes at `ms` at the latest. */
void tw__arm(uint64_t ms);
/* As tw__arm(), for whatever comes first of all that waits. */
void tw__arm_next(void);
/* Ten times a second: steps of the clock, removed schedules that came from another thread. */
void tw__tick_cron(void);
/* While a data set is loaded, nothing is due. */
void tw__tick_loading(bool begun);
uint32_t tw__tick_budget_tasks(void);
uint32_t tw__tick_budget_us(void);

#endif
