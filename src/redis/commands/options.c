/* SPDX-License-Identifier: MIT
 *
 * One grammar for both commands:
 *
 *     TW.PUT queue id|* IN ms|AT unix-ms [option ...] PAYLOAD value [value ...]
 *     TW.SEND queue target id|* IN ms|AT unix-ms [option ...] PAYLOAD field value [field value ...]
 *
 * TW.SEND has a target, and the options that say what the target is. All other options are those of both.
 */
#include "filing.h"

#include <inttypes.h>
#include <stdio.h>
#include <task/conditions.h>
#include <task/limits.h>
#include <task/words.h>

#include "server/rights.h"
#include "server/strings.h"

enum { REPLY_MAX = 256 };

/* Options, so that none is given twice. */
enum {
    OF_CONDITION = 1,
    OF_EVERY = 2,
    OF_TIMES = 4,
    OF_MISSED = 8,
    OF_MAXLATE = 16,
    OF_TRIES = 32,
    OF_BACKOFF = 64,
    OF_JITTER = 128,
    OF_KIND = 256,
    OF_MAXLEN = 512,
    OF_KEEPDUE = 1024
};

static bool has_target(const struct tw__redis_filing *filing)
{
    return filing->plan.kind != TW__REDIS_WORKERS;
}

/* ---- values ---------------------------------------------------------------------------------------------- */

/* Reads the number that has to follow the word at *at. Moves *at to it. */
static bool read_value(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at, const char *word,
                       enum tw__redis_unit unit, struct tw__task_range range, uint64_t *value)
{
    long long least = (long long)range.least, most = (long long)range.most;
    if (*at + 1 >= filing->argc)
        return tw__redis_argument_no_number(ctx, word, unit, least, most);
    return tw__redis_argument_number(ctx, filing->argv[++*at], word, unit, least, most, value);
}

static bool read_small(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at, const char *word,
                       enum tw__task_number number, uint32_t *value)
{
    uint64_t found = 0;
    if (!read_value(ctx, filing, at, word, TW__REDIS_COUNT, tw__task_range(number), &found))
        return false;
    *value = (uint32_t)found;
    return true;
}

static bool read_every(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    return read_value(ctx, filing, at, "EVERY", TW__REDIS_MS, tw__task_range(TW__TASK_IN_EVERY),
                      &filing->every);
}

static bool read_times(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    return read_value(ctx, filing, at, "TIMES", TW__REDIS_COUNT, tw__task_range(TW__TASK_IN_TIMES),
                      &filing->times);
}

static bool read_missed(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    static const char words[] = "burst, skip or coalesce";
    if (*at + 1 >= filing->argc)
        return tw__redis_argument_no_value(ctx, "MISSED", words);
    RedisModuleString *word = filing->argv[++*at];
    for (int i = TW_MISSED_COALESCE; i <= TW_MISSED_BURST; i++)
        if (tw__redis_argument_is(word, tw__task_missed_name((enum tw_missed)i))) {
            filing->plan.missed = (uint8_t)i;
            return true;
        }
    return tw__redis_argument_error(ctx, word, "MISSED", words);
}

static bool read_max_late(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    return read_value(ctx, filing, at, "MAXLATE", TW__REDIS_MS, tw__task_range(TW__TASK_IN_MAX_LATE),
                      &filing->plan.max_late_ms);
}

static bool read_tries(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    return read_small(ctx, filing, at, "TRIES",
                      has_target(filing) ? TW__TASK_IN_TARGET_TRIES : TW__TASK_IN_TRIES,
                      &filing->plan.retry.tries);
}

static bool read_jitter(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    return read_small(ctx, filing, at, "JITTER", TW__TASK_IN_JITTER, &filing->plan.retry.jitter);
}

/* Reads a factor from 1 to 100, with at most two decimal places, as hundredths. Example: 1.5 is 150. */
static bool read_factor(RedisModuleString *argument, uint32_t *factor)
{
    struct tw__redis_bytes text = tw__redis_string_bytes(argument);
    uint64_t value = 0, most = tw__task_range(TW__TASK_IN_FACTOR).most;
    uint32_t places = 0;
    bool point = false, digit = false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.at[i];
        if (c == '.' && !point)
            point = true;
        else if (c >= '0' && c <= '9' && places < 2 && value <= most) {
            value = value * 10 + (uint32_t)(c - '0');
            places += point;
            digit = true;
        } else
            return false;
    }
    for (; places < 2 && value <= most; places++)
        value *= 10;
    *factor = (uint32_t)value;
    return digit && places == 2 && tw__task_in_range(TW__TASK_IN_FACTOR, value);
}

/* Reads BACKOFF first-ms factor max-ms. */
static bool read_backoff(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    struct tw__redis_retry *retry = &filing->plan.retry;
    if (*at + 3 >= filing->argc)
        return tw__redis_refuse(ctx, "ERR BACKOFF has %d values: expected first-ms factor max-ms",
                                filing->argc - *at - 1);
    if (!read_value(ctx, filing, at, "BACKOFF first-ms", TW__REDIS_MS, tw__task_range(TW__TASK_IN_BACKOFF),
                    &retry->first_ms))
        return false;
    if (!read_factor(filing->argv[++*at], &retry->factor_percent))
        return tw__redis_argument_error(ctx, filing->argv[*at], "BACKOFF factor",
                                        "a number from 1 to 100 with at most two decimal places");
    return read_value(ctx, filing, at, "BACKOFF max-ms", TW__REDIS_MS, tw__task_range(TW__TASK_IN_BACKOFF_MAX),
                      &retry->max_ms);
}

static bool read_stream(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    (void)ctx;
    (void)at;
    filing->plan.kind = TW__REDIS_STREAM;
    return true;
}

/* Reads LIST [LEFT]. */
static bool read_list(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    (void)ctx;
    bool left = *at + 1 < filing->argc && tw__redis_argument_is(filing->argv[*at + 1], "LEFT");
    filing->plan.kind = left ? TW__REDIS_LIST_LEFT : TW__REDIS_LIST;
    *at += left;
    return true;
}

static bool read_maxlen(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    static const struct tw__task_range range = {.least = 1, .most = INT64_MAX};
    return read_value(ctx, filing, at, "MAXLEN", TW__REDIS_COUNT, range, &filing->plan.maxlen);
}

static bool read_keepdue(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    (void)ctx;
    (void)at;
    filing->keepdue = true;
    return true;
}

/* ---- options --------------------------------------------------------------------------------------------- */

static const struct option {
    const char *word;
    unsigned option;
    bool of_target;
    bool (*read)(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at);
} options[] = {{"EVERY", OF_EVERY, false, read_every},      {"TIMES", OF_TIMES, false, read_times},
               {"MISSED", OF_MISSED, false, read_missed},   {"MAXLATE", OF_MAXLATE, false, read_max_late},
               {"TRIES", OF_TRIES, false, read_tries},      {"BACKOFF", OF_BACKOFF, false, read_backoff},
               {"JITTER", OF_JITTER, false, read_jitter},   {"STREAM", OF_KIND, true, read_stream},
               {"LIST", OF_KIND, true, read_list},          {"MAXLEN", OF_MAXLEN, true, read_maxlen},
               {"KEEPDUE", OF_KEEPDUE, false, read_keepdue}};

static const struct option *option_named(const struct tw__redis_filing *filing, RedisModuleString *word)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if ((!options[i].of_target || has_target(filing)) && tw__redis_argument_is(word, options[i].word))
            return &options[i];
    return NULL;
}

static bool reply_unknown(RedisModuleCtx *ctx, const struct tw__redis_filing *filing, RedisModuleString *word)
{
    char expected[REPLY_MAX];
    snprintf(expected, sizeof expected,
             "NX, XX, GT, LT, KEEPDUE, EVERY, TIMES, MISSED, MAXLATE, TRIES, BACKOFF, JITTER%s or PAYLOAD",
             has_target(filing) ? ", STREAM, LIST [LEFT], MAXLEN" : "");
    return tw__redis_argument_error(ctx, word, "the option", expected);
}

/* Replies that an option was given before. Two conditions and two kinds are named. */
static bool reply_again(RedisModuleCtx *ctx, const struct tw__redis_filing *filing, RedisModuleString *word,
                        unsigned option)
{
    if (option == OF_CONDITION)
        return tw__redis_conditions_refuse(ctx, filing->condition, word);
    return tw__redis_argument_error(ctx, word, "the option",
                                    option == OF_KIND ? "each option at most once, and one of STREAM and LIST"
                                                      : "each option at most once");
}

/* Reads the option at argv[*at] and its values. Returns false after an error reply. */
static bool read_option(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at)
{
    RedisModuleString *word = filing->argv[*at];
    unsigned condition;
    bool is_condition = tw__redis_argument_condition(word, &condition);
    const struct option *option = is_condition ? NULL : option_named(filing, word);
    if (option == NULL && !is_condition)
        return reply_unknown(ctx, filing, word);
    unsigned what = is_condition ? OF_CONDITION : option->option;
    if (filing->seen & what)
        return reply_again(ctx, filing, word, what);
    filing->seen |= what;
    if (option != NULL)
        return option->read(ctx, filing, at);
    filing->condition = condition;
    return true;
}

/* Whether KEEPDUE may stand beside the other condition. */
static bool conditions_fit(RedisModuleCtx *ctx, const struct tw__redis_filing *filing)
{
    return !filing->keepdue || tw__task_conditions_fit(filing->condition | TW__TASK_KEEPDUE) ||
           tw__redis_refuse(ctx,
                            "ERR the conditions are KEEPDUE and %s: expected KEEPDUE alone, or with NX or XX",
                            tw__redis_conditions_word(filing->condition));
}

static bool options_fit(RedisModuleCtx *ctx, const struct tw__redis_filing *filing)
{
    if ((filing->seen & OF_TIMES) && !(filing->seen & OF_EVERY))
        return tw__redis_refuse(ctx, "ERR TIMES is %" PRIu64 ": expected EVERY too", filing->times);
    if ((filing->seen & OF_MISSED) && !(filing->seen & OF_EVERY))
        return tw__redis_refuse(ctx, "ERR MISSED is %s: expected EVERY too",
                                tw__task_missed_name((enum tw_missed)filing->plan.missed));
    if ((filing->seen & OF_MAXLEN) && filing->plan.kind != TW__REDIS_STREAM)
        return tw__redis_refuse(ctx, "ERR target is a LIST: expected a STREAM with MAXLEN");
    return true;
}

/* ---- the payload ----------------------------------------------------------------------------------------- */

/* Whether the module itself adds a field with this name to an entry. */
static bool is_own_field(RedisModuleString *field)
{
    static const char *const names[] = {"tw.id", "tw.due", "tw.attempt", "tw.missed-periods"};
    struct tw__redis_bytes bytes = tw__redis_string_bytes(field);
    if (!tw__redis_bytes_begin(bytes, "tw."))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tw__redis_argument_is(field, names[i]))
            return true;
    return false;
}

static bool payload_suits_target(RedisModuleCtx *ctx, const struct tw__redis_filing *filing)
{
    int count = filing->payload_count;
    if (filing->plan.kind != TW__REDIS_STREAM)
        return count == 1 || tw__redis_refuse(ctx, "ERR PAYLOAD has %d values: expected one for a LIST", count);
    if (count == 0 || count % 2 != 0)
        return tw__redis_refuse(ctx, "ERR PAYLOAD has %d values: expected field value [field value ...]",
                                count);
    for (int i = 0; i < count; i += 2)
        if (is_own_field(filing->payload[i]))
            return tw__redis_argument_error(
                ctx, filing->payload[i], "a PAYLOAD field",
                "another name, because the module itself adds a field with this name");
    return true;
}

static bool payload_suits(RedisModuleCtx *ctx, const struct tw__redis_filing *filing)
{
    bool target = has_target(filing);
    if (filing->payload_count >= (target ? 0 : 1))
        return !target || payload_suits_target(ctx, filing);
    return tw__redis_argument_missing(ctx, "PAYLOAD",
                                      target ? "PAYLOAD field value [field value ...], or one value for a LIST"
                                             : "PAYLOAD value [value ...]");
}

/* Whether the id has 1 to so many bytes, and id, target and payload together few enough. A task that was
 * acknowledged before is not refused. */
static bool is_small(RedisModuleCtx *ctx, const struct tw__redis_filing *filing)
{
    uint64_t id = tw__redis_string_bytes(filing->id).size, bytes = id + filing->plan.target.size;
    for (int i = 0; i < filing->payload_count; i++)
        bytes += tw__redis_string_bytes(filing->payload[i]).size;
    if ((id > 0 && id <= TW__TASK_ID_MAX && bytes <= TW__TASK_PAYLOAD_MAX) || tw__redis_caller_is_log(ctx) ||
        (RedisModule_GetContextFlags(ctx) & TW__REDIS_LOADING))
        return true;
    return tw__redis_argument_id(ctx, filing->id, TW__TASK_ID_MAX) &&
           tw__redis_refuse(ctx, "ERR id%s and payload have %" PRIu64 " bytes: expected at most %d",
                            has_target(filing) ? ", target" : "", bytes, TW__TASK_PAYLOAD_MAX);
}

/* ---- a call ---------------------------------------------------------------------------------------------- */

/* Reads the names, which stand before the time. */
static bool read_names(RedisModuleCtx *ctx, struct tw__redis_filing *filing)
{
    RedisModuleString **argv = filing->argv;
    struct tw__redis_bytes id = tw__redis_string_bytes(filing->id);
    filing->new_id = id.size == 1 && *id.at == '*';
    if (!has_target(filing))
        return true;
    filing->plan.target = tw__redis_string_bytes(argv[2]);
    return RedisModule_StringCompare(argv[1], argv[2]) != 0 ||
           tw__redis_refuse(ctx, "ERR target is the queue: expected another key");
}

bool tw__redis_filing_read(RedisModuleCtx *ctx, struct tw__redis_filing *filing, bool send,
                           RedisModuleString **argv, int argc)
{
    int id_at = send ? 3 : 2, at = id_at + 3;
    *filing = (struct tw__redis_filing){
        .argv = argv,
        .argc = argc,
        .queue = argv[1],
        .id = argv[id_at],
        .times = TW_FOREVER,
        .plan = {.kind = send ? TW__REDIS_STREAM : TW__REDIS_WORKERS,
                 .max_late_ms = TW_FOREVER,
                 .retry = {.jitter = TW__REDIS_JITTER_OPEN}},
    };
    if (!read_names(ctx, filing) ||
        !tw__redis_argument_time(ctx, argv + id_at + 1, argc - id_at - 1, &filing->now_ms, &filing->due))
        return false;
    for (; at < argc && !tw__redis_argument_is(argv[at], "PAYLOAD"); at++)
        if (!read_option(ctx, filing, &at))
            return false;
    filing->payload = argv + at + 1;
    filing->payload_count = argc - at - 1;
    return conditions_fit(ctx, filing) && options_fit(ctx, filing) && payload_suits(ctx, filing) &&
           is_small(ctx, filing);
}
