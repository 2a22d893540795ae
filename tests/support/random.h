/* SPDX-License-Identifier: MIT
 *
 * Random numbers for tests: xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift
 * generators", 2016). The same seed gives the same test on every machine.
 */
#ifndef TW_TESTS_RANDOM_H
#define TW_TESTS_RANDOM_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
    rng->state ^= rng->state >> 12;
    rng->state ^= rng->state << 25;
    rng->state ^= rng->state >> 27;
    return rng->state * 0x2545F4914F6CDD1Dull;
}

static inline void rng_init(struct rng *rng, uint64_t seed)
{
    rng->state = seed * 0x9E3779B97F4A7C15ull + 0x1234567ull;
    for (int i = 0; i < 8; i++)
        rng_next(rng);
}

/* 0 to limit - 1. */
static inline uint64_t rng_below(struct rng *rng, uint64_t limit)
{
    return (rng_next(rng) >> 11) % limit;
}

#endif
