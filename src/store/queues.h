/* SPDX-License-Identifier: MIT
 *
 * The queues of the window, by name.
 */
#ifndef TW_STORE_QUEUES_H
#define TW_STORE_QUEUES_H

#include "ready.h"

struct tw__store_queues {
    struct tw__store_queue **bucket;
    uint64_t mask, count;
};

/* Adds to a hash (FNV-1a). Begin with 0. */
static inline uint64_t tw__store_hash(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    for (hash ^= 14695981039346656037U; size > 0; size--, byte++)
        hash = (hash ^ *byte) * 1099511628211U;
    return hash;
}

/* Returns: 0 or TW_ENOMEM. */
int tw__store_queues_init(struct tw__store_queues *queues);
void tw__store_queues_fini(struct tw__store_queues *queues);

/* Returns the queue of this name; NULL: there is none. */
struct tw__store_queue *tw__store_queues_find(const struct tw__store_queues *queues, const char *name);

/* Adds a queue that is not there. Returns NULL if there is no memory. */
struct tw__store_queue *tw__store_queues_add(struct tw__store_queues *queues, const char *name,
                                             const struct tw__store_callee *callee);

/* Takes a queue out and frees it. */
void tw__store_queues_remove(struct tw__store_queues *queues, struct tw__store_queue *queue);

/* Visits each queue, in no order. `visit` may remove the queue, but must add none. Returns: 0, or the first
 * result that is not 0, which ends the visit. */
int tw__store_queues_each(struct tw__store_queues *queues,
                          int (*visit)(void *arg, struct tw__store_queue *queue), void *arg);

#endif
