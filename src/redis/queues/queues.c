/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of all queues.
 */
#include "queues.h"

#include <base/assert.h>
#include <base/list.h>
#include <string.h>

#include "grave.h"
#include "place.h"
#include "route.h"

static void task_key(const void *entry, const char **bytes, size_t *size)
{
    struct tw__redis_bytes id = tw__redis_task_id(entry);
    *bytes = id.at;
    *size = id.size;
}

struct tw__redis_queues *tw__redis_queues_new(const struct tw__redis_memory *memory,
                                              void (*forget)(void *string), uint64_t now_ms,
                                              uint64_t monotonic_ms)
{
    struct tw__redis_queues *queues = memory->alloc(sizeof *queues);
    memset(queues, 0, sizeof *queues);
    queues->memory = *memory;
    queues->forget = forget;
    tw__redis_table_type_init(&queues->of_tasks, task_key, &queues->memory);
    tw__redis_table_type_init(&queues->of_routes, tw__redis_route_key, &queues->memory);
    tw__list_init(&queues->attached);
    tw__list_init(&queues->detached);
    tw__list_init(&queues->awake);
    tw__list_init(&queues->stale);
    if (tw__redis_place_init(queues, now_ms, monotonic_ms) != 0) {
        memory->free(queues);
        return NULL;
    }
    pthread_mutex_init(&queues->graves_lock, NULL);
    return queues;
}

void tw__redis_queues_free(struct tw__redis_queues *queues)
{
    tw__redis_grave_reap_all(queues);
    TW_ASSERT(tw__list_empty(&queues->attached) && tw__list_empty(&queues->detached));
    tw__redis_place_fini(queues);
    pthread_mutex_destroy(&queues->graves_lock);
    if (queues->route != NULL)
        queues->memory.free(queues->route);
    queues->memory.free(queues);
}
