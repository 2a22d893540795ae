/* SPDX-License-Identifier: MIT
 *
 * Memory: every byte of a scheduler comes from the memory function of its options, and is counted.
 *
 *     a file of src/sched     tw__sched_alloc(1,000)         ->  memory(1,000)
 *     the same, in lines      tw__sched_alloc_lines(1,000)   ->  memory(1,064)    [ gap | lines: 1,000 | gap ]
 *     the wheel, for a level  tw__sched_grow_level(1,000)    ->  memory(1,064)    [ 1,064 | level: 1,000 ]
 *
 * The count is the `memory` of tw_sched_stats(). To keep it, the scheduler must know the size of a block that
 * it gives back. Its own files remember that size and pass it on. The wheel does not, so 64 bytes in front of
 * each level hold the size of that block.
 */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

void *tw__sched_plain_memory(void *arg, void *old, size_t size)
{
    (void)arg;
    if (old == NULL)
        return malloc(size);
    free(old);
    return NULL;
}

void *tw__sched_alloc(struct tw_sched *sched, size_t size)
{
    void *block = sched->options.memory(sched->options.memory_arg, NULL, size);
    if (block != NULL)
        atomic_fetch_add_explicit(&sched->memory, size, memory_order_relaxed);
    return block;
}

void tw__sched_dealloc(struct tw_sched *sched, void *old, size_t size)
{
    atomic_fetch_sub_explicit(&sched->memory, size, memory_order_relaxed);
    sched->options.memory(sched->options.memory_arg, old, size);
}

/* The block begins on a cache line, 1 to 64 bytes into the memory that it lies in. The byte before it holds
 * that distance. */
void *tw__sched_alloc_lines(struct tw_sched *sched, size_t size)
{
    char *memory = tw__sched_alloc(sched, size + TW__SCHED_LINE);
    if (memory == NULL)
        return NULL;
    size_t skip = TW__SCHED_LINE - (uintptr_t)memory % TW__SCHED_LINE; /* 1 to 64 */
    memory[skip - 1] = (char)skip;
    return memory + skip;
}

void tw__sched_dealloc_lines(struct tw_sched *sched, void *old, size_t size)
{
    char *block = old;
    tw__sched_dealloc(sched, block - block[-1], size + TW__SCHED_LINE);
}

/* Allocates or frees a level of the wheel. The wheel does not pass the size of a level that it gives back, so
 * the size of the block stands in front of the level. */
void *tw__sched_grow_level(void *arg, void *old, size_t size)
{
    enum { HEAD = 64 };
    struct tw_sched *sched = arg;
    if (old != NULL) {
        char *block = (char *)old - HEAD;
        memcpy(&size, block, sizeof size);
        tw__sched_dealloc(sched, block, size);
        return NULL;
    }
    size += HEAD;
    char *block = tw__sched_alloc(sched, size);
    if (block == NULL)
        return NULL;
    memcpy(block, &size, sizeof size);
    return block + HEAD;
}
