/* SPDX-License-Identifier: MIT */
#include "lateness.h"

#include <base/recent.h>
#include <time.h>

#include "shared.h"

enum { MINUTE_STEP_S = 60 / TW__RECENT_SECONDS };

struct tw__redis_lateness_counts {
    uint64_t buckets[TW__HISTOGRAM_BUCKETS], max_us;
    struct tw__recent recent, minute; /* by seconds; by steps of six seconds */
};

void tw__redis_lateness_start(void)
{
    tw__redis_shared.lateness = RedisModule_Calloc(1, sizeof *tw__redis_shared.lateness);
}

static uint64_t second(void)
{
    return RedisModule_MonotonicMicroseconds() / 1000000;
}

void tw__redis_lateness_count(uint64_t due_ms)
{
    struct tw__redis_lateness_counts *counts = tw__redis_shared.lateness;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    uint64_t late_us = due_ms <= now_us / 1000 ? now_us - due_ms * 1000 : 0;
    counts->buckets[tw__histogram_bucket(late_us)]++;
    uint64_t now_s = second();
    tw__recent_add(&counts->recent, now_s, late_us);
    tw__recent_add(&counts->minute, now_s / MINUTE_STEP_S, late_us);
    if (late_us > counts->max_us)
        counts->max_us = late_us;
}

uint64_t tw__redis_lateness_us(double share)
{
    return tw__histogram_percentile(tw__redis_shared.lateness->buckets, share,
                                    tw__redis_shared.lateness->max_us);
}

uint64_t tw__redis_lateness_us_max(void)
{
    return tw__redis_shared.lateness->max_us;
}

static struct tw__redis_lateness sum_of(const struct tw__recent *recent, uint64_t step)
{
    uint64_t sum[TW__HISTOGRAM_BUCKETS];
    struct tw__redis_lateness lateness;
    lateness.fired = tw__recent_sum(recent, step, sum, &lateness.max_us);
    lateness.p50_us = tw__histogram_percentile(sum, 0.5, lateness.max_us);
    lateness.p90_us = tw__histogram_percentile(sum, 0.9, lateness.max_us);
    lateness.p99_us = tw__histogram_percentile(sum, 0.99, lateness.max_us);
    lateness.p999_us = tw__histogram_percentile(sum, 0.999, lateness.max_us);
    return lateness;
}

struct tw__redis_lateness tw__redis_lateness_recent(void)
{
    return sum_of(&tw__redis_shared.lateness->recent, second());
}

struct tw__redis_lateness tw__redis_lateness_minute(void)
{
    return sum_of(&tw__redis_shared.lateness->minute, second() / MINUTE_STEP_S);
}
