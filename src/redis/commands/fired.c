/* SPDX-License-Identifier: MIT
 *
 * These commands run on a replica, or while the AOF is loaded. They repeat changes that were made before, and
 * deliver nothing. TW.FIRED leaves an emptied queue in place, because DEL follows in the AOF. TW.FIRED
 * NOTHING alone is called by the module itself, while a batch of deliveries is open (call.c).
 */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keyspace/alarm.h"
#include "keyspace/keys.h"
#include "queues/change.h"
#include "queues/chunk.h"
#include "queues/grave.h"
#include "queues/lease.h"
#include "queues/place.h"
#include "queues/queue.h"
#include "server/arguments.h"
#include "server/clock.h"
#include "server/rights.h"
#include "server/strings.h"

enum { REPLY_MAX = 256 };

/* Returns whether the AOF or the primary sends the command. If not, replies with an error. */
static bool is_internal(RedisModuleCtx *ctx, const char *name)
{
    char error[REPLY_MAX];
    if (tw__redis_caller_is_log(ctx))
        return true;
    snprintf(error, sizeof error, "ERR %s is accepted only from the append-only file and the replication link",
             name);
    RedisModule_ReplyWithError(ctx, error);
    return false;
}

/* Replies that what the log has sent is damaged, and why. */
static int reply_damaged(RedisModuleCtx *ctx, const char *what, const struct tw__redis_fault *fault)
{
    char text[TW__REDIS_FAULT_TEXT], error[REPLY_MAX];
    snprintf(error, sizeof error, "ERR %s: %s", what, tw__redis_fault_text(fault, text));
    return RedisModule_ReplyWithError(ctx, error);
}

/* NEXT: a repeating task was delivered, and is due again. Returns false after an error reply. */
static bool fired_next(RedisModuleCtx *ctx, struct tw__redis_queue *queue, RedisModuleString **argv,
                       uint64_t now_ms)
{
    long long due, times;
    if (RedisModule_StringToLongLong(argv[1], &due) != REDISMODULE_OK || due < 0 ||
        (uint64_t)due > TW__TASK_TIME_MAX || RedisModule_StringToLongLong(argv[2], &times) != REDISMODULE_OK ||
        times < -1) {
        tw__redis_argument_error(ctx, argv[1], "TW.FIRED NEXT", "id, due time, times left");
        return false;
    }
    struct tw__redis_bytes id = tw__redis_string_bytes(argv[0]);
    struct tw__redis_task *task =
        tw__redis_queue_find(queue, tw__redis_queue_hash(tw__redis_shared.queues, id), id);
    if (task == NULL || tw__redis_task_every(task) == 0)
        return true;
    tw__redis_task_set_times(task, times < 0 ? TW__REDIS_FOR_EVER : (uint64_t)times);
    tw__redis_queue_begin_anew(queue, task, (uint64_t)due, now_ms);
    tw__redis_alarm_at((uint64_t)due);
    return true;
}

static void fired_once(struct tw__redis_queue *queue, RedisModuleString *argument)
{
    struct tw__redis_bytes id = tw__redis_string_bytes(argument);
    uint64_t hash = tw__redis_queue_hash(tw__redis_shared.queues, id);
    struct tw__redis_task *task = tw__redis_queue_find(queue, hash, id);
    if (task != NULL)
        tw__redis_queue_remove(queue, task, hash);
}

/* LIVES: tasks were leased, failed, died, were done. Returns false after an error reply. */
static bool fired_lives(RedisModuleCtx *ctx, struct tw__redis_queue *queue, RedisModuleString *changes)
{
    struct tw__redis_fault fault;
    bool good = tw__redis_change_read(queue, tw__redis_string_bytes(changes), tw__redis_clock_now(ctx), &fault);
    tw__redis_alarm_next();
    if (!good)
        reply_damaged(ctx, "TW.FIRED LIVES: the changes are damaged", &fault);
    return good;
}

/* Makes the changes of a TW.FIRED. Returns false after an error reply. */
static bool make_changes(RedisModuleCtx *ctx, struct tw__redis_queue *queue, RedisModuleString **argv, int argc)
{
    bool good = true;
    if (tw__redis_argument_is(argv[2], "LIVES"))
        return fired_lives(ctx, queue, argv[3]);
    if (tw__redis_argument_is(argv[2], "ONCE")) {
        for (int i = 3; i < argc; i++)
            fired_once(queue, argv[i]);
        return true;
    }
    for (int i = 3; i < argc && good; i += 3)
        good = fired_next(ctx, queue, argv + i, tw__redis_now_ms());
    return good;
}

static bool is_form(RedisModuleString **argv, int argc)
{
    return tw__redis_argument_is(argv[2], "ONCE") ||
           (tw__redis_argument_is(argv[2], "NEXT") && argc % 3 == 0) ||
           (tw__redis_argument_is(argv[2], "LIVES") && argc == 4);
}

/* TW.FIRED queue ONCE id [id ...] | NEXT id due times [id due times ...] | LIVES changes | NOTHING */
int tw__redis_fired_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    struct tw__redis_queue *queue;
    bool nothing = argc == 3 && tw__redis_argument_is(argv[2], "NOTHING");
    if (nothing && tw__redis_shared.batch != NULL)
        return RedisModule_ReplyWithSimpleString(ctx, "OK"); /* call.c asks whether it may write */
    if (argc < 4 && !nothing)
        return RedisModule_WrongArity(ctx);
    if (!is_internal(ctx, "TW.FIRED"))
        return REDISMODULE_OK;
    if (!is_form(argv, argc))
        return tw__redis_argument_error(ctx, argv[2], "TW.FIRED",
                                        "ONCE id ..., NEXT id due times ... or LIVES changes");
    if (!tw__redis_keys_open(ctx, argv[1], &key, &queue))
        return REDISMODULE_OK;
    RedisModule_CloseKey(key);
    bool good = queue == NULL || make_changes(ctx, queue, argv, argc);
    if (good)
        RedisModule_ReplicateVerbatim(ctx);
    RedisModule_SignalModifiedKey(ctx, argv[1]); /* if no task is left, DEL follows */
    return good ? RedisModule_ReplyWithSimpleString(ctx, "OK") : REDISMODULE_OK;
}

/* Whether this version reads the format of a chunk. If not, replies with an error. But a chunk of the AOF ends
 * the server, as an unknown command there does. Otherwise it would go on without these tasks, and the next
 * rewrite would take them from the file. */
static bool is_format(RedisModuleCtx *ctx, struct tw__redis_bytes chunk)
{
    char error[REPLY_MAX];
    uint64_t format = tw__redis_chunk_format(chunk);
    if (format == TW__REDIS_FORMAT)
        return true;
    snprintf(error, sizeof error,
             "ERR format is %" PRIu64 ": expected %d; the version that wrote it can read it", format,
             TW__REDIS_FORMAT);
    if (RedisModule_IsAOFClient(RedisModule_GetClientId(ctx))) {
        RedisModule_Log(ctx, "warning", "tickwheel: %s", error + strlen("ERR "));
        exit(EXIT_FAILURE);
    }
    RedisModule_ReplyWithError(ctx, error);
    return false;
}

/* TW.LOAD queue chunk: tasks as persist.c writes them. */
int tw__redis_load_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    struct tw__redis_queue *queue;
    struct tw__redis_fault fault;
    if (argc != 3)
        return RedisModule_WrongArity(ctx);
    struct tw__redis_bytes chunk = tw__redis_string_bytes(argv[2]);
    if (!is_internal(ctx, "TW.LOAD") || !is_format(ctx, chunk) ||
        !tw__redis_keys_open(ctx, argv[1], &key, &queue))
        return REDISMODULE_OK;
    bool is_new = queue == NULL;
    if (is_new)
        queue = tw__redis_queue_new(tw__redis_shared.queues);
    bool good = tw__redis_chunk_read(queue, chunk, tw__redis_clock_now(ctx), &fault);
    if (is_new && tw__redis_table_count(&queue->tasks) > 0)
        tw__redis_keys_set(ctx, key, argv[1], queue);
    else if (is_new)
        tw__redis_grave_bury(queue);
    RedisModule_CloseKey(key);
    if (!good)
        return reply_damaged(ctx, "TW.LOAD: the chunk is damaged", &fault);
    RedisModule_ReplicateVerbatim(ctx);
    RedisModule_SignalModifiedKey(ctx, argv[1]);
    tw__redis_alarm_next();
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}
