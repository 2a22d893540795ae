/* SPDX-License-Identifier: MIT
 *
 * The module's configuration: CONFIG GET and SET tickwheel.*, and the pairs of a name and a value in
 * loadmodule.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "schedules/task.h"

struct tw__redis_config tw__redis_config;

static const struct setting {
    const char *name;
    long long *value;
    long long usual, min, max;
} settings[] = {
    {"tasks-per-tick", &tw__redis_config.tasks_per_tick, 1000, 1, 100000},
    {"us-per-tick", &tw__redis_config.us_per_tick, 1200, 100, 1000000},
    {"dead-letter-tries", &tw__redis_config.dead_letter_tries, 3, 1, TW__REDIS_TRIES_MAX},
    {"default-maxlen", &tw__redis_config.default_maxlen, 0, 0, INT64_MAX},
    {"retry-ms", &tw__redis_config.retry_ms, 100, 1, 5000},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

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

static int register_setting(RedisModuleCtx *ctx, const struct setting *setting)
{
    return RedisModule_RegisterNumericConfig(ctx, setting->name, setting->usual, REDISMODULE_CONFIG_DEFAULT,
                                             setting->min, setting->max, get_number, set_number, NULL,
                                             (struct setting *)(uintptr_t)setting);
}

/* Reads a pair of module arguments. Returns false after logging an error. */
static bool read_argument(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleString *value)
{
    size_t i = 0, size;
    const char *text = RedisModule_StringPtrLen(name, &size),
               *own = strncasecmp(text, "tickwheel.", 10) == 0 ? text + 10 : text;
    while (i < SETTINGS && strcasecmp(own, settings[i].name) != 0)
        i++;
    if (i == SETTINGS) {
        RedisModule_Log(
            ctx, "warning",
            "tickwheel: no setting has the name '%s': expected tasks-per-tick, us-per-tick, dead-letter-tries, "
            "default-maxlen or retry-ms",
            RedisModule_StringPtrLen(name, NULL));
        return false;
    }
    const struct setting *setting = &settings[i];
    long long number;
    if (value != NULL && RedisModule_StringToLongLong(value, &number) == REDISMODULE_OK &&
        number >= setting->min && number <= setting->max) {
        *setting->value = number;
        return true;
    }
    RedisModule_Log(ctx, "warning", "tickwheel: %s is '%s': expected an integer from %lld to %lld",
                    setting->name, value == NULL ? "" : RedisModule_StringPtrLen(value, NULL), setting->min,
                    setting->max);
    return false;
}

int tw__redis_config_register(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (register_setting(ctx, &settings[i]) != REDISMODULE_OK)
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
