/* SPDX-License-Identifier: MIT */
#include "lateness.h"

#include <base/recent.h>
#include <time.h>

#include "shared.h"

enum { MINUTE_STEP_S = 60 / TW__RECENT_SECONDS };

/* Spans of time. */
struct spans {
    uint64_t buckets[TW__HISTOGRAM_BUCKETS], calls, max_us;
};

struct tw__redis_lateness_counts {
    struct spans late, waits;         /* since the start: of deliveries; of ready tasks, for a worker */
    struct tw__recent recent, minute; /* of deliveries: by seconds; by steps of six seconds */
};

static long long (*server_us)(void); /* Redis 7.2 and later, else NULL */

void tw__redis_lateness_start(void)
{
    RedisModule_GetApi("RedisModule_Microseconds", (void **)&server_us);
    tw__redis_shared.lateness = RedisModule_Calloc(1, sizeof *tw__redis_shared.lateness);
}

static uint64_t second(void)
{
    return RedisModule_MonotonicMicroseconds() / 1000000;
}

static uint64_t wall_us(void)
{
    struct timespec now;
    if (server_us != NULL)
        return (uint64_t)server_us();
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* How long ago a time was, in microseconds. */
static uint64_t us_since(uint64_t ms)
{
    uint64_t now_us = wall_us();
    return ms <= now_us / 1000 ? now_us - ms * 1000 : 0;
}

static void count(struct spans *spans, uint64_t us)
{
    spans->buckets[tw__histogram_bucket(us)]++;
    spans->calls++;
    if (us > spans->max_us)
        spans->max_us = us;
}

void tw__redis_lateness_count_taken(uint64_t since_ms)
{
    count(&tw__redis_shared.lateness->waits, us_since(since_ms));
}

void tw__redis_lateness_count(uint64_t since_ms)
{
    struct tw__redis_lateness_counts *counts = tw__redis_shared.lateness;
    uint64_t late_us = us_since(since_ms), now_s = second();
    count(&counts->late, late_us);
    tw__recent_add(&counts->recent, now_s, late_us);
    tw__recent_add(&counts->minute, now_s / MINUTE_STEP_S, late_us);
}

static struct tw__redis_lateness lateness_of(const struct spans *spans)
{
    const uint64_t *buckets = spans->buckets, max_us = spans->max_us;
    return (struct tw__redis_lateness){.calls = spans->calls,
                                       .p50_us = tw__histogram_percentile(buckets, 0.5, max_us),
                                       .p90_us = tw__histogram_percentile(buckets, 0.9, max_us),
                                       .p99_us = tw__histogram_percentile(buckets, 0.99, max_us),
                                       .p999_us = tw__histogram_percentile(buckets, 0.999, max_us),
                                       .max_us = max_us};
}

struct tw__redis_lateness tw__redis_lateness_all(void)
{
    return lateness_of(&tw__redis_shared.lateness->late);
}

struct tw__redis_lateness tw__redis_lateness_waits(void)
{
    return lateness_of(&tw__redis_shared.lateness->waits);
}

static struct tw__redis_lateness sum_of(const struct tw__recent *recent, uint64_t step)
{
    struct spans sum;
    sum.calls = tw__recent_sum(recent, step, sum.buckets, &sum.max_us);
    return lateness_of(&sum);
}

struct tw__redis_lateness tw__redis_lateness_recent(void)
{
    return sum_of(&tw__redis_shared.lateness->recent, second());
}

struct tw__redis_lateness tw__redis_lateness_minute(void)
{
    return sum_of(&tw__redis_shared.lateness->minute, second() / MINUTE_STEP_S);
}
