/* SPDX-License-Identifier: MIT
 *
 * Bytes: a reference to them, the functions that allocate memory for them, numbers and strings packed into
 * them, and blocks of them that grow.
 */
#ifndef TW_REDIS_BYTES_H
#define TW_REDIS_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes that lie elsewhere: an id, a target, a string of a payload. */
struct tw__redis_bytes {
    const char *at;
    size_t size;
};

static inline bool tw__redis_bytes_equal(struct tw__redis_bytes a, struct tw__redis_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.at, b.at, a.size) == 0);
}

static inline bool tw__redis_bytes_begin(struct tw__redis_bytes bytes, const char *beginning)
{
    size_t size = strlen(beginning);
    return bytes.size >= size && memcmp(bytes.at, beginning, size) == 0;
}

/* The functions that allocate memory. In the module they are the server's: it counts the memory as its own
 * and can move it (active defragmentation). They never return NULL there, because the server ends its process
 * first. Only tables cope with NULL. */
struct tw__redis_memory {
    void *(*alloc)(size_t size);
    void *(*realloc)(void *old, size_t size);
    void (*free)(void *old);
    size_t (*usable)(void *block); /* the real size of a block in bytes: at least the size requested */
};

/* ---- varints --------------------------------------------------------------------------------------------- */

/* Numbers in as few bytes as they need: seven bits a byte, the lowest first. Example: 300 is the bytes 0xAC,
 * 0x02. Strings have such a number, their size, before them. */
enum { TW__REDIS_VARINT_MAX = 10 };

static inline size_t tw__redis_varint_size(uint64_t value)
{
    size_t size = 1;
    while (value >>= 7)
        size++;
    return size;
}

/* Writes a number. Returns the end. */
static inline char *tw__redis_varint_put(char *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (char)(value | 0x80);
        value >>= 7;
    }
    *at++ = (char)value;
    return at;
}

/* Reads a number that is known to be whole. Returns its end. */
static inline const char *tw__redis_varint_get(const char *at, uint64_t *value)
{
    uint64_t sum = (uint8_t)*at & 0x7F;
    for (uint32_t shift = 7; (uint8_t)*at++ & 0x80; shift += 7)
        sum |= (uint64_t)((uint8_t)*at & 0x7F) << shift;
    *value = sum;
    return at;
}

/* Reads a number. Returns its end, or NULL if the number is cut short, too long or too large. */
static inline const char *tw__redis_varint_take(const char *at, const char *end, uint64_t *value)
{
    uint64_t sum = 0;
    for (uint32_t shift = 0; at < end && shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)*at++;
        if (shift == 63 && byte > 1)
            return NULL;
        sum |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) {
            *value = sum;
            return at;
        }
    }
    return NULL;
}

/* Writes a string and its size. Returns the end. */
static inline char *tw__redis_varint_put_bytes(char *at, struct tw__redis_bytes bytes)
{
    at = tw__redis_varint_put(at, bytes.size);
    if (bytes.size > 0)
        memcpy(at, bytes.at, bytes.size);
    return at + bytes.size;
}

/* Reads a string that is known to be whole. The string ends where its bytes end. */
static inline struct tw__redis_bytes tw__redis_varint_get_bytes(const char *at)
{
    uint64_t size;
    const char *bytes = tw__redis_varint_get(at, &size);
    return (struct tw__redis_bytes){bytes, size};
}

/* ---- writing and reading --------------------------------------------------------------------------------- */

/* Bytes that are written one after the other, in a block of memory that grows. An empty buffer is {0}. */
struct tw__redis_buffer {
    char *at;
    size_t size, capacity;
};

/* Makes room for `more` bytes. */
void tw__redis_buffer_grow(struct tw__redis_buffer *buffer, size_t more, const struct tw__redis_memory *memory);

/* Adds a number as a varint. */
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
/* Empties a buffer that will be used again: small memory is kept. */
void tw__redis_buffer_reset(struct tw__redis_buffer *buffer, const struct tw__redis_memory *memory);

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

/* ---- vectors --------------------------------------------------------------------------------------------- */

/* A vector of pointers, which are added one by one. Its block of memory belongs to the owner of the vector, who
 * frees it. All zero is an empty vector. */
struct tw__redis_vector {
    void **at;
    size_t count, capacity;
};

/* Adds a pointer. Requires: allocations never return NULL. */
void tw__redis_vector_add(struct tw__redis_vector *vector, void *pointer,
                          const struct tw__redis_memory *memory);

#endif
