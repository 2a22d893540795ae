/* SPDX-License-Identifier: MIT */
#include "failures.h"

#include "hash.h"

#include <string.h>

/* Two calls of the same hash count as one: the news of one of them is lost. */
bool failures_note(struct failures *failures, const struct taken *taken)
{
    uint64_t hash = hash_bytes(HASH_BEGIN, taken->queue, strlen(taken->queue) + 1);
    hash = hash_bytes(hash, &taken->due_ms, sizeof taken->due_ms);
    hash = hash_bytes(hash, taken->id.data, taken->id.size);
    uint64_t *place = &failures->call[hash % FAILURES];
    bool first = taken->attempt == 1 || *place != hash;
    *place = hash;
    return first;
}
