/* SPDX-License-Identifier: MIT
 *
 * Counts firings on any number of threads, and notes when the first and the last of them came.
 */
#ifndef BENCH_SCHED_TALLY_H
#define BENCH_SCHED_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins to count anew, up to `expected` firings. Requires: no firing is under way. */
void tally_begin(size_t expected);
/* Counts a firing. */
void tally_count(void);
/* Waits until as many firings as expected were counted, at most a minute. Returns the number counted. */
size_t tally_wait(void);
/* The time from the first firing to the last, in nanoseconds. */
uint64_t tally_span_ns(void);

/* The clock of the benchmark, in nanoseconds. */
uint64_t now_ns(void);

#endif
