/* SPDX-License-Identifier: MIT
 *
 * Time: reading, sleeping, waking, and from times to ticks.
 */
#ifndef TW_SCHED_CLOCK_H
#define TW_SCHED_CLOCK_H

#include "internal.h"

uint64_t tw__sched_clock_read(const struct tw_sched *sched);
/* The first tick that is not before a time: the ceiling, so that nothing is early. TW_NEVER at the end of
 * time. */
uint64_t tw__sched_tick_due(const struct tw_sched *sched, uint64_t due_ns);
/* The tick that has begun at a time: the floor. */
uint64_t tw__sched_tick_now(const struct tw_sched *sched, uint64_t now_ns);
/* When a tick begins. */
uint64_t tw__sched_tick_start(const struct tw_sched *sched, uint64_t tick);
int tw__sched_clock_open(struct tw_sched *sched);
void tw__sched_clock_close(struct tw_sched *sched);
/* Sleeps until a tick begins, or tw__sched_clock_wake() is called, which may have been before. */
void tw__sched_clock_sleep(struct tw_sched *sched, uint64_t tick);
void tw__sched_clock_wake(struct tw_sched *sched);

/* The time some periods later; the end of time if that is beyond it. */
uint64_t tw__sched_periods_after(uint64_t due_ns, uint64_t periods, uint64_t period_ns);

#endif
