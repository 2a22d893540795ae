/* SPDX-License-Identifier: MIT
 *
 * A hash of bytes, FNV-1a. It is no protection against names that somebody has chosen.
 */
#ifndef COMMAND_HASH_H
#define COMMAND_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)

/* Goes on with the hash of the bytes before, or HASH_BEGIN. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
