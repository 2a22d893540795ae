/* SPDX-License-Identifier: MIT
 *
 * TW.PUT: a task without a target, for workers.
 */
#include "commands.h"

#include <stdio.h>
#include <task/limits.h>

#include "filing.h"
#include "queues/queue.h"
#include "server/strings.h"

/* Reads a number of the contract. Returns false after an error reply. */
static bool read_limited(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what,
                         enum tw__redis_unit unit, enum tw__task_number number, uint64_t *value)
{
    struct tw__task_range range = tw__task_range(number);
    return tw__redis_argument_number(ctx, argument, what, unit, (long long)range.least, (long long)range.most,
                                     value);
}

/* The same of a word that a number has to follow. */
static bool read_value(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at, const char *word,
                       enum tw__task_number number, uint32_t *value)
{
    struct tw__task_range range = tw__task_range(number);
    uint64_t found;
    if (*at + 1 >= filing->argc) {
        tw__redis_argument_no_number(ctx, word, TW__REDIS_COUNT, (long long)range.least, (long long)range.most);
        return false;
    }
    if (!read_limited(ctx, filing->argv[++*at], word, TW__REDIS_COUNT, number, &found))
        return false;
    *value = (uint32_t)found;
    return true;
}

/* Reads a factor from 1 to 100, with at most two decimal places, as hundredths. Example: 1.5 is 150. */
static bool read_factor(RedisModuleString *argument, uint32_t *factor)
{
    struct tw__redis_bytes text = tw__redis_string_bytes(argument);
    uint32_t value = 0, places = 0;
    bool point = false, digit = false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.at[i];
        if (c == '.' && !point)
            point = true;
        else if (c >= '0' && c <= '9' && places < 2 && value <= TW__REDIS_FACTOR_MAX) {
            value = value * 10 + (uint32_t)(c - '0');
            places += point;
            digit = true;
        } else
            return false;
    }
    for (; places < 2 && value <= TW__REDIS_FACTOR_MAX; places++)
        value *= 10;
    *factor = value;
    return digit && places == 2 && tw__task_in_range(TW__TASK_IN_FACTOR, value);
}

/* Reads BACKOFF first-ms factor max-ms [JITTER percent]. */
static bool read_backoff(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    struct tw__redis_retry *retry = &filing->plan.retry;
    RedisModuleString **argv = filing->argv + *at;
    if (*at + 3 >= filing->argc) {
        RedisModule_ReplyWithError(ctx, "ERR BACKOFF has too few values: expected first-ms factor max-ms");
        return false;
    }
    if (!read_limited(ctx, argv[1], "BACKOFF first-ms", TW__REDIS_MS, TW__TASK_IN_BACKOFF, &retry->first_ms))
        return false;
    if (!read_factor(argv[2], &retry->factor)) {
        tw__redis_argument_error(ctx, argv[2], "BACKOFF factor",
                                 "a number from 1 to 100 with at most two decimal places");
        return false;
    }
    if (!read_limited(ctx, argv[3], "BACKOFF max-ms", TW__REDIS_MS, TW__TASK_IN_BACKOFF_MAX, &retry->max_ms))
        return false;
    *at += 3;
    retry->jitter = TW__REDIS_JITTER_OPEN;
    if (*at + 1 >= filing->argc || !tw__redis_argument_is(filing->argv[*at + 1], "JITTER"))
        return true;
    ++*at;
    return read_value(ctx, filing, at, "JITTER", TW__TASK_IN_JITTER, &retry->jitter);
}

/* Reads an option that TW.PUT alone has. */
static bool read_own(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at,
                     enum tw__redis_filing_option *option)
{
    RedisModuleString *word = filing->argv[*at];
    if (tw__redis_argument_is(word, "BACKOFF")) {
        *option = TW__REDIS_OPTION_BACKOFF;
        return read_backoff(ctx, filing, at);
    }
    if (!tw__redis_argument_is(word, "TRIES"))
        return true;
    *option = TW__REDIS_OPTION_TRIES;
    return read_value(ctx, filing, at, "TRIES", TW__TASK_IN_TRIES, &filing->plan.retry.tries);
}

static bool read_put(RedisModuleCtx *ctx, struct tw__redis_filing *filing, RedisModuleString **argv, int argc)
{
    if (!tw__redis_filing_init(ctx, filing, "TW.PUT", 2, argv, argc))
        return false;
    filing->plan.kind = TW__REDIS_WORKERS;
    if (!tw__redis_filing_options(ctx, filing, read_own,
                                  "NX, XX, GT, LT, EVERY, TIMES, LATE, TRIES, BACKOFF first-ms factor max-ms "
                                  "[JITTER percent] or PAYLOAD"))
        return false;
    if (filing->payload_count <= 0) {
        tw__redis_argument_missing(ctx, "PAYLOAD", "PAYLOAD value [value ...]");
        return false;
    }
    return tw__redis_filing_fits(ctx, filing);
}

/* TW.PUT queue id|* IN ms|AT unix-ms [option ...] PAYLOAD value [value ...] */
int tw__redis_put_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_filing filing;
    if (argc < 3)
        return RedisModule_WrongArity(ctx);
    uint64_t hash = tw__redis_queue_foresee(tw__redis_shared.queues, tw__redis_string_bytes(argv[2]));
    if (!read_put(ctx, &filing, argv, argc))
        return REDISMODULE_OK;
    return tw__redis_filing_file(ctx, &filing, hash, "tw.put");
}
