/* SPDX-License-Identifier: MIT
 *
 * TW.PUT.
 */
#ifndef TW_REDIS_PUT_H
#define TW_REDIS_PUT_H

#include "server/shared.h"

int tw__redis_put_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

#endif
