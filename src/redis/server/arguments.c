/* SPDX-License-Identifier: MIT
 *
 * Reads the arguments of commands, and replies with an error that names a wrong argument.
 */
#include "arguments.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "shared.h"
#include "strings.h"

enum { ERROR_MAX = 256, RANGE_TEXT = 80 };
#define INTEGER "an integer from %lld to %lld"

bool tw__redis_argument_is(RedisModuleString *argument, const char *word)
{
    size_t size;
    const char *text = RedisModule_StringPtrLen(argument, &size);
    /* Most words differ in their first letter. The words here are capital letters and dots. An argument may
     * contain zero bytes, at which a comparison of C strings would end. */
    return size > 0 && (text[0] & 0x5F) == (word[0] & 0x5F) && size == strlen(word) &&
           strncasecmp(text, word, size) == 0;
}

int tw__redis_argument_error(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what,
                             const char *expected)
{
    char text[TW__REDIS_SHOWN_MAX], error[ERROR_MAX];
    snprintf(error, sizeof error, "ERR %s is '%s': expected %s", what, tw__redis_string_shown(argument, text),
             expected);
    return RedisModule_ReplyWithError(ctx, error);
}

bool tw__redis_argument_number(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what,
                               long long min, long long max, uint64_t *number)
{
    long long value;
    char expected[RANGE_TEXT];
    if (RedisModule_StringToLongLong(argument, &value) == REDISMODULE_OK && value >= min && value <= max) {
        *number = (uint64_t)value;
        return true;
    }
    snprintf(expected, sizeof expected, INTEGER, min, max);
    tw__redis_argument_error(ctx, argument, what, expected);
    return false;
}

bool tw__redis_argument_options(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                                struct tw__redis_option *options, const char *expected)
{
    char error[ERROR_MAX];
    for (int at = 0; at < argc; at += 2) {
        struct tw__redis_option *option = options;
        while (option->word != NULL && !tw__redis_argument_is(argv[at], option->word))
            option++;
        if (option->word == NULL || option->value != NULL) {
            tw__redis_argument_error(ctx, argv[at], "the option",
                                     option->word == NULL ? expected : "each option at most once");
            return false;
        }
        if (at + 1 == argc) {
            char range[RANGE_TEXT];
            snprintf(range, sizeof range, INTEGER, option->min, option->max);
            snprintf(error, sizeof error, "ERR %s has no value: expected %s", option->word,
                     option->max > 0 ? range : expected);
            RedisModule_ReplyWithError(ctx, error);
            return false;
        }
        option->value = argv[at + 1];
    }
    return true;
}

bool tw__redis_argument_option_number(RedisModuleCtx *ctx, const struct tw__redis_option *option,
                                      uint64_t *number)
{
    return option->value == NULL ||
           tw__redis_argument_number(ctx, option->value, option->word, option->min, option->max, number);
}

/* ---- times and conditions --------------------------------------------------------------------------------
 * */

bool tw__redis_argument_time(RedisModuleCtx *ctx, RedisModuleString **argv, uint64_t *now_ms, uint64_t *due,
                             bool *absolute)
{
    *now_ms = 0;
    *absolute = tw__redis_argument_is(argv[0], "AT");
    if (!*absolute && !tw__redis_argument_is(argv[0], "IN")) {
        tw__redis_argument_error(ctx, argv[0], "the time", "IN ms or AT unix-ms");
        return false;
    }
    if (*absolute) {
        if (!tw__redis_argument_number(ctx, argv[1], "AT", 0, INT64_MAX, due))
            return false;
        if (*due <= tw_wheel_now(tw__redis_shared.schedules->wheel))
            *now_ms = tw__redis_now_ms();
        return true;
    }
    *now_ms = tw__redis_now_ms();
    if (!tw__redis_argument_number(ctx, argv[1], "IN", 0, INT64_MAX - (int64_t)*now_ms, due))
        return false;
    *due += *now_ms;
    return true;
}

bool tw__redis_argument_condition(RedisModuleString *argument, enum tw__redis_condition *condition)
{
    static const char *const words[] = {[TW__REDIS_ONLY_NEW] = "NX",
                                        [TW__REDIS_ONLY_OLD] = "XX",
                                        [TW__REDIS_LATER] = "GT",
                                        [TW__REDIS_EARLIER] = "LT"};
    for (int i = TW__REDIS_ONLY_NEW; i <= TW__REDIS_EARLIER; i++)
        if (tw__redis_argument_is(argument, words[i])) {
            *condition = (enum tw__redis_condition)i;
            return true;
        }
    return false;
}

bool tw__redis_condition_allows(enum tw__redis_condition condition, const struct tw__redis_task *old,
                                uint64_t due)
{
    switch (condition) {
    case TW__REDIS_ONLY_NEW:
        return old == NULL;
    case TW__REDIS_ONLY_OLD:
        return old != NULL;
    case TW__REDIS_LATER:
        return old == NULL || due > tw__redis_task_first_due(old);
    case TW__REDIS_EARLIER:
        return old == NULL || due < tw__redis_task_first_due(old);
    default:
        return true;
    }
}
