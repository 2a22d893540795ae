/* SPDX-License-Identifier: MIT
 *
 * What the benchmarks that run event loops share: time as the loops see it, the true time, memory. A program
 * with clock.c has clock_gettime() and gettimeofday() of its own, found before the C library's: its loops live
 * in virtual time, tick by tick, without a change to them.
 */
#ifndef TW_BENCH_CLOCK_H
#define TW_BENCH_CLOCK_H

#include <stddef.h>
#include <stdint.h>

enum bench_clock {
    BENCH_CLOCK_TICKS, /* what bench_set_tick() said; asking costs nothing */
    BENCH_CLOCK_PAID,  /* the same, at the price of asking the true clock */
    BENCH_CLOCK_TRUE   /* passes as it does, from where the virtual time stood */
};

/* Which time is answered from now on; before the first call, BENCH_CLOCK_TICKS. */
void bench_set_clock(enum bench_clock clock);
/* Sets the virtual time: a millisecond a tick, and a half, so that rounding cannot matter. */
void bench_set_tick(uint64_t tick);
/* The nanoseconds of that. */
uint64_t bench_tick_ns(uint64_t tick);
/* What the loops are answered now, and how far that is ahead of the true clock. */
uint64_t bench_seen_ns(void);
int64_t bench_ahead_ns(void);
/* The true monotonic clock. */
uint64_t bench_real_ns(void);
/* Bytes that malloc has given out. */
size_t bench_heap_bytes(void);
/* malloc or exit. */
void *bench_alloc(size_t size);

#endif
