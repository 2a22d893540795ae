/* SPDX-License-Identifier: MIT
 *
 * TW.TAKE.
 */
#ifndef TW_REDIS_TAKE_H
#define TW_REDIS_TAKE_H

#include "server/shared.h"

int tw__redis_take_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

#endif
