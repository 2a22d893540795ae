/* SPDX-License-Identifier: MIT
 *
 * The wheel on malloc, for programs that want it. This is the only file of the wheel that uses malloc, so it
 * has an archive of its own.
 */
#include "internal.h"

#include <stdlib.h>

enum { CACHE_LINE = 64 };

/* The grow hook, on malloc. */
static void *grow_on_heap(void *arg, void *old, size_t size)
{
    (void)arg;
    if (old == NULL)
        return malloc(size);
    free(old);
    return NULL;
}

int tw_wheel_new(struct tw_wheel **wheel, const struct tw_geometry *geometry, uint64_t now)
{
    size_t size = tw_wheel_size(geometry);
    if (size == 0)
        return TW_EGEOMETRY;
    /* In memory that starts on a cache line, the wheel starts at the first byte. So free(wheel) frees the
     * block. */
    void *memory = aligned_alloc(CACHE_LINE, (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    if (memory == NULL)
        return TW_ENOMEM;
    tw_wheel_init(wheel, memory, size, geometry, now); /* cannot fail: geometry and size are right */
    tw__wheel_on_grow(*wheel, grow_on_heap, NULL);
    (*wheel)->on_heap = true;
    return 0;
}

void tw_wheel_free(struct tw_wheel *wheel)
{
    if (wheel == NULL)
        return;
    TW_ASSERT(wheel->on_heap);
    wheel->on_heap = false; /* tw_wheel_fini() requires this */
    tw_wheel_fini(wheel);
    free(wheel);
}
