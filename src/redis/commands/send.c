/* SPDX-License-Identifier: MIT
 *
 * TW.SEND: a task with a target.
 */
#include "commands.h"

#include <string.h>

#include "filing.h"
#include "queues/queue.h"
#include "server/strings.h"

/* Reads LIST [LEFT] or STREAM. */
static void read_kind(struct tw__redis_filing *filing, int *at)
{
    bool list = tw__redis_argument_is(filing->argv[*at], "LIST");
    filing->plan.kind = list ? TW__REDIS_LIST : TW__REDIS_STREAM;
    if (list && *at + 1 < filing->argc && tw__redis_argument_is(filing->argv[*at + 1], "LEFT")) {
        filing->plan.kind = TW__REDIS_LIST_LEFT;
        ++*at;
    }
}

/* Reads an option that TW.SEND alone has. */
static bool read_own(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at,
                     enum tw__redis_filing_option *option)
{
    RedisModuleString *word = filing->argv[*at];
    if (tw__redis_argument_is(word, "LIST") || tw__redis_argument_is(word, "STREAM")) {
        *option = TW__REDIS_OPTION_KIND;
        read_kind(filing, at);
    } else if (tw__redis_argument_is(word, "MAXLEN")) {
        *option = TW__REDIS_OPTION_MAXLEN;
        return tw__redis_filing_value(ctx, filing, at, "MAXLEN", TW__REDIS_COUNT, &filing->plan.maxlen);
    }
    return true;
}

static bool read_payload(RedisModuleCtx *ctx, const struct tw__redis_filing *filing)
{
    RedisModuleString **argv = filing->payload;
    int argc = filing->payload_count;
    if (argc < 0) {
        tw__redis_argument_missing(ctx, "PAYLOAD",
                                   "PAYLOAD field value [field value ...], or one value for a LIST");
        return false;
    }
    if (filing->plan.kind != TW__REDIS_STREAM) {
        if (argc == 1)
            return true;
        RedisModule_ReplyWithError(ctx, "ERR PAYLOAD of a LIST has to be one value");
        return false;
    }
    if (argc == 0 || argc % 2 != 0) {
        RedisModule_ReplyWithError(ctx, "ERR PAYLOAD of a STREAM has to be field value [field value ...]");
        return false;
    }
    for (int i = 0; i < argc; i += 2) {
        struct tw__redis_bytes field = tw__redis_string_bytes(argv[i]);
        if (field.size < 3 || memcmp(field.at, "tw.", 3) != 0)
            continue;
        if (tw__redis_argument_is(argv[i], "tw.id") || tw__redis_argument_is(argv[i], "tw.due") ||
            tw__redis_argument_is(argv[i], "tw.attempt")) {
            tw__redis_argument_error(ctx, argv[i], "a PAYLOAD field",
                                     "another name, because the module itself adds a field with this name");
            return false;
        }
    }
    return true;
}

static bool read_send(RedisModuleCtx *ctx, struct tw__redis_filing *filing, RedisModuleString **argv, int argc)
{
    if (RedisModule_StringCompare(argv[1], argv[2]) == 0) {
        tw__redis_argument_error(ctx, argv[2], "the target", "a key other than the queue");
        return false;
    }
    if (!tw__redis_filing_init(ctx, filing, "TW.SEND", 3, argv, argc))
        return false;
    filing->plan.target = tw__redis_string_bytes(argv[2]);
    if (!tw__redis_filing_options(ctx, filing, read_own,
                                  "NX, XX, GT, LT, EVERY, TIMES, STREAM, LIST [LEFT], MAXLEN, LATE or PAYLOAD"))
        return false;
    if (filing->plan.maxlen != 0 && filing->plan.kind != TW__REDIS_STREAM) {
        RedisModule_ReplyWithError(ctx, "ERR MAXLEN is an option for a STREAM, not for a LIST");
        return false;
    }
    return read_payload(ctx, filing) && tw__redis_filing_fits(ctx, filing);
}

int tw__redis_send_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_filing filing;
    if (argc < 4)
        return RedisModule_WrongArity(ctx);
    uint64_t hash = tw__redis_queue_foresee(tw__redis_shared.queues, tw__redis_string_bytes(argv[3]));
    if (!read_send(ctx, &filing, argv, argc))
        return REDISMODULE_OK;
    return tw__redis_filing_file(ctx, &filing, hash, "tw.send");
}
