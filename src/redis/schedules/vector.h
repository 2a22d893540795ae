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
struct tw__redis_vector {
    void **at;
    size_t count, capacity;
};

/* Requires: memory never answers NULL. */
void tw__redis_vector_add(struct tw__redis_vector *vector, void *pointer,
                          const struct tw__redis_memory *memory);

#endif
