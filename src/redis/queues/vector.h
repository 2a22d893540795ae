/* SPDX-License-Identifier: MIT
 *
 * A vector of pointers, which are added one by one. Its block of memory belongs to the owner of the vector,
 * who frees it.
 */
#ifndef TW_REDIS_VECTOR_H
#define TW_REDIS_VECTOR_H

#include <stddef.h>

#include "memory.h"

/* All zero is an empty vector. */
struct tw__redis_vector {
    void **at;
    size_t count, capacity;
};

/* Adds a pointer. Requires: allocations never return NULL. */
void tw__redis_vector_add(struct tw__redis_vector *vector, void *pointer,
                          const struct tw__redis_memory *memory);

#endif
