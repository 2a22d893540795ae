/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of all schedules.
 */
#include "schedules.h"

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

struct tw__redis_schedules *tw__redis_schedules_new(const struct tw__redis_memory *memory,
                                                    void (*forget)(void *string), uint64_t now_ms,
                                                    uint64_t monotonic_ms)
{
    struct tw__redis_schedules *schedules = memory->alloc(sizeof *schedules);
    memset(schedules, 0, sizeof *schedules);
    schedules->memory = *memory;
    schedules->forget = forget;
    tw__redis_table_type_init(&schedules->of_tasks, task_key, &schedules->memory);
    tw__redis_table_type_init(&schedules->of_routes, tw__redis_route_key, &schedules->memory);
    tw__list_init(&schedules->attached);
    tw__list_init(&schedules->detached);
    tw__list_init(&schedules->awake);
    tw__list_init(&schedules->stale);
    if (tw__redis_place_init(schedules, now_ms, monotonic_ms) != 0) {
        memory->free(schedules);
        return NULL;
    }
    pthread_mutex_init(&schedules->graves_lock, NULL);
    return schedules;
}

void tw__redis_schedules_free(struct tw__redis_schedules *schedules)
{
    tw__redis_grave_reap_all(schedules);
    TW_ASSERT(tw__list_empty(&schedules->attached) && tw__list_empty(&schedules->detached));
    tw__redis_place_fini(schedules);
    pthread_mutex_destroy(&schedules->graves_lock);
    if (schedules->route != NULL)
        schedules->memory.free(schedules->route);
    schedules->memory.free(schedules);
}
