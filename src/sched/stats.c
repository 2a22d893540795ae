/* SPDX-License-Identifier: MIT
 *
 * Statistics: counts under each shard's lock, a histogram of lateness, and both as text for Prometheus.
 *
 * The histogram is base/histogram.h, in nanoseconds.
 */
#include "stats.h"

#include "lock.h"

#include <base/grow.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- the histogram --------------------------------------------------------------------------------------- */

void tw__sched_stats_call(struct tw__sched_shard *shard, uint64_t late_ns, uint64_t run_ns)
{
    TW_ASSERT(tw__sched_locked(shard));
    const struct tw_sched_options *options = &shard->sched->options;
    struct tw_sched_info *stats = &shard->stats;
    shard->lateness[tw__histogram_bucket(late_ns)]++;
    if (late_ns > stats->late_max_ns)
        stats->late_max_ns = late_ns;
    if (run_ns > stats->run_max_ns)
        stats->run_max_ns = run_ns;
    stats->late += options->late_ns > 0 && late_ns > options->late_ns;
    stats->slow += options->slow_ns > 0 && run_ns > options->slow_ns;
}

static void add_histogram(struct tw__sched_shard *shard, uint64_t *sum)
{
    tw__sched_lock(shard);
    for (uint32_t i = 0; i < TW__HISTOGRAM_BUCKETS; i++)
        sum[i] += shard->lateness[i];
    tw__sched_unlock(shard);
}

/* ---- snapshots ------------------------------------------------------------------------------------------- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void add_stats(struct tw_sched_info *sum, const struct tw_sched_info *one)
{
    sum->pending += one->pending;
    sum->keys += one->keys;
    sum->running += one->running;
    sum->added += one->added;
    sum->again += one->again;
    sum->fired += one->fired;
    sum->cancelled += one->cancelled;
    sum->moved += one->moved;
    sum->handed += one->handed;
    sum->refused += one->refused;
    sum->skipped += one->skipped;
    sum->coalesced += one->coalesced;
    sum->late += one->late;
    sum->slow += one->slow;
    sum->late_max_ns = larger(sum->late_max_ns, one->late_max_ns);
    sum->run_max_ns = larger(sum->run_max_ns, one->run_max_ns);
}

/* Sums the counts of all shards up. */
static void sum_up(const struct tw_sched *sched, struct tw_sched_info *sum)
{
    memset(sum, 0, sizeof *sum); /* with the padding at the end, where a later version may have a member */
    for (uint32_t i = 0; i < tw__sched_made(sched); i++) {
        struct tw__sched_shard *shard = sched->shard[i];
        tw__sched_lock(shard);
        struct tw_sched_info one = shard->stats;
        tw__sched_unlock(shard);
        add_stats(sum, &one);
    }
}

static void histogram(const struct tw_sched *sched, uint64_t *sum)
{
    memset(sum, 0, TW__HISTOGRAM_BUCKETS * sizeof *sum);
    for (uint32_t i = 0; i < tw__sched_made(sched); i++)
        add_histogram(sched->shard[i], sum);
}

void tw_sched_stats(const struct tw_sched *sched, struct tw_sched_info *stats, size_t size)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(stats != NULL);
    uint64_t buckets[TW__HISTOGRAM_BUCKETS];
    struct tw_sched_info all;
    sum_up(sched, &all);
    histogram(sched, buckets);
    all.late_p50_ns = tw__histogram_percentile(buckets, 0.5, all.late_max_ns);
    all.late_p99_ns = tw__histogram_percentile(buckets, 0.99, all.late_max_ns);
    all.memory = atomic_load(&sched->memory);
    all.clock = sched->options.clock;
    tw__grow_fill(stats, size, &all, sizeof all);
}

uint64_t tw_sched_late_percentile(const struct tw_sched *sched, double share)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(share >= 0 && share <= 1);
    uint64_t buckets[TW__HISTOGRAM_BUCKETS];
    histogram(sched, buckets);
    return tw__histogram_percentile(buckets, share, UINT64_MAX);
}

uint64_t tw_sched_count(const struct tw_sched *sched)
{
    TW_ASSERT(tw__sched_usable(sched));
    struct tw_sched_info sum;
    sum_up(sched, &sum);
    return sum.pending;
}

uint64_t tw_sched_key_count(const struct tw_sched *sched)
{
    TW_ASSERT(tw__sched_usable(sched));
    struct tw_sched_info sum;
    sum_up(sched, &sum);
    return sum.keys;
}

/* ---- Prometheus ------------------------------------------------------------------------------------------ */

struct output {
    tw_emit_fn *emit;
    void *arg;
};

__attribute__((format(printf, 2, 3))) static void put_text(const struct output *out, const char *format, ...)
{
    char text[256];
    va_list words;
    va_start(words, format);
    int length = vsnprintf(text, sizeof text, format, words);
    va_end(words);
    out->emit(out->arg, text, (size_t)length);
}

static void put_value(const struct output *out, const char *name, const char *kind, const char *help,
                      uint64_t value)
{
    put_text(out, "# HELP tickwheel_%s %s\n# TYPE tickwheel_%s %s\n", name, help, name, kind);
    put_text(out, "tickwheel_%s %" PRIu64 "\n", name, value);
}

static void put_lateness(const struct output *out, const struct tw_sched *sched, uint64_t fired)
{
    static const double shares[] = {0.5, 0.9, 0.99, 0.999};
    put_text(out, "# HELP tickwheel_lateness_seconds From the due time to the start of the callback.\n"
                  "# TYPE tickwheel_lateness_seconds summary\n");
    uint64_t buckets[TW__HISTOGRAM_BUCKETS];
    histogram(sched, buckets);
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        put_text(out, "tickwheel_lateness_seconds{quantile=\"%g\"} %.9f\n", shares[i],
                 (double)tw__histogram_percentile(buckets, shares[i], UINT64_MAX) / 1e9);
    put_text(out, "tickwheel_lateness_seconds_count %" PRIu64 "\n", fired);
}

void tw_sched_prometheus(const struct tw_sched *sched, tw_emit_fn *emit, void *arg)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(emit != NULL);
    struct output out = {emit, arg};
    struct tw_sched_info stats;
    tw_sched_stats(sched, &stats, sizeof stats);
    put_value(&out, "pending", "gauge", "Tasks that wait for their time or for a thread.", stats.pending);
    put_value(&out, "running", "gauge", "Callbacks under way.", stats.running);
    put_value(&out, "keys", "gauge", "Keys that name a task.", stats.keys);
    put_value(&out, "memory_bytes", "gauge", "Memory held.", stats.memory);
    put_value(&out, "added_total", "counter", "Tasks added.", stats.added);
    put_value(&out, "again_total", "counter", "Tasks filed again by themselves.", stats.again);
    put_value(&out, "fired_total", "counter", "Callbacks started.", stats.fired);
    put_value(&out, "cancelled_total", "counter", "Tasks cancelled.", stats.cancelled);
    put_value(&out, "moved_total", "counter", "Tasks moved.", stats.moved);
    put_value(&out, "handed_total", "counter", "Tasks handed back by drain and stop.", stats.handed);
    put_value(&out, "refused_total", "counter", "Tasks refused because there were too many.", stats.refused);
    put_value(&out, "skipped_total", "counter", "Periods that TW_MISSED_SKIP passed over.", stats.skipped);
    put_value(&out, "coalesced_total", "counter", "Periods that calls stood for besides their own.",
              stats.coalesced);
    put_value(&out, "late_total", "counter", "Callbacks that started later than the limit.", stats.late);
    put_value(&out, "slow_total", "counter", "Callbacks that ran longer than the limit.", stats.slow);
    put_lateness(&out, sched, stats.fired);
}
