/* SPDX-License-Identifier: MIT
 *
 * Handlers of keyspace notifications and of server events, and how the queues react to them.
 *
 *     DEL, UNLINK, SET over a key, expiry, eviction   unlink callback: detach
 *     RENAME or MOVE away                             unlink callback: detach
 *     RENAME, MOVE: the value lives on elsewhere      rename_to, move_to: attach again, before a tick
 *     FLUSHDB, FLUSHALL                               FlushDB START: detach all of that database (no unlink)
 *     SWAPDB                                          swap the numbers of the two databases
 *     RENAME, MOVE, SWAPDB with blocked workers       nothing: the server itself calls them (workers.c), and
 *                                                     would call in vain if their queues were awake
 *     loading starts                                  stop the ticks
 *     loading ends                                    sort the late tasks, mend the append-only file, and say
 *                                                     how many of its commands were refused
 *     CONFIG SET                                      read the settings again that INFO warns by; wake the
 *                                                     workers, who may have waited for tickwheel.deliver yes
 *     a replica is promoted                           deliver late tasks at once
 *     a snapshot begins, and some of the others       ask again who reads the log (server/log.c)
 *     the event loop wakes up                         free the client asked last (delivery/asked.c); look
 *                                                     at the clock
 *
 * Loads may nest. While the server replays an AOF, it serves clients from time to time. A client's DEBUG
 * RELOAD is then a load within that load:
 *
 *     TW.SEND s out a .. | SET .. | SET ..                   SET .. | TW.FIRED s ONCE a      the file
 *                                  client: DEBUG RELOAD
 *     loading:1 -------------------------------------- 0 ---------------------------------  the server's flag
 *     depth:  1 ------------------ 2 ----------------- 1 -------------------------------- 0 ours
 *
 * The server clears its flag when the inner load ends. So the module counts, and loading ends with the
 * outermost load.
 */
#include "commands.h"

#include <string.h>

#include "delivery/tick.h"
#include "delivery/workers.h"
#include "keyspace/alarm.h"
#include "keyspace/keys.h"
#include "queues/place.h"
#include "queues/queue.h"
#include "server/aof.h"
#include "server/config.h"
#include "server/refused.h"

/* One bit for each load that has begun and not ended, the innermost load lowest. A bit is set if its load
 * replays an AOF. */
static uint64_t replays;

/* ---- keys ------------------------------------------------------------------------------------------------ */

static int on_key(RedisModuleCtx *ctx, int type, const char *event, RedisModuleString *name)
{
    if (type == REDISMODULE_NOTIFY_GENERIC) {
        if (strcmp(event, "rename_to") == 0 || strcmp(event, "move_to") == 0)
            tw__redis_keys_renamed(ctx, name);
        return REDISMODULE_OK;
    }
    uint64_t tasks = tw__redis_keys_take_unlinked(name);
    if (type == REDISMODULE_NOTIFY_EXPIRED)
        tw__redis_shared.counts.expired_tasks += tasks;
    else
        tw__redis_shared.counts.evicted_tasks += tasks;
    return REDISMODULE_OK;
}

/* ---- databases ------------------------------------------------------------------------------------------- */

static void on_flush(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t sub, void *data)
{
    (void)ctx;
    (void)event;
    const RedisModuleFlushInfo *info = data;
    if (sub != REDISMODULE_SUBEVENT_FLUSHDB_START)
        return;
    struct tw__redis_queues *queues = tw__redis_keys_all();
    struct tw__link *following;
    for (struct tw__link *link = queues->attached.next; link != &queues->attached; link = following) {
        following = link->next;
        if (info->dbnum == -1 || info->dbnum == tw__redis_queue_at(link)->db)
            tw__redis_keys_detach(tw__redis_queue_at(link));
    }
    tw__redis_alarm_next();
}

static void on_swap(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t sub, void *data)
{
    (void)ctx;
    (void)event;
    (void)sub;
    const RedisModuleSwapDbInfo *info = data;
    struct tw__redis_queues *queues = tw__redis_keys_all();
    for (struct tw__link *link = queues->attached.next; link != &queues->attached; link = link->next) {
        struct tw__redis_queue *queue = tw__redis_queue_at(link);
        if (queue->db == info->dbnum_first)
            queue->db = info->dbnum_second;
        else if (queue->db == info->dbnum_second)
            queue->db = info->dbnum_first;
    }
}

/* ---- the server ------------------------------------------------------------------------------------------ */

static void on_load_start(RedisModuleCtx *ctx, bool replay)
{
    tw__redis_shared.loads++;
    replays = replays << 1 | replay;
    if (replay)
        tw__redis_mend_begin(ctx);
    tw__redis_alarm_pause(true);
    if (tw__redis_shared.batch == NULL)
        tw__redis_reaper_run_all(
            tw__redis_shared.queues); /* two data sets at a time would be too much memory */
}

static void on_load_end(RedisModuleCtx *ctx)
{
    if (replays & 1)
        tw__redis_mend_finish(ctx);
    replays >>= 1;
    tw__redis_refused_sum(ctx);
    if (tw__redis_shared.loads > 0 && --tw__redis_shared.loads > 0)
        return;
    tw__redis_alarm_pause(false);
    tw__redis_place_sort_late(tw__redis_shared.queues, tw__redis_now_ms());
    tw__redis_place_begin_here(tw__redis_shared.queues);
    tw__redis_tick_loaded();
    tw__redis_alarm_next();
}

static void on_loading(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t sub, void *data)
{
    (void)event;
    (void)data;
    if (sub == REDISMODULE_SUBEVENT_LOADING_ENDED || sub == REDISMODULE_SUBEVENT_LOADING_FAILED)
        on_load_end(ctx);
    else
        on_load_start(ctx, sub == REDISMODULE_SUBEVENT_LOADING_AOF_START);
}

static void on_role(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t sub, void *data)
{
    (void)ctx;
    (void)event;
    (void)data;
    tw__redis_log_forget_readers();
    if (sub != REDISMODULE_EVENT_REPLROLECHANGED_NOW_MASTER)
        return;
    /* What was ready on the old primary before, and changed there, came here as a task of the past. */
    tw__redis_place_sort_past(tw__redis_shared.queues);
    tw__redis_place_begin_here(tw__redis_shared.queues);
    tw__redis_alarm_at(tw__redis_now_ms());
}

/* A fork, or a snapshot that the server writes without one. */
static void on_snapshot(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t sub, void *data)
{
    (void)ctx;
    (void)event;
    (void)sub;
    (void)data;
    tw__redis_log_forget_readers();
}

static void on_cron(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t sub, void *data)
{
    (void)event;
    (void)sub;
    (void)data;
    tw__redis_tick_cron(ctx);
}

static void on_event_loop(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t sub, void *data)
{
    (void)event;
    (void)data;
    if (sub != REDISMODULE_SUBEVENT_EVENTLOOP_AFTER_SLEEP)
        return;
    tw__redis_asked_over();
    tw__redis_tick_iteration(ctx);
}

static void on_config(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t sub, void *data)
{
    (void)event;
    (void)sub;
    (void)data;
    tw__redis_log_forget_readers();
    tw__redis_info_settings(ctx);
    if (tw__redis_config.deliver)
        tw__redis_workers_wake_all(); /* it may be yes only now, and workers may have begun to wait before */
    tw__redis_alarm_next();
}

int tw__redis_events_register(RedisModuleCtx *ctx)
{
    const int classes = REDISMODULE_NOTIFY_GENERIC | REDISMODULE_NOTIFY_EXPIRED | REDISMODULE_NOTIFY_EVICTED;
    if (RedisModule_SubscribeToKeyspaceEvents(ctx, classes, on_key) != REDISMODULE_OK ||
        RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_FlushDB, on_flush) != REDISMODULE_OK ||
        RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_SwapDB, on_swap) != REDISMODULE_OK ||
        RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Loading, on_loading) != REDISMODULE_OK ||
        RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ReplicationRoleChanged, on_role) !=
            REDISMODULE_OK ||
        RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ForkChild, on_snapshot) != REDISMODULE_OK ||
        RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Persistence, on_snapshot) != REDISMODULE_OK ||
        RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_CronLoop, on_cron) != REDISMODULE_OK ||
        RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_EventLoop, on_event_loop) != REDISMODULE_OK ||
        RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Config, on_config) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    return REDISMODULE_OK;
}
