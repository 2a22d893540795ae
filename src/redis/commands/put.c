/* SPDX-License-Identifier: MIT
 *
 * TW.PUT: a task without a target, for workers.
 */
#include "commands.h"

#include <stdio.h>

#include "filing.h"
#include "queues/queue.h"
#include "server/strings.h"

enum { FACTOR_USUAL = 100 };

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
    return digit && places == 2 && value >= FACTOR_USUAL && value <= TW__REDIS_FACTOR_MAX;
}

/* Reads BACKOFF first-ms factor max-ms [JITTER percent]. */
static bool read_backoff(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    struct tw__redis_retry *retry = &filing->plan.retry;
    RedisModuleString **argv = filing->argv + *at;
    uint64_t jitter = 0;
    if (*at + 3 >= filing->argc) {
        RedisModule_ReplyWithError(ctx, "ERR BACKOFF has too few values: expected first-ms factor max-ms");
        return false;
    }
    if (!tw__redis_argument_number(ctx, argv[1], "BACKOFF first-ms", TW__REDIS_MS, 1, INT64_MAX,
                                   &retry->first_ms))
        return false;
    if (!read_factor(argv[2], &retry->factor)) {
        tw__redis_argument_error(ctx, argv[2], "BACKOFF factor",
                                 "a number from 1 to 100 with at most two decimal places");
        return false;
    }
    if (!tw__redis_argument_number(ctx, argv[3], "BACKOFF max-ms", TW__REDIS_MS, 1, INT64_MAX, &retry->max_ms))
        return false;
    *at += 3;
    if (*at + 1 >= filing->argc || !tw__redis_argument_is(filing->argv[*at + 1], "JITTER"))
        return true;
    if (*at + 2 >= filing->argc) {
        tw__redis_argument_no_number(ctx, "JITTER", TW__REDIS_COUNT, 0, 100);
        return false;
    }
    *at += 2;
    if (!tw__redis_argument_number(ctx, filing->argv[*at], "JITTER", TW__REDIS_COUNT, 0, 100, &jitter))
        return false;
    retry->jitter = (uint32_t)jitter;
    return true;
}

/* Reads an option that TW.PUT alone has. */
static bool read_own(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at,
                     enum tw__redis_filing_option *option)
{
    RedisModuleString *word = filing->argv[*at];
    uint64_t tries;
    if (tw__redis_argument_is(word, "BACKOFF")) {
        *option = TW__REDIS_OPTION_BACKOFF;
        return read_backoff(ctx, filing, at);
    }
    if (!tw__redis_argument_is(word, "TRIES"))
        return true;
    *option = TW__REDIS_OPTION_TRIES;
    if (*at + 1 >= filing->argc) {
        tw__redis_argument_no_number(ctx, "TRIES", TW__REDIS_COUNT, 1, TW__REDIS_ATTEMPTS_MAX);
        return false;
    }
    if (!tw__redis_argument_number(ctx, filing->argv[++*at], "TRIES", TW__REDIS_COUNT, 1,
                                   TW__REDIS_ATTEMPTS_MAX, &tries))
        return false;
    filing->plan.retry.tries = (uint32_t)tries;
    return true;
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
