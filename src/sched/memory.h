/* SPDX-License-Identifier: MIT
 *
 * Memory: blocks from the memory function of the options, counted.
 */
#ifndef TW_SCHED_MEMORY_H
#define TW_SCHED_MEMORY_H

#include "internal.h"

/* The memory function of a scheduler whose options do not name one: malloc and free. */
void *tw__sched_plain_memory(void *arg, void *old, size_t size);

/* Asks the scheduler's memory function for a block. Returns NULL if there is no memory. */
void *tw__sched_alloc(struct tw_sched *sched, size_t size);
/* Gives a block of that size back. */
void tw__sched_dealloc(struct tw_sched *sched, void *old, size_t size);

/* The same for a block that begins on a cache line. */
void *tw__sched_alloc_lines(struct tw_sched *sched, size_t size);
void tw__sched_dealloc_lines(struct tw_sched *sched, void *old, size_t size);

/* The wheel's hook for the memory of its levels; `arg` is the scheduler. */
void *tw__sched_grow_level(void *arg, void *old, size_t size);

#endif
