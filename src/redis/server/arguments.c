/* SPDX-License-Identifier: MIT
 *
 * Reads the arguments of commands, and replies with an error that names a wrong argument.
 */
#include "arguments.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <task/conditions.h>

#include "shared.h"
#include "strings.h"

enum { RANGE_TEXT = 96 };
enum { FAR_MS = 10000 }; /* longer than an event-loop iteration takes, but for scripts that nobody should run */

bool tw__redis_argument_is(RedisModuleString *argument, const char *word)
{
    size_t size;
    const char *text = RedisModule_StringPtrLen(argument, &size);
    /* Most words differ in their first letter. The words here are capital letters and dots. An argument may
     * contain zero bytes, at which a comparison of C strings would end. */
    return size > 0 && (text[0] & 0x5F) == (word[0] & 0x5F) && size == strlen(word) &&
           strncasecmp(text, word, size) == 0;
}

bool tw__redis_refuse(RedisModuleCtx *ctx, const char *format, ...)
{
    struct tw__redis_refusal *refusal = &tw__redis_shared.refusal;
    va_list parts;
    va_start(parts, format);
    vsnprintf(refusal->text, sizeof refusal->text, format, parts);
    va_end(parts);
    refusal->ctx = ctx;
    RedisModule_ReplyWithError(ctx, refusal->text);
    return false;
}

int tw__redis_wrong_arity(RedisModuleCtx *ctx)
{
    struct tw__redis_refusal *refusal = &tw__redis_shared.refusal;
    snprintf(refusal->text, sizeof refusal->text, "ERR wrong number of arguments");
    refusal->ctx = ctx;
    return RedisModule_WrongArity(ctx);
}

bool tw__redis_argument_error(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what,
                              const char *expected)
{
    char text[TW__REDIS_SHOWN_MAX];
    return tw__redis_refuse(ctx, "ERR %s is '%s': expected %s", what, tw__redis_string_shown(argument, text),
                            expected);
}

/* Returns "an integer from 0 to 5", with the unit before it. */
static const char *range_of(enum tw__redis_unit unit, long long min, long long max, char text[RANGE_TEXT])
{
    static const char *const units[] = {[TW__REDIS_COUNT] = "",
                                        [TW__REDIS_MS] = "milliseconds, ",
                                        [TW__REDIS_UNIX_MS] = "Unix time in milliseconds, "};
    snprintf(text, RANGE_TEXT, "%san integer from %lld to %lld", units[unit], min, max);
    return text;
}

bool tw__redis_argument_number(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what,
                               enum tw__redis_unit unit, long long min, long long max, uint64_t *number)
{
    long long value;
    char range[RANGE_TEXT];
    if (RedisModule_StringToLongLong(argument, &value) == REDISMODULE_OK && value >= min && value <= max) {
        *number = (uint64_t)value;
        return true;
    }
    return tw__redis_argument_error(ctx, argument, what, range_of(unit, min, max, range));
}

bool tw__redis_argument_missing(RedisModuleCtx *ctx, const char *what, const char *expected)
{
    return tw__redis_refuse(ctx, "ERR %s is missing: expected %s", what, expected);
}

bool tw__redis_argument_no_value(RedisModuleCtx *ctx, const char *word, const char *expected)
{
    return tw__redis_refuse(ctx, "ERR %s has no value: expected %s", word, expected);
}

bool tw__redis_argument_no_number(RedisModuleCtx *ctx, const char *word, enum tw__redis_unit unit,
                                  long long min, long long max)
{
    char range[RANGE_TEXT];
    return tw__redis_argument_no_value(ctx, word, range_of(unit, min, max, range));
}

bool tw__redis_argument_id(RedisModuleCtx *ctx, RedisModuleString *id, size_t most)
{
    size_t size = tw__redis_string_bytes(id).size;
    return (size > 0 && size <= most) ||
           tw__redis_refuse(ctx, "ERR id has %zu bytes: expected 1 to %zu", size, most);
}

bool tw__redis_argument_ids(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int step)
{
    int at = 0;
    while (at < argc && tw__redis_argument_id(ctx, argv[at], TW__TASK_NAME_MAX))
        at += step;
    return at >= argc;
}

static bool read_number(RedisModuleCtx *ctx, const struct tw__redis_option *option, uint64_t *number)
{
    return tw__redis_argument_number(ctx, option->value, option->word, option->unit, option->min, option->max,
                                     number);
}

bool tw__redis_argument_options(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                                struct tw__redis_option *options, const char *expected)
{
    for (int at = 0; at < argc; at += 2) {
        struct tw__redis_option *option = options;
        while (option->word != NULL && !tw__redis_argument_is(argv[at], option->word))
            option++;
        if (option->word == NULL)
            return tw__redis_argument_error(ctx, argv[at], "the option", expected);
        if (option->value != NULL)
            return tw__redis_argument_error(ctx, argv[at], "the option", "each option at most once");
        if (at + 1 == argc && option->unit == TW__REDIS_TEXT)
            return tw__redis_argument_no_value(ctx, option->word, expected);
        if (at + 1 == argc)
            return tw__redis_argument_no_number(ctx, option->word, option->unit, option->min, option->max);
        option->value = argv[at + 1];
    }
    for (struct tw__redis_option *option = options; option->word != NULL; option++)
        if (option->number != NULL && option->value != NULL && !read_number(ctx, option, option->number))
            return false;
    return true;
}

bool tw__redis_argument_option_ms(RedisModuleCtx *ctx, const struct tw__redis_option *option, uint64_t *ms)
{
    char expected[RANGE_TEXT];
    if (option->value != NULL)
        return read_number(ctx, option, ms);
    snprintf(expected, sizeof expected, "%s ms, an integer from %lld to %lld", option->word, option->min,
             option->max);
    return tw__redis_argument_missing(ctx, option->word, expected);
}

/* ---- times and conditions -------------------------------------------------------------------------------- */

/* Whether a due time is yet to come for certain, and the wheel takes it. Then nobody has to read the clock,
 * which takes a thirtieth of a TW.MOVE. */
static bool is_far(uint64_t due)
{
    return due > tw__redis_shared.iteration_ms + FAR_MS && due > tw_wheel_now(tw__redis_shared.queues->wheel);
}

/* The longest delay from now on. */
static long long most_delay(uint64_t now_ms)
{
    return (long long)(TW__TASK_TIME_MAX - now_ms);
}

/* Replies that there is no whole time among `argc` arguments, 0 or more. */
static bool reply_no_time(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, bool at, bool in)
{
    if (argc == 0)
        return tw__redis_argument_missing(ctx, "IN or AT", "IN ms or AT unix-ms");
    if (at)
        return tw__redis_argument_no_number(ctx, "AT", TW__REDIS_UNIX_MS, 0, TW__TASK_TIME_MAX);
    if (in)
        return tw__redis_argument_no_number(ctx, "IN", TW__REDIS_MS, 0, most_delay(tw__redis_now_ms()));
    return tw__redis_argument_error(ctx, argv[0], "the time", "IN ms or AT unix-ms");
}

bool tw__redis_argument_time(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, uint64_t *now_ms,
                             uint64_t *due)
{
    *now_ms = 0;
    bool at = argc > 0 && tw__redis_argument_is(argv[0], "AT");
    bool in = argc > 0 && !at && tw__redis_argument_is(argv[0], "IN");
    if (argc < 2 || (!at && !in))
        return reply_no_time(ctx, argv, argc, at, in);
    if (at) {
        if (!tw__redis_argument_number(ctx, argv[1], "AT", TW__REDIS_UNIX_MS, 0, TW__TASK_TIME_MAX, due))
            return false;
        if (!is_far(*due))
            *now_ms = tw__redis_now_ms();
        return true;
    }
    *now_ms = tw__redis_now_ms();
    if (!tw__redis_argument_number(ctx, argv[1], "IN", TW__REDIS_MS, 0, most_delay(*now_ms), due))
        return false;
    *due += *now_ms;
    return true;
}

static const struct {
    const char *word;
    unsigned condition;
} conditions_of[] = {{"NX", TW__TASK_NX}, {"XX", TW__TASK_XX}, {"GT", TW__TASK_GT}, {"LT", TW__TASK_LT}};
enum { CONDITIONS = sizeof conditions_of / sizeof *conditions_of };

bool tw__redis_argument_condition(RedisModuleString *argument, unsigned *condition)
{
    for (size_t i = 0; i < CONDITIONS; i++)
        if (tw__redis_argument_is(argument, conditions_of[i].word)) {
            *condition = conditions_of[i].condition;
            return true;
        }
    return false;
}

const char *tw__redis_conditions_word(unsigned condition)
{
    size_t i = 0;
    while (i + 1 < CONDITIONS && conditions_of[i].condition != condition)
        i++;
    return conditions_of[i].word;
}

bool tw__redis_conditions_refuse(RedisModuleCtx *ctx, unsigned first, RedisModuleString *second)
{
    const char *word = tw__redis_conditions_word(first);
    struct tw__redis_bytes other = tw__redis_string_bytes(second);
    if (tw__redis_argument_is(second, word))
        return tw__redis_argument_error(ctx, second, "the option", "each option at most once");
    return tw__redis_refuse(ctx, "ERR the conditions are %s and %.*s: expected one of NX, XX, GT and LT", word,
                            (int)other.size, other.at);
}

bool tw__redis_conditions_met(unsigned conditions, const struct tw__redis_task *old, uint64_t due)
{
    return tw__task_conditions_met(conditions, old != NULL, old == NULL ? 0 : tw__redis_task_first_due(old),
                                   due);
}
