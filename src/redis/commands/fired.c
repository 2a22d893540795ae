/* SPDX-License-Identifier: MIT
 *
 * These commands run on a replica, or while the AOF is loaded. They repeat changes that were made before, and
 * deliver nothing. TW.FIRED leaves an emptied queue in place, because DEL follows in the AOF. TW.FIRED
 * NOTHING alone is called by the module itself, while a batch of deliveries is open (call.c).
 */
#include "commands.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keyspace/alarm.h"
#include "keyspace/keys.h"
#include "queues/change.h"
#include "queues/chunk.h"
#include "queues/lease.h"
#include "queues/place.h"
#include "queues/queue.h"
#include "queues/route.h"
#include "server/arguments.h"
#include "server/rights.h"
#include "server/shared.h"
#include "server/strings.h"

enum { REPLY_MAX = 320 };

/* Returns whether the AOF or the primary sends the command. If not, replies with an error. */
static bool is_internal(RedisModuleCtx *ctx, const char *name)
{
    return tw__redis_caller_is_log(ctx) ||
           tw__redis_refuse(ctx, "ERR %s is accepted only from the append-only file and the replication link",
                            name);
}

static void log_misfit(RedisModuleCtx *ctx, RedisModuleString *name, const char *misfit)
{
    char shown[TW__REDIS_SHOWN_MAX];
    RedisModule_Log(ctx, "warning", "tickwheel: an outcome does not fit the queue '%s': %s",
                    tw__redis_string_shown(name, shown), misfit);
}

/* Replies that an outcome does not fit the queue, and says so in the server's log too. Outcomes that fit have
 * been done. */
static void reply_misfit(RedisModuleCtx *ctx, RedisModuleString *name, const char *misfit)
{
    char shown[TW__REDIS_SHOWN_MAX];
    log_misfit(ctx, name, misfit);
    tw__redis_refuse(ctx, "ERR an outcome does not fit the queue '%s': %s", tw__redis_string_shown(name, shown),
                     misfit);
}

/* A part of the log cannot be read. If it is the AOF, ends the server, as an unknown command there does.
 * Otherwise the server would go on without these tasks, and the next rewrite would take them from the file. */
static void end_start(RedisModuleCtx *ctx, const char *why)
{
    if (!RedisModule_IsAOFClient(RedisModule_GetClientId(ctx)))
        return;
    RedisModule_Log(ctx, "warning", "tickwheel: %s", why);
    exit(EXIT_FAILURE);
}

/* A part of the log cannot be read. The primary gets an error. Returns false. */
__attribute__((format(printf, 2, 3))) static bool refuse_log(RedisModuleCtx *ctx, const char *format, ...)
{
    char why[REPLY_MAX];
    va_list parts;
    va_start(parts, format);
    vsnprintf(why, sizeof why, format, parts);
    va_end(parts);
    end_start(ctx, why);
    return tw__redis_refuse(ctx, "ERR %s", why);
}

#define BACKUP "take the file from a backup or a replica"

static bool refuse_count(RedisModuleCtx *ctx, const char *name, int argc, const char *expected)
{
    return refuse_log(ctx, "the number of arguments of %s is %d: expected %s; " BACKUP, name, argc - 1,
                      expected);
}

/* A later version may have further forms. */
static bool refuse_form(RedisModuleCtx *ctx, RedisModuleString *form)
{
    char shown[TW__REDIS_SHOWN_MAX];
    return refuse_log(
        ctx,
        "the outcome is '%s': expected ONCE id ..., NEXT id due times ..., CHANGES bytes, PUT chunk value ..., "
        "RENEW chunk value ..., PAUSE or RESUME; the version that wrote it can read it",
        tw__redis_string_shown(form, shown));
}

static bool refuse_damaged(RedisModuleCtx *ctx, RedisModuleString *name, const struct tw__redis_fault *fault)
{
    char shown[TW__REDIS_SHOWN_MAX], text[TW__REDIS_FAULT_TEXT];
    return refuse_log(ctx,
                      "a chunk of the queue '%s' is damaged: %s; " BACKUP
                      ", as redis-check-aof does not look into chunks",
                      tw__redis_string_shown(name, shown), tw__redis_fault_text(fault, text));
}

/* The key of a chunk that brings tasks has another type, and keys.c has replied so. */
static void tell_type(RedisModuleCtx *ctx, RedisModuleString *name)
{
    char shown[TW__REDIS_SHOWN_MAX], why[REPLY_MAX];
    snprintf(why, sizeof why, "a chunk has the key '%s' of another type: expected a queue, or none; " BACKUP,
             tw__redis_string_shown(name, shown));
    end_start(ctx, why);
}

static bool refuse_next(RedisModuleCtx *ctx, RedisModuleString **argv)
{
    char due[TW__REDIS_SHOWN_MAX], times[TW__REDIS_SHOWN_MAX];
    return refuse_log(ctx,
                      "the outcome is NEXT with due '%s' and times '%s': expected 0 to %" PRIu64
                      " and -1, or at least 1; " BACKUP,
                      tw__redis_string_shown(argv[1], due), tw__redis_string_shown(argv[2], times),
                      TW__TASK_TIME_MAX);
}

/* Returns the task with this id, which was delivered. Only a task that has a target, and that waits, can have
 * been. Otherwise returns NULL, and sets *misfit. */
static struct tw__redis_task *delivered_task(const struct tw__redis_queue *queue, RedisModuleString *argument,
                                             uint64_t *hash, const char **misfit)
{
    struct tw__redis_bytes id = tw__redis_string_bytes(argument);
    *hash = tw__redis_queue_hash(tw__redis_shared.queues, id);
    struct tw__redis_task *task = tw__redis_queue_find(queue, *hash, id);
    if (task == NULL)
        *misfit = "no task has the id of a change";
    else if (tw__redis_route_plan(tw__redis_route_of(queue->queues, task)).kind == TW__REDIS_WORKERS)
        *misfit = "a task without a target was delivered";
    else if (tw__redis_task_stage(task) != TW__TASK_FILED)
        *misfit = "a task that is leased or dead was delivered";
    else
        return task;
    return NULL;
}

/* NEXT: a repeating task was delivered, and is due again. Returns false after an error reply. */
static bool fired_next(RedisModuleCtx *ctx, struct tw__redis_queue *queue, RedisModuleString **argv,
                       uint64_t now_ms, const char **misfit)
{
    long long due, times;
    uint64_t hash;
    if (RedisModule_StringToLongLong(argv[1], &due) != REDISMODULE_OK || due < 0 ||
        (uint64_t)due > TW__TASK_TIME_MAX || RedisModule_StringToLongLong(argv[2], &times) != REDISMODULE_OK ||
        times < -1 || times == 0)
        return refuse_next(ctx, argv);
    struct tw__redis_task *task = delivered_task(queue, argv[0], &hash, misfit);
    if (task == NULL)
        return true;
    if (tw__redis_task_every(task) == 0) {
        *misfit = "a task with another period does not repeat";
        return true;
    }
    tw__redis_task_set_times(task, times < 0 ? TW__REDIS_FOR_EVER : (uint64_t)times);
    tw__redis_queue_begin_anew(queue, task, (uint64_t)due, now_ms);
    tw__redis_alarm_at((uint64_t)due);
    return true;
}

static void fired_once(struct tw__redis_queue *queue, RedisModuleString *argument, const char **misfit)
{
    uint64_t hash;
    struct tw__redis_task *task = delivered_task(queue, argument, &hash, misfit);
    if (task != NULL)
        tw__redis_queue_remove(queue, task, hash);
}

/* Whether this version reads the format of a chunk. If not, refuses the chunk. */
static bool is_format(RedisModuleCtx *ctx, struct tw__redis_bytes chunk)
{
    uint64_t format = tw__redis_chunk_format(chunk);
    return format == TW__REDIS_FORMAT ||
           refuse_log(ctx, "format is %" PRIu64 ": expected %d; the version that wrote it can read it", format,
                      TW__REDIS_FORMAT);
}

/* Whether bytes were read to their end. Sets *misfit if what they say does not fit the queue. */
static bool was_read(bool good, const struct tw__redis_fault *fault, const char **misfit)
{
    *misfit = good ? NULL : fault->misfit;
    return good || *misfit != NULL;
}

/* CHANGES: tasks were leased, failed, died, were done, cancelled, moved. Returns false after an error reply. */
static bool fired_changes(RedisModuleCtx *ctx, struct tw__redis_queue *queue, RedisModuleString **argv,
                          const char **misfit)
{
    struct tw__redis_fault fault;
    bool good = tw__redis_change_read(queue, tw__redis_string_bytes(argv[3]), tw__redis_clock_now(ctx), &fault);
    tw__redis_alarm_next();
    return was_read(good, &fault, misfit) || refuse_damaged(ctx, argv[1], &fault);
}

/* Reads a chunk into the queue of a key, or into a new queue if it is NULL. A new one is kept if tasks have
 * come into it, and the chunk can be read to its end. */
static bool load_chunk(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue *queue,
                       struct tw__redis_bytes chunk, const struct tw__redis_logged *logged,
                       struct tw__redis_fault *fault)
{
    uint64_t now_ms = tw__redis_clock_now(ctx), monotonic_ms = RedisModule_MonotonicMicroseconds() / 1000;
    bool is_new = queue == NULL;
    if (is_new)
        queue = tw__redis_queue_new(tw__redis_shared.queues);
    bool good = tw__redis_chunk_read(queue, chunk, logged, now_ms, monotonic_ms, fault);
    if (is_new && good && tw__redis_table_count(&queue->tasks) > 0)
        tw__redis_keys_make(ctx, name, queue);
    else if (is_new)
        tw__redis_reaper_add(queue);
    tw__redis_alarm_next();
    return good;
}

static struct tw__redis_bytes value_at(void *arg, uint32_t i)
{
    return tw__redis_string_bytes(((RedisModuleString **)arg)[i]);
}

/* PUT: a task was put or sent. RENEW: a task has got another payload and other options. Returns false after an
 * error reply. */
static bool fired_task(RedisModuleCtx *ctx, struct tw__redis_queue *queue, RedisModuleString **argv, int argc,
                       const char **misfit)
{
    struct tw__redis_fault fault;
    struct tw__redis_bytes chunk = tw__redis_string_bytes(argv[3]);
    struct tw__redis_logged logged = {.renews = tw__redis_argument_is(argv[2], "RENEW"),
                                      .count = (uint32_t)argc - 4,
                                      .string = value_at,
                                      .arg = argv + 4};
    return is_format(ctx, chunk) &&
           (was_read(load_chunk(ctx, argv[1], queue, chunk, &logged, &fault), &fault, misfit) ||
            refuse_damaged(ctx, argv[1], &fault));
}

/* Makes the changes of a TW.FIRED. The queue may be NULL. Returns false after an error reply. Sets *misfit if a
 * change does not fit. */
static bool make_changes(RedisModuleCtx *ctx, struct tw__redis_queue *queue, RedisModuleString **argv, int argc,
                         const char **misfit)
{
    bool good = true;
    if (tw__redis_argument_is(argv[2], "PUT") || tw__redis_argument_is(argv[2], "RENEW"))
        return fired_task(ctx, queue, argv, argc, misfit);
    if (queue == NULL) {
        *misfit = "there is no such queue";
        return true;
    }
    if (tw__redis_argument_is(argv[2], "CHANGES"))
        return fired_changes(ctx, queue, argv, misfit);
    if (tw__redis_argument_is(argv[2], "ONCE")) {
        for (int i = 3; i < argc; i++)
            fired_once(queue, argv[i], misfit);
        return true;
    }
    for (int i = 3; i < argc && good; i += 3)
        good = fired_next(ctx, queue, argv + i, tw__redis_now_ms(), misfit);
    return good;
}

/* Whether the form has no arguments: a pause begins or ends. */
static bool is_of_pause(RedisModuleString **argv, int argc)
{
    return argc == 3 && (tw__redis_argument_is(argv[2], "PAUSE") || tw__redis_argument_is(argv[2], "RESUME"));
}

/* Whether the arguments have a form. A put without its payload is left to the reader of chunks, for which it is
 * damaged. */
static bool is_form(RedisModuleString **argv, int argc)
{
    if (argc == 3)
        return is_of_pause(argv, argc);
    return tw__redis_argument_is(argv[2], "ONCE") ||
           (tw__redis_argument_is(argv[2], "NEXT") && argc % 3 == 0) ||
           (tw__redis_argument_is(argv[2], "CHANGES") && argc == 4) || tw__redis_argument_is(argv[2], "PUT") ||
           tw__redis_argument_is(argv[2], "RENEW");
}

/* A pause begins or ends. Returns what does not fit, or NULL. */
static const char *fired_pause(RedisModuleCtx *ctx, struct tw__redis_queue *queue, RedisModuleString **argv)
{
    bool on = tw__redis_argument_is(argv[2], "PAUSE"), was = queue != NULL && queue->paused;
    if (on == was)
        return on ? "it is paused" : "it is not paused";
    tw__redis_pause_set(ctx, argv[1], queue, on);
    return NULL;
}

/* Makes the changes, replicates them, and replies. */
static void fire_changes(RedisModuleCtx *ctx, struct tw__redis_queue *queue, RedisModuleString **argv, int argc)
{
    const char *misfit = NULL;
    if (is_of_pause(argv, argc))
        misfit = fired_pause(ctx, queue, argv);
    else if (!make_changes(ctx, queue, argv, argc, &misfit))
        return;
    RedisModule_ReplicateVerbatim(ctx);
    if (misfit != NULL)
        reply_misfit(ctx, argv[1], misfit);
    else
        RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* Opens the queue of an outcome. Returns false after an error reply. */
static bool open_fired(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, struct tw__redis_queue **queue)
{
    if (!is_internal(ctx, "TW.FIRED"))
        return false;
    if (argc < 3)
        return refuse_count(ctx, "TW.FIRED", argc, "at least 2, a queue and an outcome");
    if (!is_form(argv, argc))
        return refuse_form(ctx, argv[2]);
    if (tw__redis_keys_open(ctx, argv[1], queue))
        return true;
    if (tw__redis_argument_is(argv[2], "PUT"))
        tell_type(ctx, argv[1]);
    log_misfit(ctx, argv[1], "its key has another type");
    return false;
}

/* TW.FIRED queue ONCE id [id ...] | NEXT id due times [id due times ...] | CHANGES bytes |
 * PUT chunk value [value ...] | RENEW chunk [value ...] | PAUSE | RESUME | NOTHING */
int tw__redis_fired_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue = NULL;
    bool nothing = argc == 3 && tw__redis_argument_is(argv[2], "NOTHING");
    if (nothing && tw__redis_shared.batch != NULL)
        return RedisModule_ReplyWithSimpleString(ctx, "OK"); /* call.c asks whether it may write */
    if (!open_fired(ctx, argv, argc, &queue))
        return REDISMODULE_OK;
    fire_changes(ctx, queue, argv, argc);
    return RedisModule_SignalModifiedKey(ctx, argv[1]); /* if no task is left, DEL follows */
}

/* Loads a chunk. Returns false after an error reply. */
static bool load_tasks(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    struct tw__redis_fault fault;
    if (!is_internal(ctx, "TW.LOAD"))
        return false;
    if (argc != 3)
        return refuse_count(ctx, "TW.LOAD", argc, "2, a queue and a chunk");
    struct tw__redis_bytes chunk = tw__redis_string_bytes(argv[2]);
    if (!is_format(ctx, chunk))
        return false;
    if (!tw__redis_keys_open(ctx, argv[1], &queue)) {
        tell_type(ctx, argv[1]);
        return false;
    }
    return load_chunk(ctx, argv[1], queue, chunk, NULL, &fault) || refuse_damaged(ctx, argv[1], &fault);
}

/* TW.LOAD queue chunk: tasks as persist.c writes them. A rewritten file has each key once, so a key of another
 * type is damage there. */
int tw__redis_load_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (!load_tasks(ctx, argv, argc))
        return REDISMODULE_OK;
    RedisModule_ReplicateVerbatim(ctx);
    RedisModule_SignalModifiedKey(ctx, argv[1]);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}
