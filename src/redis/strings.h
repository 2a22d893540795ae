/* SPDX-License-Identifier: MIT
 *
 * Strings of the server: made of bytes and numbers, without a context, and read.
 */
#ifndef TW_REDIS_STRINGS_H
#define TW_REDIS_STRINGS_H

#include "shared.h"

/* New strings, which the caller frees. */
RedisModuleString *tw__redis_string_new(struct tw__redis_bytes bytes);
RedisModuleString *tw__redis_string_of_number(uint64_t number);

/* The name of a route's target. It is made when it is first asked for, and belongs to the route. */
RedisModuleString *tw__redis_string_of_target(struct tw__redis_route *route);

/* The bytes of a string, for as long as it lives. */
struct tw__redis_bytes tw__redis_string_bytes(const RedisModuleString *string);

/* A string as an error or the log may show it: short, and without bytes that would end the line. Writes it to
 * `text`, which has room for TW__REDIS_SHOWN_MAX, and returns that. */
enum { TW__REDIS_SHOWN_MAX = 68 };
const char *tw__redis_string_shown(const RedisModuleString *string, char *text);

#endif
