/* SPDX-License-Identifier: MIT
 *
 * Sums and products that saturate: they stop at UINT64_MAX instead of starting at 0 again. UINT64_MAX is the
 * end of time and means "never".
 */
#ifndef TW_BASE_SATURATE_H
#define TW_BASE_SATURATE_H

#include <stdint.h>

static inline uint64_t tw__add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t tw__mul_saturating(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

#endif
