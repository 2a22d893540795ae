/* SPDX-License-Identifier: MIT
 *
 * A binary heap of queues. A queue is in it while it has a ready entry, is not paused and may have another job.
 * So the earliest task of ten thousand queues is found in O(log queues), and a queue that is held up costs
 * nothing. Example: "mails" has tasks due at 5 and 9, "orders" one at 7. The heap gives mails, orders, mails.
 */
#include "ready.h"

#include <stdlib.h>

bool tw__store_ready_reserve(struct tw__store_ready *ready, uint64_t n)
{
    if (n <= ready->room)
        return true;
    uint64_t room = n < 16 ? 16 : 2 * n;
    struct tw__store_queue **heap = realloc(ready->heap, room * sizeof(void *));
    if (heap == NULL)
        return false;
    ready->heap = heap;
    ready->room = room;
    return true;
}

static const struct tw__store_entry *first_ready(const struct tw__store_queue *queue)
{
    return TW_CONTAINER(queue->ready.next, struct tw__store_entry, link);
}

static bool comes_before(const struct tw__store_queue *a, const struct tw__store_queue *b)
{
    return tw__store_comes_before(first_ready(a), first_ready(b));
}

/* Puts a queue at an index of the heap. */
static void place_at(struct tw__store_ready *ready, uint64_t i, struct tw__store_queue *queue)
{
    ready->heap[i] = queue;
    queue->place = i + 1;
}

/* Moves a queue from an index up or down to where it belongs. */
static void sift(struct tw__store_ready *ready, uint64_t i, struct tw__store_queue *queue)
{
    while (i > 0 && comes_before(queue, ready->heap[(i - 1) / 2])) {
        place_at(ready, i, ready->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (uint64_t child = 2 * i + 1; child < ready->size; child = 2 * i + 1) {
        if (child + 1 < ready->size && comes_before(ready->heap[child + 1], ready->heap[child]))
            child++;
        if (!comes_before(ready->heap[child], queue))
            break;
        place_at(ready, i, ready->heap[child]);
        i = child;
    }
    place_at(ready, i, queue);
}

void tw__store_ready_update(struct tw__store_ready *ready, struct tw__store_queue *queue)
{
    uint32_t at_once = queue->callee.at_once;
    bool open = !tw__list_empty(&queue->ready) && !queue->paused && (at_once == 0 || queue->running < at_once);
    uint64_t place = queue->place;
    if (open) {
        sift(ready, place > 0 ? place - 1 : ready->size++, queue);
    } else if (place > 0) {
        struct tw__store_queue *last = ready->heap[--ready->size];
        queue->place = 0;
        if (last != queue)
            sift(ready, place - 1, last);
    }
}

struct tw__store_queue *tw__store_ready_first(const struct tw__store_ready *ready)
{
    return ready->size > 0 ? ready->heap[0] : NULL;
}
