/* SPDX-License-Identifier: MIT
 *
 * Writing bytes and pointers into blocks of memory that grow, and reading bytes again.
 */
#include "bytes.h"

#include <base/saturate.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LEAST = 64,     /* room for the log of most commands */
    FIRST = 16,     /* pointers of a vector, which doubles its room when it is full */
    KEPT_MAX = 1024 /* a larger block is not kept for later */
};

void tw__redis_buffer_grow(struct tw__redis_buffer *buffer, size_t more, const struct tw__redis_memory *memory)
{
    buffer->capacity = (buffer->size + more) * 2;
    if (buffer->capacity < LEAST)
        buffer->capacity = LEAST;
    buffer->at = memory->realloc(buffer->at, buffer->capacity);
}

void tw__redis_buffer_put_bytes(struct tw__redis_buffer *buffer, struct tw__redis_bytes bytes,
                                const struct tw__redis_memory *memory)
{
    tw__redis_buffer_put_number(buffer, bytes.size, memory);
    if (buffer->capacity - buffer->size < bytes.size)
        tw__redis_buffer_grow(buffer, bytes.size, memory);
    if (bytes.size > 0)
        memcpy(buffer->at + buffer->size, bytes.at, bytes.size);
    buffer->size += bytes.size;
}

void tw__redis_buffer_free(struct tw__redis_buffer *buffer, const struct tw__redis_memory *memory)
{
    memory->free(buffer->at);
    memset(buffer, 0, sizeof *buffer);
}

void tw__redis_buffer_reset(struct tw__redis_buffer *buffer, const struct tw__redis_memory *memory)
{
    buffer->size = 0;
    if (buffer->capacity > KEPT_MAX)
        tw__redis_buffer_free(buffer, memory);
}

const char *tw__redis_fault_text(const struct tw__redis_fault *fault, char text[TW__REDIS_FAULT_TEXT])
{
    if (fault->misfit != NULL)
        return fault->misfit;
    if (fault->name == NULL)
        return "its bytes are not what was written";
    snprintf(text, TW__REDIS_FAULT_TEXT, "%s is %" PRIu64 ": expected at most %" PRIu64, fault->name,
             fault->value, fault->most);
    return text;
}

uint64_t tw__redis_reader_after(struct tw__redis_reader *reader, const char *name, uint64_t before,
                                uint64_t most)
{
    uint64_t number = 0;
    if (reader->at != NULL)
        reader->at = tw__redis_varint_take(reader->at, reader->end, &number);
    number = tw__add_saturating(before, number);
    if (reader->at != NULL && number > most) {
        reader->at = NULL;
        reader->fault = (struct tw__redis_fault){.name = name, .value = number, .most = most};
    }
    return reader->at == NULL ? 0 : number;
}

uint64_t tw__redis_reader_named(struct tw__redis_reader *reader, const char *name, uint64_t most)
{
    return tw__redis_reader_after(reader, name, 0, most);
}

uint64_t tw__redis_reader_number(struct tw__redis_reader *reader, uint64_t most)
{
    return tw__redis_reader_named(reader, NULL, most);
}

struct tw__redis_bytes tw__redis_reader_bytes(struct tw__redis_reader *reader)
{
    struct tw__redis_bytes bytes = {NULL, tw__redis_reader_number(reader, SIZE_MAX)};
    if (reader->at != NULL && bytes.size > (size_t)(reader->end - reader->at))
        reader->at = NULL;
    if (reader->at == NULL)
        return (struct tw__redis_bytes){"", 0};
    bytes.at = reader->at;
    reader->at += bytes.size;
    return bytes;
}

void tw__redis_vector_add(struct tw__redis_vector *vector, void *pointer, const struct tw__redis_memory *memory)
{
    if (vector->count == vector->capacity) {
        vector->capacity = vector->capacity == 0 ? FIRST : vector->capacity * 2;
        vector->at = memory->realloc(vector->at, vector->capacity * sizeof(void *));
    }
    vector->at[vector->count++] = pointer;
}
