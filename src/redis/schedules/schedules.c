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
    struct tw__bytes id = tw__task_id(entry);
    *bytes = id.at;
    *size = id.size;
}

struct tw__schedules *tw__schedules_new(const struct tw__memory *memory, void (*forget)(void *string),
                                        uint64_t now_ms, uint64_t monotonic_ms)
{
    struct tw__schedules *schedules = memory->alloc(sizeof *schedules);
    memset(schedules, 0, sizeof *schedules);
    schedules->memory = *memory;
    schedules->forget = forget;
    tw__table_type_init(&schedules->of_tasks, task_key, &schedules->memory);
    tw__table_type_init(&schedules->of_routes, tw__route_key, &schedules->memory);
    tw__list_init(&schedules->attached);
    tw__list_init(&schedules->detached);
    if (tw__place_init(schedules, now_ms, monotonic_ms) != 0) {
        memory->free(schedules);
        return NULL;
    }
    pthread_mutex_init(&schedules->graves_lock, NULL);
    return schedules;
}

void tw__schedules_free(struct tw__schedules *schedules)
{
    tw__grave_reap_all(schedules);
    TW_ASSERT(tw__list_empty(&schedules->attached) && tw__list_empty(&schedules->detached));
    tw__place_fini(schedules);
    pthread_mutex_destroy(&schedules->graves_lock);
    if (schedules->route != NULL)
        schedules->memory.free(schedules->route);
    schedules->memory.free(schedules);
}
