/* SPDX-License-Identifier: MIT
 *
 * Helpers for the benchmarks that run event loops: time as the loops see it, true time, memory. A program
 * with clock.c has its own clock_gettime() and gettimeofday(), which are found before those of the C library.
 * So its loops run in virtual time, tick by tick, and need no change.
 */
#ifndef TW_BENCH_CLOCK_H
#define TW_BENCH_CLOCK_H

#include <stddef.h>
#include <stdint.h>

enum bench_clock {
    BENCH_CLOCK_TICKS, /* the time of bench_set_tick(); reading it costs nothing */
    BENCH_CLOCK_PAID,  /* the same time, at the cost of reading the true clock */
    BENCH_CLOCK_TRUE   /* time passes as it does, beginning at the last virtual time */
};

/* Chooses the time that the clock returns from now on. Before the first call it is BENCH_CLOCK_TICKS. */
void bench_set_clock(enum bench_clock clock);
/* Sets the virtual time to the tick in milliseconds plus half a millisecond, so that rounding cannot
 * matter. */
void bench_set_tick(uint64_t tick);
/* The virtual time of a tick in nanoseconds. */
uint64_t bench_tick_ns(uint64_t tick);
/* The time that the loops see now, and its distance from the true clock. */
uint64_t bench_seen_ns(void);
int64_t bench_ahead_ns(void);
/* The true monotonic clock. */
uint64_t bench_real_ns(void);
/* The number of bytes that malloc has given out. */
size_t bench_heap_bytes(void);
/* Returns memory from malloc, or ends the program if there is none. */
void *bench_alloc(size_t size);

#endif
