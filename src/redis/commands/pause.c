/* SPDX-License-Identifier: MIT
 *
 * TW.PAUSE and TW.RESUME. The log has TW.FIRED PAUSE or RESUME.
 */
#include "commands.h"

#include "delivery/workers.h"
#include "keyspace/alarm.h"
#include "keyspace/keys.h"
#include "queues/place.h"
#include "queues/queue.h"
#include "queues/sums.h"
#include "server/arguments.h"
#include "server/strings.h"

/* Makes a queue that is paused and has no tasks. */
static void make_paused(RedisModuleCtx *ctx, RedisModuleString *name)
{
    struct tw__redis_queue *queue = tw__redis_queue_new(tw__redis_shared.queues);
    tw__redis_sums_pause(queue, true);
    tw__redis_keys_make(ctx, name, queue);
}

static void end_pause(struct tw__redis_queue *queue)
{
    tw__redis_place_go_on(queue);
    tw__redis_sums_pause(queue, false);
    if (queue->ready_count > 0)
        tw__redis_workers_wake(queue);
}

void tw__redis_pause_set(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue *queue, bool on)
{
    if (queue == NULL)
        make_paused(ctx, name);
    else if (on)
        tw__redis_sums_pause(queue, true);
    else
        end_pause(queue);
    tw__redis_alarm_at(tw__redis_now_ms());
}

static int handle_pause(RedisModuleCtx *ctx, RedisModuleString **argv, bool on)
{
    struct tw__redis_queue *queue;
    if (!tw__redis_keys_open(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    bool was = queue != NULL && queue->paused;
    if (on == was)
        return RedisModule_ReplyWithLongLong(ctx, 0);
    if (queue == NULL && tw__redis_gate_is_full(ctx)) { /* a pause that ends needs no memory */
        tw__redis_refuse(ctx, "OOM command not allowed when used memory > 'maxmemory'.");
        return REDISMODULE_OK;
    }
    /* Logged first: a handler that learns of a new queue may end its pause. */
    RedisModule_Replicate(ctx, "TW.FIRED", "sc", argv[1], on ? "PAUSE" : "RESUME");
    tw__redis_pause_set(ctx, argv[1], queue, on);
    tw__redis_keys_changed(ctx, argv[1], on ? "tw.pause" : "tw.resume");
    tw__redis_keys_remove_if_empty(ctx, argv[1], true);
    return RedisModule_ReplyWithLongLong(ctx, 1);
}

/* TW.PAUSE queue */
int tw__redis_pause_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argc;
    return handle_pause(ctx, argv, true);
}

/* TW.RESUME queue */
int tw__redis_resume_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argc;
    return handle_pause(ctx, argv, false);
}
