/* SPDX-License-Identifier: MIT
 *
 * Payloads: how many strings there are, then one string after the other, each with its size. Numbers are
 * varints.
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
/* The bytes of its strings alone, or of every second one from the first on: the fields of a Stream's
 * payload. */
uint64_t tw__redis_payload_bytes(struct tw__redis_payload payload);
uint64_t tw__redis_payload_field_bytes(struct tw__redis_payload payload);

/* Whether bytes are a payload, whole and nothing else. */
bool tw__redis_payload_valid(struct tw__redis_bytes packed);

#endif
