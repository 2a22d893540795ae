/* SPDX-License-Identifier: MIT
 *
 * Where memory comes from. In the module it is the server's, which counts it as its own and can move it (active
 * defragmentation). It never answers NULL, as the server ends its process first; tables alone get along with
 * NULL.
 */
#ifndef TW_REDIS_MEMORY_H
#define TW_REDIS_MEMORY_H

#include <stddef.h>

struct tw__redis_memory {
    void *(*alloc)(size_t size);
    void *(*realloc)(void *old, size_t size);
    void (*free)(void *old);
    size_t (*usable)(void *block); /* the bytes that a block really has: at least as many as were asked for */
};

#endif
