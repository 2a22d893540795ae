/* SPDX-License-Identifier: MIT */
#include "lateness.h"

#include <base/recent.h>
#include <time.h>

#include "shared.h"

enum { MINUTE_STEP_S = 60 / TW__RECENT_SECONDS };

struct tw__lateness_counts {
    uint64_t buckets[TW__HISTOGRAM_BUCKETS], max_us;
    struct tw__recent recent, minute; /* by seconds; by steps of six seconds */
};

void tw__lateness_start(void)
{
    tw__shared.lateness = RedisModule_Calloc(1, sizeof *tw__shared.lateness);
}

static uint64_t second(void)
{
    return RedisModule_MonotonicMicroseconds() / 1000000;
}

void tw__lateness_count(uint64_t due_ms)
{
    struct tw__lateness_counts *counts = tw__shared.lateness;
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

uint64_t tw__lateness_us(double share)
{
    return tw__histogram_percentile(tw__shared.lateness->buckets, share, tw__shared.lateness->max_us);
}

uint64_t tw__lateness_us_max(void)
{
    return tw__shared.lateness->max_us;
}

static struct tw__lateness sum_of(const struct tw__recent *recent, uint64_t step)
{
    uint64_t sum[TW__HISTOGRAM_BUCKETS];
    struct tw__lateness late;
    late.fired = tw__recent_sum(recent, step, sum, &late.max_us);
    late.p50_us = tw__histogram_percentile(sum, 0.5, late.max_us);
    late.p90_us = tw__histogram_percentile(sum, 0.9, late.max_us);
    late.p99_us = tw__histogram_percentile(sum, 0.99, late.max_us);
    late.p999_us = tw__histogram_percentile(sum, 0.999, late.max_us);
    return late;
}

struct tw__lateness tw__lateness_recent(void)
{
    return sum_of(&tw__shared.lateness->recent, second());
}

struct tw__lateness tw__lateness_minute(void)
{
    return sum_of(&tw__shared.lateness->minute, second() / MINUTE_STEP_S);
}
