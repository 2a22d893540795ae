/* SPDX-License-Identifier: MIT
 *
 * On a replica, or while the append-only file is loaded, these commands repeat what has happened already: they
 * deliver nothing. TW.FIRED leaves an emptied schedule in place, as DEL follows in the log.
 */
#include "fired.h"

#include <stdio.h>

#include "alarm.h"
#include "arguments.h"
#include "keys.h"
#include "rights.h"
#include "schedules/chunk.h"
#include "schedules/grave.h"
#include "schedules/place.h"
#include "schedules/schedule.h"
#include "strings.h"

enum { ERROR_MAX = 256 };

/* Whether the file or the primary sends the command; if not, sends the error. */
static bool is_internal(RedisModuleCtx *ctx, const char *name)
{
    char error[ERROR_MAX];
    if (tw__caller_is_log(ctx))
        return true;
    snprintf(error, sizeof error, "ERR %s is taken from the append-only file and the replication link only",
             name);
    RedisModule_ReplyWithError(ctx, error);
    return false;
}

/* A repeating task was delivered: it is due again at `due`. */
static bool fired_next(RedisModuleCtx *ctx, struct tw__schedule *schedule, RedisModuleString **argv,
                       uint64_t now_ms)
{
    long long due, times;
    if (RedisModule_StringToLongLong(argv[1], &due) != REDISMODULE_OK || due < 0 ||
        RedisModule_StringToLongLong(argv[2], &times) != REDISMODULE_OK || times < -1) {
        tw__argument_error(ctx, argv[1], "TW.FIRED NEXT", "id, due time, times left");
        return false;
    }
    struct tw__bytes id = tw__string_bytes(argv[0]);
    struct tw__task *task = tw__schedule_find(schedule, tw__schedule_hash(tw__shared.schedules, id), id);
    if (task == NULL || tw__task_every(task) == 0)
        return true;
    tw__task_set_times(task, times < 0 ? TW__FOR_EVER : (uint64_t)times);
    tw__task_set_tries(task, 0);
    tw__place_refile(tw__shared.schedules, task, (uint64_t)due, now_ms);
    tw__alarm_at((uint64_t)due);
    return true;
}

static void fired_once(struct tw__schedule *schedule, RedisModuleString *argument)
{
    struct tw__bytes id = tw__string_bytes(argument);
    uint64_t hash = tw__schedule_hash(tw__shared.schedules, id);
    struct tw__task *task = tw__schedule_find(schedule, hash, id);
    if (task != NULL)
        tw__schedule_remove(schedule, task, hash);
}

/* TW.FIRED schedule ONCE id [id ...] | NEXT id due times [id due times ...] */
int tw__fired_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    struct tw__schedule *schedule;
    if (argc < 4)
        return RedisModule_WrongArity(ctx);
    if (!is_internal(ctx, "TW.FIRED"))
        return REDISMODULE_OK;
    bool next = tw__argument_is(argv[2], "NEXT");
    if ((!next && !tw__argument_is(argv[2], "ONCE")) || (next && argc % 3 != 0))
        return tw__argument_error(ctx, argv[2], "TW.FIRED", "ONCE id ... or NEXT id due times ...");
    if (!tw__keys_open(ctx, argv[1], &key, &schedule))
        return REDISMODULE_OK;
    RedisModule_CloseKey(key);
    bool good = true;
    for (int i = 3; i < argc && schedule != NULL && good; i += next ? 3 : 1) {
        if (next)
            good = fired_next(ctx, schedule, argv + i, tw__now_ms());
        else
            fired_once(schedule, argv[i]);
    }
    if (good)
        RedisModule_ReplicateVerbatim(ctx);
    RedisModule_SignalModifiedKey(ctx, argv[1]); /* if nothing is left, DEL follows */
    return good ? RedisModule_ReplyWithSimpleString(ctx, "OK") : REDISMODULE_OK;
}

/* TW.LOAD schedule chunk: tasks as persist.c writes them. */
int tw__load_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    struct tw__schedule *schedule;
    if (argc != 3)
        return RedisModule_WrongArity(ctx);
    if (!is_internal(ctx, "TW.LOAD") || !tw__keys_open(ctx, argv[1], &key, &schedule))
        return REDISMODULE_OK;
    bool is_new = schedule == NULL;
    if (is_new)
        schedule = tw__schedule_new(tw__shared.schedules);
    bool good = tw__chunk_read(schedule, tw__string_bytes(argv[2]), tw__now_ms());
    if (is_new && tw__table_count(&schedule->tasks) > 0)
        tw__keys_set(ctx, key, argv[1], schedule);
    else if (is_new)
        tw__grave_bury(schedule);
    RedisModule_CloseKey(key);
    if (!good)
        return RedisModule_ReplyWithError(ctx, "ERR TW.LOAD: the chunk is damaged");
    RedisModule_ReplicateVerbatim(ctx);
    RedisModule_SignalModifiedKey(ctx, argv[1]);
    tw__alarm_next();
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}
