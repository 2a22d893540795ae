/* SPDX-License-Identifier: MIT
 *
 * Strings of the server: creates them from bytes and numbers, without a context, and reads them. Among them are
 * the tokens of leases.
 */
#ifndef TW_REDIS_STRINGS_H
#define TW_REDIS_STRINGS_H

#include "shared.h"

/* Return new strings, which the caller frees. */
RedisModuleString *tw__redis_string_new(struct tw__redis_bytes bytes);
RedisModuleString *tw__redis_string_of_number(uint64_t number);

/* Returns the name of a route's target. The string is made at the first call, and belongs to the route. */
RedisModuleString *tw__redis_string_of_target(struct tw__redis_route *route);

/* Returns the bytes of a string, which last as long as the string lives. */
struct tw__redis_bytes tw__redis_string_bytes(const RedisModuleString *string);

/* Writes a string to `text` as an error or the log may show it: short, and without bytes that would end the
 * line. `text` has room for TW__REDIS_SHOWN_MAX bytes. Returns `text`. */
enum { TW__REDIS_SHOWN_MAX = 68 };
const char *tw__redis_string_shown(const RedisModuleString *string, char *text);

/* ---- tokens ---------------------------------------------------------------------------------------------- */

/* Returns a new token, which is not 0: 64 random bits, so that a primary that was promoted never gives out an
 * old one again. */
uint64_t tw__redis_token_new(void);

/* A token as clients see it: 16 hexadecimal digits. tw__redis_token_read() returns 0 for any other string,
 * which is no task's token. */
enum { TW__REDIS_TOKEN_TEXT = 16 };
void tw__redis_token_write(uint64_t token, char text[TW__REDIS_TOKEN_TEXT]);
uint64_t tw__redis_token_read(RedisModuleString *text);

#endif
