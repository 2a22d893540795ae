/* SPDX-License-Identifier: MIT
 *
 * Numbers in as few bytes as they need: seven bits a byte, the lowest first. Example: 300 is the bytes 0xAC,
 * 0x02. Strings have such a number, their size, before them.
 */
#ifndef TW_REDIS_VARINT_H
#define TW_REDIS_VARINT_H

#include <stdint.h>
#include <string.h>

#include "bytes.h"

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

#endif
