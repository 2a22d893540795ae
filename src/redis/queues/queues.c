/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of all queues, and of removed ones.
 *
 * The server may free a value on a background thread (UNLINK, FLUSHALL ASYNC). That thread must not touch the
 * tasks, as they are linked into the wheel together with tasks of other queues. So the background thread
 * puts the queue on the list of the reaper, which alone has a lock here. The server's own thread then takes
 * the tasks out, a few at a time.
 */
#include "queues.h"

#include <base/assert.h>
#include <base/list.h>
#include <string.h>

#include "place.h"
#include "queue.h"
#include "route.h"

/* ---- removed queues -------------------------------------------------------------------------------------- */

void tw__redis_reaper_add(struct tw__redis_queue *queue)
{
    struct tw__redis_queues *queues = queue->queues;
    TW_ASSERT(!queue->attached);
    pthread_mutex_lock(&queues->to_reap_lock);
    queue->reaped = queues->to_reap;
    queues->to_reap = queue;
    pthread_mutex_unlock(&queues->to_reap_lock);
}

bool tw__redis_reaper_busy(const struct tw__redis_queues *queues)
{
    return !tw__list_empty(&queues->detached);
}

static struct tw__redis_queue *first_to_reap(struct tw__redis_queues *queues)
{
    pthread_mutex_lock(&queues->to_reap_lock);
    struct tw__redis_queue *queue = queues->to_reap;
    pthread_mutex_unlock(&queues->to_reap_lock);
    return queue;
}

/* Takes a queue off the list. Another thread may have put a newer one before it meanwhile. */
static void take_off(struct tw__redis_queue *queue)
{
    struct tw__redis_queues *queues = queue->queues;
    pthread_mutex_lock(&queues->to_reap_lock);
    struct tw__redis_queue **link = &queues->to_reap;
    while (*link != queue)
        link = &(*link)->reaped;
    *link = queue->reaped;
    pthread_mutex_unlock(&queues->to_reap_lock);
}

/* Frees up to `limit` tasks of one queue, and the queue too if it then has no tasks. */
static uint64_t reap_one(struct tw__redis_queue *queue, uint64_t limit)
{
    uint64_t freed = tw__redis_queue_drop(queue, limit);
    if (freed < limit && tw__redis_table_count(&queue->tasks) == 0) {
        take_off(queue);
        tw__redis_queue_free(queue);
    }
    return freed;
}

uint64_t tw__redis_reaper_run(struct tw__redis_queues *queues, uint64_t limit)
{
    uint64_t freed = 0;
    struct tw__redis_queue *queue;
    while (freed < limit && (queue = first_to_reap(queues)) != NULL)
        freed += reap_one(queue, limit - freed) + 1;
    return freed;
}

void tw__redis_reaper_run_all(struct tw__redis_queues *queues)
{
    while (tw__redis_reaper_run(queues, UINT64_MAX) > 0)
        ;
}

/* ---- all queues ------------------------------------------------------------------------------------------ */

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
    pthread_mutex_init(&queues->to_reap_lock, NULL);
    return queues;
}

void tw__redis_queues_free(struct tw__redis_queues *queues)
{
    tw__redis_reaper_run_all(queues);
    TW_ASSERT(tw__list_empty(&queues->attached) && tw__list_empty(&queues->detached));
    tw__redis_place_fini(queues);
    pthread_mutex_destroy(&queues->to_reap_lock);
    if (queues->route != NULL)
        queues->memory.free(queues->route);
    queues->memory.free(queues);
}
