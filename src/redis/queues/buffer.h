/* SPDX-License-Identifier: MIT
 *
 * Bytes that are written one after the other, in a block of memory that grows.
 */
#ifndef TW_REDIS_BUFFER_H
#define TW_REDIS_BUFFER_H

#include <stdint.h>

#include "bytes.h"
#include "memory.h"
#include "varint.h"

/* An empty buffer is {0}. */
struct tw__redis_buffer {
    char *at;
    size_t size, capacity;
};

/* Makes room for `more` bytes. */
void tw__redis_buffer_grow(struct tw__redis_buffer *buffer, size_t more, const struct tw__redis_memory *memory);

/* Adds a number as a varint (varint.h). */
static inline void tw__redis_buffer_put_number(struct tw__redis_buffer *buffer, uint64_t number,
                                               const struct tw__redis_memory *memory)
{
    if (buffer->capacity - buffer->size < TW__REDIS_VARINT_MAX)
        tw__redis_buffer_grow(buffer, TW__REDIS_VARINT_MAX, memory);
    buffer->size = (size_t)(tw__redis_varint_put(buffer->at + buffer->size, number) - buffer->at);
}

/* Adds a string with its size before it. */
void tw__redis_buffer_put_bytes(struct tw__redis_buffer *buffer, struct tw__redis_bytes bytes,
                                const struct tw__redis_memory *memory);
/* Frees the memory. The buffer is then empty. */
void tw__redis_buffer_free(struct tw__redis_buffer *buffer, const struct tw__redis_memory *memory);

/* What is wrong with bytes that were refused. */
struct tw__redis_fault {
    const char *misfit; /* the bytes are in order, but do not fit the tasks that they name; NULL: they do */
    const char *name;   /* of the number that is out of its range; NULL: the bytes are damaged in another way */
    uint64_t value, most;
};

enum { TW__REDIS_FAULT_TEXT = 96 };

/* Writes the fault, as in "due is 5: expected at most 4". Returns the text. */
const char *tw__redis_fault_text(const struct tw__redis_fault *fault, char text[TW__REDIS_FAULT_TEXT]);

/* Bytes that are read one after the other. They may come from a damaged file, so every size is checked. */
struct tw__redis_reader {
    const char *at, *end; /* at NULL: the bytes were not what the caller expected */
    struct tw__redis_fault fault;
};

/* Read a number up to `most`, and a string with its size before it. After a fault, which may be an earlier
 * one, they return 0 and the empty string. */
uint64_t tw__redis_reader_number(struct tw__redis_reader *reader, uint64_t most);
/* The same for a number that the fault names, and for one that is written by its distance to `before`. */
uint64_t tw__redis_reader_named(struct tw__redis_reader *reader, const char *name, uint64_t most);
uint64_t tw__redis_reader_after(struct tw__redis_reader *reader, const char *name, uint64_t before,
                                uint64_t most);
struct tw__redis_bytes tw__redis_reader_bytes(struct tw__redis_reader *reader);

#endif
