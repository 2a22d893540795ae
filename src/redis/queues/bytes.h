/* SPDX-License-Identifier: MIT
 *
 * A reference to bytes that lie elsewhere: an id, a target, a string of a payload.
 */
#ifndef TW_REDIS_BYTES_H
#define TW_REDIS_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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

#endif
