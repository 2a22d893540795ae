/* SPDX-License-Identifier: MIT
 *
 * A vector doubles its room when it is full.
 */
#include "vector.h"

enum { FIRST = 16 };

void tw__redis_vector_add(struct tw__redis_vector *vector, void *pointer, const struct tw__redis_memory *memory)
{
    if (vector->count == vector->capacity) {
        vector->capacity = vector->capacity == 0 ? FIRST : vector->capacity * 2;
        vector->at = memory->realloc(vector->at, vector->capacity * sizeof(void *));
    }
    vector->at[vector->count++] = pointer;
}
