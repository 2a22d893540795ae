/* SPDX-License-Identifier: MIT
 *
 * The one timer of the server that the module has: it calls the tick. Whoever files a task sees to it that the
 * timer rings in time.
 */
#ifndef TW_REDIS_ALARM_H
#define TW_REDIS_ALARM_H

#include "shared.h"

/* Called when the timer rings, each time once; on the server's thread, with nothing else going on. */
typedef void tw__redis_alarm_fn(RedisModuleCtx *ctx);

void tw__redis_alarm_start(RedisModuleCtx *ctx, tw__redis_alarm_fn *ring);

/* Sees to it that the timer rings at `ms` of the wall clock at the latest. */
void tw__redis_alarm_at(uint64_t ms);

/* The same for whatever comes first of all that waits. */
void tw__redis_alarm_next(void);

/* Rings when the clients have been served and answered that are waiting now. */
void tw__redis_alarm_soon(void);

/* When there is work next, on the wall clock; tasks that wait in a queue already apart. TW_NEVER: there is
 * none. */
uint64_t tw__redis_alarm_work(uint64_t now_ms);

/* Ten times a second: sets the timer again if it should have rung by now, or if the clock was set. */
void tw__redis_alarm_renew(uint64_t now_ms, bool clock_set);

/* While a data set is loaded the timer does not ring. */
void tw__redis_alarm_pause(bool pause);

#endif
