/* SPDX-License-Identifier: MIT
 *
 * The commands. docs/redis.md describes each one, and docs.c lists them.
 */
#ifndef TW_REDIS_COMMANDS_H
#define TW_REDIS_COMMANDS_H

#include "server/shared.h"

/* Tells the server the commands, with their keys and their descriptions. */
int tw__redis_commands_register(RedisModuleCtx *ctx);

#define TW__REDIS_COMMAND(name)                                                                                \
    int tw__redis_##name##_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)

/* Filing and moving. */
TW__REDIS_COMMAND(send);
TW__REDIS_COMMAND(put);
TW__REDIS_COMMAND(cancel);
TW__REDIS_COMMAND(move);
TW__REDIS_COMMAND(promote);
TW__REDIS_COMMAND(pause);
/* Workers. */
TW__REDIS_COMMAND(take);
TW__REDIS_COMMAND(ack);
TW__REDIS_COMMAND(nack);
TW__REDIS_COMMAND(touch);
/* Dead tasks. */
TW__REDIS_COMMAND(dead);
TW__REDIS_COMMAND(replay);
TW__REDIS_COMMAND(purge);
/* Looks. */
TW__REDIS_COMMAND(get);
TW__REDIS_COMMAND(len);
TW__REDIS_COMMAND(next);
TW__REDIS_COMMAND(scan);
TW__REDIS_COMMAND(range);
TW__REDIS_COMMAND(forecast);
TW__REDIS_COMMAND(info);
TW__REDIS_COMMAND(top);
/* Of the append-only file and the primary alone. */
TW__REDIS_COMMAND(fired);
TW__REDIS_COMMAND(load);

#endif
