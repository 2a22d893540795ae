/* SPDX-License-Identifier: MIT
 *
 * Time: reading the clock, sleeping, waking, and turning times into ticks.
 */
#ifndef TW_SCHED_CLOCK_H
#define TW_SCHED_CLOCK_H

#include "internal.h"

uint64_t tw__sched_clock_read(const struct tw_sched *sched);
/* The tick on which a task with this due time runs: the first tick that does not begin before it (the
 * ceiling), so that no task is early. TW_NEVER at the end of time. */
uint64_t tw__sched_tick_due(const struct tw_sched *sched, uint64_t due_ns);
/* The last tick that has begun at this time (the floor). */
uint64_t tw__sched_tick_now(const struct tw_sched *sched, uint64_t now_ns);
/* The time at which a tick begins. */
uint64_t tw__sched_tick_start(const struct tw_sched *sched, uint64_t tick);
/* Makes the descriptors, and begins tick 0. From here on options.clock is the clock in use. Returns: 0;
 * TW_ESYSTEM; TW_ECLOCK. */
int tw__sched_clock_open(struct tw_sched *sched);
void tw__sched_clock_close(struct tw_sched *sched);
/* Sleeps until a tick begins or another thread calls tw__sched_clock_wake(). If a thread has called that
 * before, and no sleep has followed, returns at once. */
void tw__sched_clock_sleep(struct tw_sched *sched, uint64_t tick);
void tw__sched_clock_wake(struct tw_sched *sched);

#endif
