/* SPDX-License-Identifier: MIT
 *
 * Tokens of leases: 64 random bits, so that a primary that was promoted never gives out an old one again.
 */
#ifndef TW_REDIS_TOKEN_H
#define TW_REDIS_TOKEN_H

#include <redismodule.h>
#include <stdint.h>

/* Returns a new token, which is not 0. */
uint64_t tw__redis_token_new(void);

/* A token as clients see it: 16 hexadecimal digits. tw__redis_token_read() returns 0 for any other string,
 * which is no task's token. */
enum { TW__REDIS_TOKEN_TEXT = 16 };
void tw__redis_token_write(uint64_t token, char text[TW__REDIS_TOKEN_TEXT]);
uint64_t tw__redis_token_read(RedisModuleString *text);

#endif
