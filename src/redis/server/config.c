/* SPDX-License-Identifier: MIT
 *
 * The module's configuration: CONFIG GET and SET tickwheel.*, and the pairs of a name and a value in
 * loadmodule.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <task/limits.h>

#define NO_NUMBER TW__TASK_NUMBER_COUNT

struct tw__redis_config tw__redis_config;

static const struct setting {
    const char *name;
    long long *value;
    enum tw__task_number number; /* of the contract; NO_NUMBER: the range is the module's own */
    struct tw__task_range own;   /* least, most, usual */
} settings[] = {
    {"tasks-per-tick", &tw__redis_config.tasks_per_tick, NO_NUMBER, {1, 100000, 1000}},
    {"us-per-tick", &tw__redis_config.us_per_tick, NO_NUMBER, {100, 1000000, 1200}},
    {"target-tries", &tw__redis_config.target_tries, TW__TASK_IN_TARGET_TRIES, {0}},
    {"default-maxlen", &tw__redis_config.default_maxlen, NO_NUMBER, {0, INT64_MAX, 0}},
    {"target-backoff-ms", &tw__redis_config.target_backoff_ms, TW__TASK_IN_TARGET_BACKOFF, {0}},
    {"tries", &tw__redis_config.tries, TW__TASK_IN_TRIES, {0}},
    {"backoff-ms", &tw__redis_config.backoff_ms, TW__TASK_IN_BACKOFF, {0}},
    {"backoff-factor-percent", &tw__redis_config.backoff_factor_percent, TW__TASK_IN_FACTOR, {0}},
    {"backoff-max-ms", &tw__redis_config.backoff_max_ms, TW__TASK_IN_BACKOFF_MAX, {0}},
    {"jitter", &tw__redis_config.jitter, TW__TASK_IN_JITTER, {0}},
    {"dead-max", &tw__redis_config.dead_max, NO_NUMBER, {0, INT64_MAX, 0}},
    {"dead-ms", &tw__redis_config.dead_ms, NO_NUMBER, {0, INT64_MAX, 0}},
};
enum { SETTINGS = sizeof settings / sizeof *settings, NAMES_MAX = 512 };

static struct tw__task_range range_of(const struct setting *setting)
{
    return setting->number == NO_NUMBER ? setting->own : tw__task_range(setting->number);
}

static long long get_number(const char *name, void *arg)
{
    (void)name;
    return *((const struct setting *)arg)->value;
}

static int set_number(const char *name, long long value, void *arg, RedisModuleString **error)
{
    (void)name;
    (void)error; /* the server has checked the range */
    *((const struct setting *)arg)->value = value;
    return REDISMODULE_OK;
}

static int get_deliver(const char *name, void *arg)
{
    (void)name;
    (void)arg;
    return tw__redis_config.deliver;
}

static int set_deliver(const char *name, int value, void *arg, RedisModuleString **error)
{
    (void)name;
    (void)arg;
    (void)error;
    tw__redis_config.deliver = value;
    return REDISMODULE_OK;
}

struct tw__task_retry tw__redis_config_retry(const struct tw__redis_retry *own)
{
    bool open = own->first_ms == 0;
    return (struct tw__task_retry){
        .tries = own->tries == 0 ? (uint32_t)tw__redis_config.tries : own->tries,
        .factor_percent = open ? (uint32_t)tw__redis_config.backoff_factor_percent : own->factor_percent,
        .jitter = own->jitter == TW__REDIS_JITTER_OPEN ? (uint32_t)tw__redis_config.jitter : own->jitter,
        .first_ms = open ? (uint64_t)tw__redis_config.backoff_ms : own->first_ms,
        .max_ms = open ? (uint64_t)tw__redis_config.backoff_max_ms : own->max_ms};
}

struct tw__task_retry tw__redis_config_target_retry(const struct tw__redis_retry *own)
{
    bool open = own->first_ms == 0;
    return (struct tw__task_retry){
        .tries = own->tries == 0 ? (uint32_t)tw__redis_config.target_tries : own->tries,
        .factor_percent = open ? (uint32_t)tw__task_range(TW__TASK_IN_FACTOR).usual : own->factor_percent,
        .jitter = own->jitter == TW__REDIS_JITTER_OPEN
                      ? (uint32_t)tw__task_range(TW__TASK_IN_TARGET_JITTER).usual
                      : own->jitter,
        .first_ms = open ? (uint64_t)tw__redis_config.target_backoff_ms : own->first_ms,
        .max_ms = open ? tw__task_range(TW__TASK_IN_TARGET_BACKOFF_MAX).usual : own->max_ms};
}

static int register_setting(RedisModuleCtx *ctx, const struct setting *setting)
{
    struct tw__task_range range = range_of(setting);
    return RedisModule_RegisterNumericConfig(
        ctx, setting->name, (long long)range.usual, REDISMODULE_CONFIG_DEFAULT, (long long)range.least,
        (long long)range.most, get_number, set_number, NULL, (struct setting *)(uintptr_t)setting);
}

/* Reads yes or no. Returns false after logging an error. */
static bool read_deliver(RedisModuleCtx *ctx, const char *text)
{
    bool yes = strcasecmp(text, "yes") == 0;
    if (yes || strcasecmp(text, "no") == 0) {
        tw__redis_config.deliver = yes;
        return true;
    }
    RedisModule_Log(ctx, "warning", "tickwheel: deliver is '%s': expected yes or no", text);
    return false;
}

/* Reads the value of a setting that is a number. Returns false after logging an error. */
static bool read_number(RedisModuleCtx *ctx, const struct setting *setting, RedisModuleString *value)
{
    struct tw__task_range range = range_of(setting);
    long long number, least = (long long)range.least, most = (long long)range.most;
    if (value != NULL && RedisModule_StringToLongLong(value, &number) == REDISMODULE_OK && number >= least &&
        number <= most) {
        *setting->value = number;
        return true;
    }
    RedisModule_Log(ctx, "warning", "tickwheel: %s is '%s': expected an integer from %lld to %lld",
                    setting->name, value == NULL ? "" : RedisModule_StringPtrLen(value, NULL), least, most);
    return false;
}

/* Writes the names of all settings, as "a, b or c". */
static void list_names(char *text, size_t room)
{
    size_t at = (size_t)snprintf(text, room, "deliver");
    for (size_t i = 0; i < SETTINGS; i++)
        at +=
            (size_t)snprintf(text + at, room - at, "%s%s", i + 1 < SETTINGS ? ", " : " or ", settings[i].name);
}

/* Reads a pair of module arguments. Returns false after logging an error. */
static bool read_argument(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleString *value)
{
    char names[NAMES_MAX];
    const char *text = RedisModule_StringPtrLen(name, NULL),
               *own = strncasecmp(text, "tickwheel.", 10) == 0 ? text + 10 : text;
    if (strcasecmp(own, "deliver") == 0)
        return read_deliver(ctx, value == NULL ? "" : RedisModule_StringPtrLen(value, NULL));
    for (size_t i = 0; i < SETTINGS; i++)
        if (strcasecmp(own, settings[i].name) == 0)
            return read_number(ctx, &settings[i], value);
    list_names(names, sizeof names);
    RedisModule_Log(ctx, "warning", "tickwheel: no setting has the name '%s': expected %s", text, names);
    return false;
}

int tw__redis_config_register(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (register_setting(ctx, &settings[i]) != REDISMODULE_OK)
            return REDISMODULE_ERR;
    if (RedisModule_RegisterBoolConfig(ctx, "deliver", 1, REDISMODULE_CONFIG_DEFAULT, get_deliver, set_deliver,
                                       NULL, NULL) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    if (RedisModule_LoadConfigs(ctx) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    for (int i = 0; i < argc; i += 2)
        if (!read_argument(ctx, argv[i], i + 1 < argc ? argv[i + 1] : NULL))
            return REDISMODULE_ERR;
    return REDISMODULE_OK;
}

/* ---- settings of the server ------------------------------------------------------------------------------ */

void tw__redis_config_of_server(RedisModuleCtx *ctx, const char *name, const char *usual, char *value,
                                size_t room)
{
    size_t size = strlen(usual);
    const char *text = usual;
    RedisModuleCallReply *reply = RedisModule_Call(ctx, "CONFIG", "cc", "GET", name);
    if (reply != NULL && RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_ARRAY &&
        RedisModule_CallReplyLength(reply) == 2)
        text = RedisModule_CallReplyStringPtr(RedisModule_CallReplyArrayElement(reply, 1), &size);
    snprintf(value, room, "%.*s", (int)size, text);
    if (reply != NULL)
        RedisModule_FreeCallReply(reply);
}
