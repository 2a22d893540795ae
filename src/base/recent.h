/* SPDX-License-Identifier: MIT
 *
 * A histogram of the past ten seconds, for live percentiles. It is a ring of ten histograms (histogram.h),
 * one for each second of the caller's clock. The current second has only begun, so the ring covers nine to
 * ten seconds. Seconds that the clock has not reached are not counted.
 *
 * A caller may count longer steps instead of seconds. Example: with steps of six seconds, the histogram
 * covers the past minute.
 */
#ifndef TW_BASE_RECENT_H
#define TW_BASE_RECENT_H

#include "histogram.h"
#include <string.h>

enum { TW__RECENT_SECONDS = 10 };

/* Zeroed memory is an empty histogram. */
struct tw__recent {
    uint64_t second[TW__RECENT_SECONDS]; /* the second that most[i] and count[i] belong to */
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

/* Adds up the histograms of the ten seconds that end with `second`, into `sum`. Returns the number of values
 * counted in them; *most is the largest of these values. */
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
