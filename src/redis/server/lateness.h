/* SPDX-License-Identifier: MIT
 *
 * How late tasks were delivered or became ready, in microseconds; and how long ready tasks have waited for a
 * worker.
 */
#ifndef TW_REDIS_LATENESS_H
#define TW_REDIS_LATENESS_H

#include <stdint.h>

/* Creates the counts. To be called when the module is loaded. */
void tw__redis_lateness_start(void);

/* Counts a delivery that was made just now, or a task that has just become ready. Its lateness began at
 * `since_ms`: see tw__redis_place_late_since(). */
void tw__redis_lateness_count(uint64_t since_ms);

/* Counts a task that a worker has just taken, and that had been ready since then. */
void tw__redis_lateness_count_taken(uint64_t since_ms);

/* How many tasks were delivered or became ready in a span of time, and percentiles of their lateness. */
struct tw__redis_lateness {
    uint64_t calls, p50_us, p90_us, p99_us, p999_us, max_us;
};
/* Since the server started; and the same of the waits of ready tasks for a worker. */
struct tw__redis_lateness tw__redis_lateness_all(void);
struct tw__redis_lateness tw__redis_lateness_waits(void);
/* Of the past ten seconds; of the past minute: 54 to 60 seconds. */
struct tw__redis_lateness tw__redis_lateness_recent(void);
struct tw__redis_lateness tw__redis_lateness_minute(void);

#endif
