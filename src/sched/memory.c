/* SPDX-License-Identifier: MIT
 *
 * Memory: every byte comes from the memory function of the options, and is counted.
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

/* The wheel's hook for levels: it does not say how much it gives back, so that stands before the block. */
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
