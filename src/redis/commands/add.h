/* SPDX-License-Identifier: MIT
 *
 * TW.ADD.
 */
#ifndef TW_REDIS_ADD_H
#define TW_REDIS_ADD_H

#include "server/shared.h"

int tw__redis_add_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

#endif
