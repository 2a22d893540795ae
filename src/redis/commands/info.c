/* SPDX-License-Identifier: MIT
 *
 * INFO tickwheel, and its warning of configurations that endanger tasks.
 */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/version.h>

#include "delivery/tick.h"
#include "keyspace/keys.h"
#include "queues/look.h"
#include "queues/sums.h"
#include "server/config.h"
#include "server/lateness.h"

/* ---- durability ------------------------------------------------------------------------------------------ */

static const char *durability(RedisModuleCtx *ctx)
{
    int flags = RedisModule_GetContextFlags(ctx);
    if (flags & REDISMODULE_CTX_FLAGS_AOF)
        return "aof";
    return flags & REDISMODULE_CTX_FLAGS_RDB ? "rdb-only" : "none";
}

const char *tw__redis_info_warning(RedisModuleCtx *ctx)
{
    int flags = RedisModule_GetContextFlags(ctx);
    const int evicting = REDISMODULE_CTX_FLAGS_MAXMEMORY | REDISMODULE_CTX_FLAGS_EVICT;
    if ((flags & evicting) == evicting)
        return "maxmemory-policy allows the server to evict queues with their tasks; use noeviction";
    if (!(flags & REDISMODULE_CTX_FLAGS_AOF))
        return flags & REDISMODULE_CTX_FLAGS_RDB
                   ? "tasks put since the last snapshot are lost in a crash; use appendonly yes"
                   : "nothing is saved: all tasks are lost in a restart; use appendonly yes";
    return "none";
}

enum { WARNING_MAX = 512 };

/* ---- queues that are too large --------------------------------------------------------------------------- */

/* A client may send at most proto-max-bulk-len bytes as one argument. This limits MIGRATE too, which sends a
 * queue as one argument of RESTORE. */
void tw__redis_info_settings(RedisModuleCtx *ctx)
{
    char value[32];
    tw__redis_config_of_server(ctx, "proto-max-bulk-len", "536870912", value, sizeof value);
    tw__redis_sums_limit_dump(tw__redis_shared.queues, strtoull(value, NULL, 10));
}

static const char too_large[] =
    "the dump of a queue may be larger than proto-max-bulk-len, so that MIGRATE and RESTORE fail; "
    "spread its tasks over more queues";

/* Adds all warnings as one field. */
static void add_warning(RedisModuleInfoCtx *info, RedisModuleCtx *ctx)
{
    char text[WARNING_MAX];
    const char *other = tw__redis_info_warning(ctx);
    bool more = strcmp(other, "none") != 0;
    if (tw__redis_shared.queues->too_large == 0)
        snprintf(text, sizeof text, "%s", other);
    else
        snprintf(text, sizeof text, "%s%s%s", more ? other : "", more ? "; " : "", too_large);
    RedisModule_InfoAddFieldCString(info, "warning", text);
}

/* ---- INFO ------------------------------------------------------------------------------------------------ */

static void add_number(RedisModuleInfoCtx *info, const char *name, uint64_t number)
{
    RedisModule_InfoAddFieldULongLong(info, name, number);
}

static uint64_t all_bytes(void)
{
    return tw__redis_shared.queues->bytes +
           tw__redis_shared.queues->route_capacity * sizeof(struct tw__redis_route *);
}

static uint64_t age(uint64_t since_ms, uint64_t now_ms)
{
    return since_ms < now_ms ? now_ms - since_ms : 0;
}

/* Adds the ready tasks that are late, and the tasks that a pause keeps back. On a replica they wait for the
 * primary, which has perhaps long offered them to workers: only attempts are replicated. So none is late
 * there. */
static void add_late(RedisModuleInfoCtx *info, RedisModuleCtx *ctx, const struct tw__redis_queues *queues,
                     const struct tw__redis_ready *ready, uint64_t now_ms)
{
    bool replica = tw__redis_gate_is_replica(ctx), stopped = !replica && !tw__redis_config.deliver;
    bool late = !replica && !stopped;
    add_number(info, "late", late ? ready->late : 0);
    add_number(info, "oldest_late_ms", late ? age(ready->late_since, now_ms) : 0);
    add_number(info, "held", queues->held);
    add_number(info, "paused_tasks", ready->count - queues->ready_count - (stopped ? 0 : ready->late));
    add_number(info, "paused_queues", queues->paused);
    RedisModule_InfoAddFieldCString(info, "deliver", tw__redis_config.deliver ? "yes" : "no");
}

static void add_tasks(RedisModuleInfoCtx *info, RedisModuleCtx *ctx)
{
    const struct tw__redis_queues *queues = tw__redis_keys_all();
    uint64_t now_ms = tw__redis_now_ms(), tasks = queues->tasks - queues->dead_count;
    struct tw__redis_ready ready;
    tw__redis_overview_all_ready(queues, now_ms, &ready);
    add_number(info, "tasks", tasks);
    add_number(info, "queues", queues->count);
    add_number(info, "bytes", all_bytes());
    add_number(info, "waiting", tasks - ready.count - queues->leased_count);
    add_number(info, "ready", ready.count);
    add_number(info, "oldest_ready_ms", age(ready.since, now_ms));
    add_late(info, ctx, queues, &ready, now_ms);
    add_number(info, "leased", queues->leased_count);
    add_number(info, "dead", queues->dead_count);
    add_number(info, "dead_bytes", queues->dead_bytes);
    add_number(info, "reaping", queues->reaping);
}

static void add_counts(RedisModuleInfoCtx *info)
{
    static const char *const deferred[TW__REDIS_DEFERS] = {
        [TW__REDIS_DEFER_STOPPED] = "deferred_stopped", [TW__REDIS_DEFER_PAUSE] = "deferred_pause",
        [TW__REDIS_DEFER_ROLE] = "deferred_role",       [TW__REDIS_DEFER_OOM] = "deferred_oom",
        [TW__REDIS_DEFER_SLOT] = "deferred_slot",       [TW__REDIS_DEFER_REPLICAS] = "deferred_replicas",
        [TW__REDIS_DEFER_DISK] = "deferred_disk",       [TW__REDIS_DEFER_REFUSED] = "deferred_refused",
    };
    add_number(info, "put", tw__redis_shared.counts.put);
    add_number(info, "cancelled", tw__redis_shared.counts.cancelled);
    add_number(info, "moved", tw__redis_shared.counts.moved);
    add_number(info, "offered", tw__redis_shared.counts.offered);
    add_number(info, "renewed", tw__redis_shared.counts.renewed);
    add_number(info, "replayed", tw__redis_shared.counts.replayed);
    add_number(info, "purged", tw__redis_shared.counts.purged);
    add_number(info, "expired_tasks", tw__redis_shared.counts.expired_tasks);
    add_number(info, "evicted_tasks", tw__redis_shared.counts.evicted_tasks);
    add_number(info, "refused_commands", tw__redis_shared.counts.refused_commands);
    for (int i = 0; i < TW__REDIS_COUNTS; i++)
        add_number(info, tw__redis_count_name[i], tw__redis_shared.queues->counts[i]);
    for (int i = TW__REDIS_DEFER_STOPPED; i < TW__REDIS_DEFERS; i++)
        add_number(info, deferred[i], tw__redis_shared.counts.deferred[i]);
}

static void add_times(RedisModuleInfoCtx *info)
{
    struct tw__redis_lateness all = tw__redis_lateness_all(), minute = tw__redis_lateness_minute(),
                              waits = tw__redis_lateness_waits();
    add_number(info, "lateness_us_p50", all.p50_us);
    add_number(info, "lateness_us_p99", all.p99_us);
    add_number(info, "lateness_us_p999", all.p999_us);
    add_number(info, "lateness_us_max", all.max_us);
    add_number(info, "lateness_minute_us_p50", minute.p50_us);
    add_number(info, "lateness_minute_us_p99", minute.p99_us);
    add_number(info, "lateness_minute_us_p999", minute.p999_us);
    add_number(info, "lateness_minute_us_max", minute.max_us);
    add_number(info, "waiting_us_p50", waits.p50_us);
    add_number(info, "waiting_us_p99", waits.p99_us);
    add_number(info, "waiting_us_max", waits.max_us);
    add_number(info, "tick_us_max", tw__redis_shared.counts.tick_us_max);
    add_number(info, "budget_tasks", tw__redis_tick_budget_tasks());
    add_number(info, "budget_us", tw__redis_tick_budget_us());
    add_number(info, "clock_jumps", tw__redis_shared.counts.clock_jumps);
}

static void on_info(RedisModuleInfoCtx *info, int for_crash_report)
{
    RedisModule_InfoAddSection(info, "");
    RedisModule_InfoAddFieldCString(info, "version", TW_VERSION);
    if (for_crash_report) { /* touch as little as possible */
        add_number(info, "tasks", tw__redis_shared.queues->tasks - tw__redis_shared.queues->dead_count);
        return;
    }
    RedisModuleCtx *ctx = RedisModule_GetThreadSafeContext(NULL);
    add_tasks(info, ctx);
    add_number(info, "unmovable", tw__redis_shared.queues->too_large);
    add_counts(info);
    add_times(info);
    RedisModule_InfoAddFieldCString(info, "durability", durability(ctx));
    add_warning(info, ctx);
    RedisModule_FreeThreadSafeContext(ctx);
}

int tw__redis_info_register(RedisModuleCtx *ctx)
{
    tw__redis_info_settings(ctx);
    return RedisModule_RegisterInfoFunc(ctx, on_info);
}
