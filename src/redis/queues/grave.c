/* SPDX-License-Identifier: MIT
 *
 * The server may free a value on a background thread (UNLINK, FLUSHALL ASYNC). That thread must not touch the
 * tasks, as they are linked into the wheel together with tasks of other queues. So the background thread
 * puts the queue on the list of graves, which alone has a lock here. The server's own thread then takes
 * the tasks out, a few at a time.
 */
#include "grave.h"

#include <base/assert.h>
#include <base/list.h>

#include "queue.h"

void tw__redis_grave_bury(struct tw__redis_queue *queue)
{
    struct tw__redis_queues *queues = queue->queues;
    TW_ASSERT(!queue->attached);
    pthread_mutex_lock(&queues->graves_lock);
    queue->grave = queues->graves;
    queues->graves = queue;
    pthread_mutex_unlock(&queues->graves_lock);
}

bool tw__redis_grave_reaping(const struct tw__redis_queues *queues)
{
    return !tw__list_empty(&queues->detached);
}

static struct tw__redis_queue *first_grave(struct tw__redis_queues *queues)
{
    pthread_mutex_lock(&queues->graves_lock);
    struct tw__redis_queue *queue = queues->graves;
    pthread_mutex_unlock(&queues->graves_lock);
    return queue;
}

/* Takes a grave off the list. Another thread may have put a newer grave before it meanwhile. */
static void close_grave(struct tw__redis_queue *queue)
{
    struct tw__redis_queues *queues = queue->queues;
    pthread_mutex_lock(&queues->graves_lock);
    struct tw__redis_queue **link = &queues->graves;
    while (*link != queue)
        link = &(*link)->grave;
    *link = queue->grave;
    pthread_mutex_unlock(&queues->graves_lock);
}

/* Frees up to `limit` tasks of one queue, and the queue too if it then has no tasks. */
static uint64_t reap_one(struct tw__redis_queue *queue, uint64_t limit)
{
    uint64_t freed = tw__redis_queue_drop(queue, limit);
    if (freed < limit && tw__redis_table_count(&queue->tasks) == 0) {
        close_grave(queue);
        tw__redis_queue_free(queue);
    }
    return freed;
}

uint64_t tw__redis_grave_reap(struct tw__redis_queues *queues, uint64_t limit)
{
    uint64_t freed = 0;
    struct tw__redis_queue *queue;
    while (freed < limit && (queue = first_grave(queues)) != NULL)
        freed += reap_one(queue, limit - freed) + 1;
    return freed;
}

void tw__redis_grave_reap_all(struct tw__redis_queues *queues)
{
    while (tw__redis_grave_reap(queues, UINT64_MAX) > 0)
        ;
}
