/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of all queues.
 */
#ifndef TW_REDIS_QUEUES_H
#define TW_REDIS_QUEUES_H

#include "state.h"

/* Makes the state without any queue, at these times of the wall clock and of a monotonic clock. Routes and
 * queues keep strings of the server's; `forget` frees such a string. Returns NULL if there is no memory
 * for the wheels. */
struct tw__redis_queues *tw__redis_queues_new(const struct tw__redis_memory *memory,
                                              void (*forget)(void *string), uint64_t now_ms,
                                              uint64_t monotonic_ms);
/* Frees the state and the buried queues. Requires: all queues have been buried. */
void tw__redis_queues_free(struct tw__redis_queues *queues);

#endif
