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

/* Counts a task that a worker has just taken, and that had been ready since then. The waits since the server
 * started: see tw__redis_lateness_us(). */
void tw__redis_lateness_count_taken(uint64_t since_ms);
uint64_t tw__redis_lateness_waiting_us(double share);
uint64_t tw__redis_lateness_waiting_us_max(void);

/* Since the server started: the lateness that a `share` of all deliveries does not exceed, and the greatest
 * lateness. Example: tw__redis_lateness_us(0.99) is the 99th percentile. */
uint64_t tw__redis_lateness_us(double share);
uint64_t tw__redis_lateness_us_max(void);

/* How many tasks were delivered or became ready in a span of time, and their lateness. */
struct tw__redis_lateness {
    uint64_t calls, p50_us, p90_us, p99_us, p999_us, max_us;
};
/* Of the past ten seconds; of the past minute: 54 to 60 seconds. */
struct tw__redis_lateness tw__redis_lateness_recent(void);
struct tw__redis_lateness tw__redis_lateness_minute(void);

#endif
