/* SPDX-License-Identifier: MIT
 *
 * A histogram of the past ten seconds, for percentiles that are alive: one of base/histogram.h for each second,
 * on a ring. Seconds are whole ones of the caller's clock, so it covers nine to ten, and no second that has not
 * been reached.
 *
 * A caller that counts longer steps instead of seconds has a histogram of ten of those: of a minute, by steps
 * of six seconds.
 */
#ifndef TW_BASE_RECENT_H
#define TW_BASE_RECENT_H

#include "histogram.h"
#include <string.h>

enum { TW__RECENT_SECONDS = 10 };

/* All zero is an empty one. */
struct tw__recent {
    uint64_t second[TW__RECENT_SECONDS]; /* that the histogram beside it is of */
    uint64_t most[TW__RECENT_SECONDS];
    uint32_t count[TW__RECENT_SECONDS][TW__HISTOGRAM_BUCKETS];
};

static inline void tw__recent_add(struct tw__recent *recent, uint64_t second, uint64_t value)
{
    uint32_t i = (uint32_t)(second % TW__RECENT_SECONDS);
    if (recent->second[i] != second) {
        recent->second[i] = second;
        recent->most[i] = 0;
        memset(recent->count[i], 0, sizeof recent->count[i]);
    }
    recent->count[i][tw__histogram_bucket(value)]++;
    if (value > recent->most[i])
        recent->most[i] = value;
}

/* Adds up what was counted in the seconds that end with this one. Returns how many; *most is the largest of
 * them. */
static inline uint64_t tw__recent_sum(const struct tw__recent *recent, uint64_t second,
                                      uint64_t sum[TW__HISTOGRAM_BUCKETS], uint64_t *most)
{
    uint64_t total = 0;
    *most = 0;
    memset(sum, 0, TW__HISTOGRAM_BUCKETS * sizeof *sum);
    for (uint32_t i = 0; i < TW__RECENT_SECONDS; i++) {
        if (recent->second[i] > second || second - recent->second[i] >= TW__RECENT_SECONDS)
            continue;
        for (uint32_t k = 0; k < TW__HISTOGRAM_BUCKETS; k++) {
            sum[k] += recent->count[i][k];
            total += recent->count[i][k];
        }
        if (recent->most[i] > *most)
            *most = recent->most[i];
    }
    return total;
}

#endif
