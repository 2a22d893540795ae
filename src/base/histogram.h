/* SPDX-License-Identifier: MIT
 *
 * A histogram of durations, for percentiles, in units of the caller's choice. Each doubling has 32 steps, as
 * in HdrHistogram (Gil Tene). So a percentile is at most 1/32 too high and never too low, from one unit to
 * 2^64, in 15 KiB. Example: the values 1,024 to 1,055 share a bucket, so a percentile of 1,030 may be
 * reported as 1,055.
 */
#ifndef TW_BASE_HISTOGRAM_H
#define TW_BASE_HISTOGRAM_H

#include <stdint.h>

enum {
    TW__HISTOGRAM_SHIFT = 5, /* 32 steps to a doubling */
    TW__HISTOGRAM_STEPS = 1 << TW__HISTOGRAM_SHIFT,
    TW__HISTOGRAM_BUCKETS = (64 - TW__HISTOGRAM_SHIFT + 1) * TW__HISTOGRAM_STEPS
};

/* The bucket that counts a value. */
static inline uint32_t tw__histogram_bucket(uint64_t value)
{
    if (value < TW__HISTOGRAM_STEPS)
        return (uint32_t)value;
    uint32_t doubling = 63 - (uint32_t)__builtin_clzll(value) - TW__HISTOGRAM_SHIFT;
    return (doubling + 1) * TW__HISTOGRAM_STEPS + (uint32_t)(value >> doubling) - TW__HISTOGRAM_STEPS;
}

/* The largest value of a bucket. */
static inline uint64_t tw__histogram_end(uint32_t bucket)
{
    if (bucket < TW__HISTOGRAM_STEPS)
        return bucket;
    uint32_t doubling = bucket / TW__HISTOGRAM_STEPS - 1;
    uint64_t step = bucket % TW__HISTOGRAM_STEPS + TW__HISTOGRAM_STEPS;
    return (step << doubling) + (((uint64_t)1 << doubling) - 1);
}

/* The value that a `share` (0 to 1) of all counted values do not exceed; 0 when no value was counted. `most`
 * is the largest value that was counted. */
static inline uint64_t tw__histogram_percentile(const uint64_t *buckets, double share, uint64_t most)
{
    uint64_t total = 0, below = 0;
    uint32_t i = 0;
    for (uint32_t k = 0; k < TW__HISTOGRAM_BUCKETS; k++)
        total += buckets[k];
    if (total == 0)
        return 0;
    double wanted = share * (double)total;
    while (i + 1 < TW__HISTOGRAM_BUCKETS && (double)(below + buckets[i]) < wanted)
        below += buckets[i++];
    uint64_t end = tw__histogram_end(i);
    return end < most ? end : most;
}

#endif
