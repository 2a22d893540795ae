/* SPDX-License-Identifier: MIT
 *
 * The wall clock, and whether somebody has set it. How that is seen: head of clock.c.
 */
#ifndef TW_REDIS_CLOCK_H
#define TW_REDIS_CLOCK_H

#include "shared.h"

/* Looks at the clocks. tw__redis_shared.iteration_ms is the time of this look. Requires: no batch is open. */
void tw__redis_clock_look(RedisModuleCtx *ctx);

/* Returns the present time for a command that files leases. If the last look may have another opinion of the
 * time, and no batch is open, the call looks once more. */
uint64_t tw__redis_clock_now(RedisModuleCtx *ctx);

/* Returns whether the clock was set, by a step or slowly, since this function returned true last. */
bool tw__redis_clock_was_set(void);

#endif
