/* SPDX-License-Identifier: MIT
 *
 * The functions that allocate memory. In the module they are the server's: it counts the memory as its own
 * and can move it (active defragmentation). They never return NULL there, because the server ends its process
 * first. Only tables cope with NULL.
 */
#ifndef TW_REDIS_MEMORY_H
#define TW_REDIS_MEMORY_H

#include <stddef.h>

struct tw__redis_memory {
    void *(*alloc)(size_t size);
    void *(*realloc)(void *old, size_t size);
    void (*free)(void *old);
    size_t (*usable)(void *block); /* the real size of a block in bytes: at least the size requested */
};

#endif
