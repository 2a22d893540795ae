/* SPDX-License-Identifier: MIT
 *
 * The one server timer of the module. Its callback runs the tick. Each caller that files a task also makes
 * sure that the timer expires in time.
 */
#ifndef TW_REDIS_ALARM_H
#define TW_REDIS_ALARM_H

#include "server/shared.h"

/* Called once each time the timer expires, on the server's thread while nothing else runs there. */
typedef void tw__redis_alarm_fn(RedisModuleCtx *ctx);

void tw__redis_alarm_start(RedisModuleCtx *ctx, tw__redis_alarm_fn *ring);

/* Makes sure that the timer expires at `ms` of the wall clock at the latest. */
void tw__redis_alarm_at(uint64_t ms);

/* The same for the earliest pending work; at once if blocked workers may have tasks to take. */
void tw__redis_alarm_next(void);

/* Makes the timer expire when the server has served the clients that are waiting now, and has sent their
 * replies. */
void tw__redis_alarm_soon(void);

/* Returns when there is work next, by the wall clock, or TW_NEVER if there is none. Tasks that wait in a
 * line already do not count. */
uint64_t tw__redis_alarm_work(uint64_t now_ms);

/* Called ten times a second: sets the timer again if it should have expired by now, or if the clock was set. */
void tw__redis_alarm_renew(uint64_t now_ms, bool clock_set);

/* Returns whether the timer has expired much later than it was set for, since the last call: the server was
 * busy with one command, or did not run at all. */
bool tw__redis_alarm_overslept(void);

/* Stops the timer while a data set is loaded (true), and allows it again (false). */
void tw__redis_alarm_pause(bool pause);

#endif
