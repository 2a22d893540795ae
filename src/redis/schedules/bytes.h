/* SPDX-License-Identifier: MIT
 *
 * A reference to bytes that lie elsewhere: an id, a target, a string of a payload.
 */
#ifndef TW_REDIS_BYTES_H
#define TW_REDIS_BYTES_H

#include <stddef.h>

struct tw__redis_bytes {
    const char *at;
    size_t size;
};

#endif
