/* SPDX-License-Identifier: MIT
 *
 * Where memory comes from: the C library, until the module is loaded; then the server, which counts it as its own, ends
 * the process rather than answer NULL, and can move it (active defragmentation).
 */
#ifndef TW_REDIS_MEMORY_H
#define TW_REDIS_MEMORY_H

#include <stddef.h>

struct tw__memory {
    void *(*alloc)(size_t size);
    void *(*realloc)(void *old, size_t size);
    void (*free)(void *old);
    size_t (*usable)(void *block); /* what a block really has: at least what was asked for */
};

/* To be set before the first block is asked for, and not again. */
extern struct tw__memory tw__memory;

#endif
