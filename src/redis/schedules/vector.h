/* SPDX-License-Identifier: MIT
 *
 * Pointers, gathered one by one in a block of memory. The block belongs to the owner of the vector, who frees
 * it.
 */
#ifndef TW_REDIS_VECTOR_H
#define TW_REDIS_VECTOR_H

#include <stddef.h>

#include "memory.h"

/* All zero is an empty one. */
struct tw__vector {
    void **at;
    size_t count, capacity;
};

/* Requires: memory never answers NULL. */
void tw__vector_add(struct tw__vector *vector, void *pointer, const struct tw__memory *memory);

#endif
