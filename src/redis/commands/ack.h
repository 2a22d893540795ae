/* SPDX-License-Identifier: MIT
 *
 * How a worker ends its attempt, or holds on to it: TW.ACK, TW.NACK, TW.TOUCH.
 */
#ifndef TW_REDIS_ACK_H
#define TW_REDIS_ACK_H

#include "server/shared.h"

int tw__redis_ack_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int tw__redis_nack_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int tw__redis_touch_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

#endif
