/* SPDX-License-Identifier: MIT
 *
 * Bytes that are written one after the other, in a block of memory that grows.
 */
#ifndef TW_REDIS_BUFFER_H
#define TW_REDIS_BUFFER_H

#include <stdint.h>

#include "bytes.h"
#include "memory.h"

/* An empty buffer is {0}. */
struct tw__redis_buffer {
    char *at;
    size_t size, capacity;
};

/* Add a number as a varint, and a string with its size before it (varint.h). */
void tw__redis_buffer_put_number(struct tw__redis_buffer *buffer, uint64_t number,
                                 const struct tw__redis_memory *memory);
void tw__redis_buffer_put_bytes(struct tw__redis_buffer *buffer, struct tw__redis_bytes bytes,
                                const struct tw__redis_memory *memory);
/* Frees the memory. The buffer is then empty. */
void tw__redis_buffer_free(struct tw__redis_buffer *buffer, const struct tw__redis_memory *memory);

/* Bytes that are read one after the other. They may come from a damaged file, so every size is checked. */
struct tw__redis_reader {
    const char *at, *end; /* at NULL: the bytes were not what the caller expected */
};

/* Read a number up to `most`, and a string with its size before it. After a fault, which may be an earlier
 * one, they return 0 and the empty string. */
uint64_t tw__redis_reader_number(struct tw__redis_reader *reader, uint64_t most);
struct tw__redis_bytes tw__redis_reader_bytes(struct tw__redis_reader *reader);

#endif
