/* SPDX-License-Identifier: MIT
 *
 * Random numbers for benchmarks: splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", 2014). The same seed gives the same load on every machine.
 */
#ifndef TW_BENCH_RANDOM_H
#define TW_BENCH_RANDOM_H

#include <stdint.h>

static uint64_t random_state;

static inline uint64_t random_next(void)
{
    uint64_t x = random_state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* 0 to n - 1. */
static inline uint32_t random_below(uint32_t n)
{
    return (uint32_t)((random_next() >> 32) * n >> 32);
}

/* Fills p with 0 to n - 1 in random order. */
static inline void random_order(uint32_t *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = random_below(i + 1);
        p[i] = p[j];
        p[j] = i;
    }
}

#endif
