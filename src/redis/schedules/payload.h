/* SPDX-License-Identifier: MIT
 *
 * A payload is the number of its strings, then one string after the other, each with its size before it.
 * Numbers are varints. Example: the two strings "job" and "7" are the bytes 2, 3, 'j', 'o', 'b', 1, '7'.
 */
#ifndef TW_REDIS_PAYLOAD_H
#define TW_REDIS_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

/* The strings of a payload that are still to be read. */
struct tw__redis_payload {
    const char *at;
    uint32_t count;
};

/* Reads the next string. Requires: count > 0. */
struct tw__redis_bytes tw__redis_payload_next(struct tw__redis_payload *payload);
/* The bytes of all strings of a payload, without the sizes; and the bytes of the first, third, fifth ...
 * string, which are the fields in the payload of a Stream. */
uint64_t tw__redis_payload_bytes(struct tw__redis_payload payload);
uint64_t tw__redis_payload_field_bytes(struct tw__redis_payload payload);

/* Whether bytes are exactly one whole payload. */
bool tw__redis_payload_valid(struct tw__redis_bytes packed);

#endif
