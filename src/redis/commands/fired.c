/* SPDX-License-Identifier: MIT
 *
 * These commands run on a replica, or while the AOF is loaded. They repeat changes that were made before, and
 * deliver nothing. TW.FIRED leaves an emptied queue in place, because DEL follows in the AOF. TW.FIRED
 * NOTHING alone is called by the module itself, while a batch of deliveries is open (call.c).
 */
#include "commands.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keyspace/alarm.h"
#include "keyspace/keys.h"
#include "queues/change.h"
#include "queues/chunk.h"
#include "queues/format.h"
#include "queues/lease.h"
#include "queues/place.h"
#include "queues/queue.h"
#include "queues/route.h"
#include "server/arguments.h"
#include "server/rights.h"
#include "server/shared.h"
#include "server/strings.h"

enum { REPLY_MAX = 320 };

/* An outcome. */
struct fired {
    RedisModuleString *name;       /* of the queue */
    struct tw__redis_queue *queue; /* NULL: there is none */
    RedisModuleString **args;      /* behind the word of its form */
    int count;
    const char *misfit; /* why it does not fit the queue, or NULL */
};

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
        "the outcome is '%s': expected ONCE id ..., NEXT id due times ..., RENEW chunk ..., PAUSE, RESUME, a "
        "chunk or changes; the version that wrote it can read it",
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

/* A repeating task was delivered, and is due again. Returns false after an error reply. */
static bool next_period(RedisModuleCtx *ctx, struct fired *fired, RedisModuleString **argv, uint64_t now_ms)
{
    long long due, times;
    uint64_t hash;
    if (RedisModule_StringToLongLong(argv[1], &due) != REDISMODULE_OK || due < 0 ||
        (uint64_t)due > TW__TASK_TIME_MAX || RedisModule_StringToLongLong(argv[2], &times) != REDISMODULE_OK ||
        times < -1 || times == 0)
        return refuse_next(ctx, argv);
    struct tw__redis_task *task = delivered_task(fired->queue, argv[0], &hash, &fired->misfit);
    if (task == NULL)
        return true;
    if (tw__redis_task_every(task) == 0) {
        fired->misfit = "a task with another period does not repeat";
        return true;
    }
    tw__redis_task_set_times(task, times < 0 ? TW_FOREVER : (uint64_t)times);
    tw__redis_queue_begin_anew(fired->queue, task, (uint64_t)due, now_ms);
    tw__redis_alarm_at((uint64_t)due);
    return true;
}

static bool fired_next(RedisModuleCtx *ctx, struct fired *fired)
{
    bool good = true;
    for (int i = 0; i < fired->count && good; i += 3)
        good = next_period(ctx, fired, fired->args + i, tw__redis_now_ms());
    return good;
}

/* Tasks were delivered that do not repeat. */
static bool fired_once(RedisModuleCtx *ctx, struct fired *fired)
{
    uint64_t hash;
    (void)ctx;
    for (int i = 0; i < fired->count; i++) {
        struct tw__redis_task *task = delivered_task(fired->queue, fired->args[i], &hash, &fired->misfit);
        if (task != NULL)
            tw__redis_queue_remove(fired->queue, task, hash);
    }
    return true;
}

/* Whether this version reads the format of a chunk or of changes. If not, refuses them. */
static bool is_format(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleString *packed)
{
    char shown[TW__REDIS_SHOWN_MAX];
    uint64_t format = tw__redis_format_of(tw__redis_string_bytes(packed));
    return format == TW__REDIS_FORMAT ||
           refuse_log(ctx,
                      "format is %" PRIu64
                      " in the queue '%s': expected %d; the version that wrote it can read it",
                      format, tw__redis_string_shown(name, shown), TW__REDIS_FORMAT);
}

/* Whether bytes were read to their end. Sets *misfit if what they say does not fit the queue. */
static bool was_read(bool good, const struct tw__redis_fault *fault, const char **misfit)
{
    *misfit = good ? NULL : fault->misfit;
    return good || *misfit != NULL;
}

/* Tasks were leased, failed, died, were done, cancelled, moved. */
static bool fired_changes(RedisModuleCtx *ctx, struct fired *fired)
{
    struct tw__redis_fault fault;
    struct tw__redis_bytes changes = tw__redis_string_bytes(fired->args[0]);
    bool good = tw__redis_change_read(fired->queue, changes, tw__redis_clock_now(ctx), &fault);
    tw__redis_alarm_next();
    return was_read(good, &fault, &fired->misfit) || refuse_damaged(ctx, fired->name, &fault);
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

static bool read_task(RedisModuleCtx *ctx, struct fired *fired, bool renews)
{
    struct tw__redis_fault fault;
    struct tw__redis_bytes chunk = tw__redis_string_bytes(fired->args[0]);
    struct tw__redis_logged logged = {
        .renews = renews, .count = (uint32_t)fired->count - 1, .string = value_at, .arg = fired->args + 1};
    bool good = load_chunk(ctx, fired->name, fired->queue, chunk, &logged, &fault);
    return was_read(good, &fault, &fired->misfit) || refuse_damaged(ctx, fired->name, &fault);
}

/* A task was put or sent. */
static bool fired_put(RedisModuleCtx *ctx, struct fired *fired)
{
    return read_task(ctx, fired, false);
}

/* A task has got another payload and other options. */
static bool fired_renew(RedisModuleCtx *ctx, struct fired *fired)
{
    return read_task(ctx, fired, true);
}

/* A pause begins or ends. */
static bool turn_pause(RedisModuleCtx *ctx, struct fired *fired, bool on)
{
    bool was = fired->queue != NULL && fired->queue->paused;
    if (on == was)
        fired->misfit = on ? "it is paused" : "it is not paused";
    else
        tw__redis_pause_set(ctx, fired->name, fired->queue, on);
    return true;
}

static bool fired_pause(RedisModuleCtx *ctx, struct fired *fired)
{
    return turn_pause(ctx, fired, true);
}

static bool fired_resume(RedisModuleCtx *ctx, struct fired *fired)
{
    return turn_pause(ctx, fired, false);
}

/* ---- the forms ------------------------------------------------------------------------------------------- */

/* The forms of an outcome. A golden file has each of them (tests/redis/server/golden). The two that most
 * commands write have no word, as each argument costs the server as much as a tenth of a TW.CANCEL. Their first
 * argument begins with the number of a format, which is no capital letter, and the next number tells both
 * apart. */
static const struct form {
    const char *name;
    /* Makes the changes. Returns false after an error reply. */
    bool (*make)(RedisModuleCtx *ctx, struct fired *fired);
    int least, most;  /* arguments */
    int multiple;     /* their number is a multiple of it */
    bool has_word;    /* the name stands before the arguments */
    bool is_packed;   /* the first one begins with the number of its format */
    bool needs_queue; /* without one it does not fit */
    bool brings_task; /* the first one is the chunk of a new task */
} forms[] = {
    {"ONCE", fired_once, 1, INT_MAX, 1, true, false, true, false},   /* id [id ...] */
    {"NEXT", fired_next, 3, INT_MAX, 3, true, false, true, false},   /* id due times [id due times ...] */
    {"CHANGES", fired_changes, 1, 1, 1, false, true, true, false},   /* bytes (queues/change.c) */
    {"PUT", fired_put, 1, INT_MAX, 1, false, true, false, true},     /* chunk [value ...] */
    {"RENEW", fired_renew, 1, INT_MAX, 1, true, true, false, false}, /* chunk [value ...] */
    {"PAUSE", fired_pause, 0, 0, 1, true, false, false, false},      /* it begins */
    {"RESUME", fired_resume, 0, 0, 1, true, false, false, false},    /* it ends */
};

static bool is_word(RedisModuleString *argument)
{
    struct tw__redis_bytes bytes = tw__redis_string_bytes(argument);
    return bytes.size > 0 && bytes.at[0] >= 'A' && bytes.at[0] <= 'Z';
}

/* Whether an outcome with this first argument, which is a word or not, has a form. */
static bool has_form(RedisModuleString *first, bool word, const struct form *form)
{
    if (word || form->has_word)
        return word && form->has_word && tw__redis_argument_is(first, form->name);
    return tw__redis_chunk_is(tw__redis_string_bytes(first)) == form->brings_task;
}

/* Returns the form that the arguments have, or NULL. Goes behind its word. */
static const struct form *take_form(struct fired *fired)
{
    RedisModuleString *first = fired->args[0];
    bool word = is_word(first);
    fired->args += word;
    fired->count -= word;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct form *form = &forms[i];
        if (has_form(first, word, form) && fired->count >= form->least && fired->count <= form->most &&
            fired->count % form->multiple == 0)
            return form;
    }
    return NULL;
}

/* Makes the changes, replicates them, and replies. */
static void fire_changes(RedisModuleCtx *ctx, const struct form *form, struct fired *fired)
{
    if (form->needs_queue && fired->queue == NULL)
        fired->misfit = "there is no such queue";
    else if (!form->make(ctx, fired))
        return;
    RedisModule_ReplicateVerbatim(ctx);
    if (fired->misfit != NULL)
        reply_misfit(ctx, fired->name, fired->misfit);
    else
        RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* Returns the form of an outcome, whose queue it has opened, or NULL after an error reply. */
static const struct form *open_fired(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                                     struct fired *fired)
{
    const struct form *form = NULL;
    if (!is_internal(ctx, "TW.FIRED"))
        return NULL;
    if (argc < 3) {
        refuse_count(ctx, "TW.FIRED", argc, "at least 2, a queue and an outcome");
        return NULL;
    }
    *fired = (struct fired){.name = argv[1], .args = argv + 2, .count = argc - 2};
    if ((form = take_form(fired)) == NULL)
        refuse_form(ctx, argv[2]);
    else if (form->is_packed && !is_format(ctx, argv[1], fired->args[0]))
        form = NULL;
    if (form == NULL || tw__redis_keys_open(ctx, argv[1], &fired->queue))
        return form;
    if (form->brings_task)
        tell_type(ctx, argv[1]);
    log_misfit(ctx, argv[1], "its key has another type");
    return NULL;
}

/* TW.FIRED queue form ..., and TW.FIRED queue NOTHING */
int tw__redis_fired_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct fired fired;
    bool nothing = argc == 3 && tw__redis_argument_is(argv[2], "NOTHING");
    if (nothing && tw__redis_shared.batch != NULL)
        return RedisModule_ReplyWithSimpleString(ctx, "OK"); /* call.c asks whether it may write */
    const struct form *form = open_fired(ctx, argv, argc, &fired);
    if (form == NULL)
        return REDISMODULE_OK;
    fire_changes(ctx, form, &fired);
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
    if (!is_format(ctx, argv[1], argv[2]))
        return false;
    if (!tw__redis_keys_open(ctx, argv[1], &queue)) {
        tell_type(ctx, argv[1]);
        return false;
    }
    struct tw__redis_bytes chunk = tw__redis_string_bytes(argv[2]);
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
