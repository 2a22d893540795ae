/* SPDX-License-Identifier: MIT
 *
 * A file of another version may have a million such commands. So the first ones have a line each, and the rest
 * is told as a sum: each time that their number has doubled, and when a load ends.
 */
#include "refused.h"

#include <inttypes.h>

#include "arguments.h"
#include "rights.h"
#include "strings.h"

enum { REFUSED_LINES = 16 };

static void write_line(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    char command[TW__REDIS_SHOWN_MAX], queue[TW__REDIS_SHOWN_MAX];
    int at = tw__redis_argument_is(argv[0], "TW.TAKE") ? 2 : 1;
    RedisModule_Log(ctx, "warning", "tickwheel: a logged %s of the queue '%s' was refused: %s",
                    tw__redis_string_shown(argv[0], command),
                    at < argc ? tw__redis_string_shown(argv[at], queue) : "", tw__redis_shared.refusal.text);
}

void tw__redis_refused_sum(RedisModuleCtx *ctx)
{
    uint64_t count = tw__redis_shared.counts.refused_commands;
    if (count == tw__redis_shared.refusal.told)
        return;
    tw__redis_shared.refusal.told = count;
    RedisModule_Log(ctx, "warning", "tickwheel: %" PRIu64 " logged commands were refused since the start",
                    count);
}

void tw__redis_refused(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (!tw__redis_caller_is_log(ctx))
        return;
    uint64_t count = ++tw__redis_shared.counts.refused_commands;
    if (count <= REFUSED_LINES)
        write_line(ctx, argv, argc);
    else if ((count & (count - 1)) == 0)
        tw__redis_refused_sum(ctx);
}
