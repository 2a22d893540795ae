/* SPDX-License-Identifier: MIT
 *
 * A payload is the number of its strings, then one string after the other, each with its size before it.
 * Numbers are varints. Example: the two strings "job" and "7" are the bytes 2, 3, 'j', 'o', 'b', 1, '7'.
 *
 * A payload lies in the block of its task. The payload of a series of which periods have died lies in a block
 * of its own, which the series and its dead periods share.
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

struct tw__redis_task;

/* A payload that tasks share (share.c). */
struct tw__redis_share {
    struct tw__redis_task **user; /* these tasks; the dead ones among them in the order of their deaths */
    uint32_t users, room;         /* how many there are, and for how many there is room */
    uint32_t dead;
    uint64_t dump;                        /* the last writing of the queue as chunks that came to the payload */
    const struct tw__redis_task *written; /* and the task with which it wrote the payload (chunk.c) */
    size_t size;
    char packed[];
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
