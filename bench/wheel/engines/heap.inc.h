/* SPDX-License-Identifier: MIT
 *
 * An array heap in which a node has HEAP_WAYS children. Each node holds the deadline beside the pointer, so
 * that sifting reads the array alone. A timer knows its place, so that it can be cancelled. The array is
 * reserved before the clock runs, so the engine does not pay for growing it.
 */
#include "object.inc.h"

#include <stdlib.h>

struct heap_timer {
    uint64_t deadline;
    uint32_t place; /* the place in the array; IDLE if not pending */
};
#define IDLE UINT32_MAX

struct object {
    struct heap_timer timer;
    void (*fire)(struct object *object);
    uint64_t payload;
    uint32_t id;
} __attribute__((aligned(64)));

struct node {
    uint64_t deadline;
    struct object *object;
};

static struct node *heap;
static uint32_t heap_count;

static inline void engine_open(const struct engine *engine, uint32_t timers)
{
    (void)engine;
    heap = bench_alloc(timers * sizeof *heap);
    heap_count = 0;
}

static inline void engine_close(void)
{
    free(heap);
}

static inline void engine_prepare(struct object *object)
{
    object->timer.place = IDLE;
    object->fire = handle;
}

static inline void put(uint32_t place, struct node node)
{
    heap[place] = node;
    node.object->timer.place = place;
}

static inline void sift_up(uint32_t place, struct node node)
{
    while (place > 0) {
        uint32_t parent = (place - 1) / HEAP_WAYS;
        if (heap[parent].deadline <= node.deadline)
            break;
        put(place, heap[parent]);
        place = parent;
    }
    put(place, node);
}

/* The earliest child of a place whose first child is `first`. */
static inline uint32_t earliest_child(uint32_t first)
{
    uint32_t end = first + HEAP_WAYS < heap_count ? first + HEAP_WAYS : heap_count;
    uint32_t best = first;
    for (uint32_t child = first + 1; child < end; child++)
        if (heap[child].deadline < heap[best].deadline)
            best = child;
    return best;
}

static inline void sift_down(uint32_t place, struct node node)
{
    for (;;) {
        uint64_t first = (uint64_t)place * HEAP_WAYS + 1;
        if (first >= heap_count)
            break;
        uint32_t child = earliest_child((uint32_t)first);
        if (heap[child].deadline >= node.deadline)
            break;
        put(place, heap[child]);
        place = child;
    }
    put(place, node);
}

/* Puts a node into a place that was empty or held another node. From there it may have to move up or down. */
static inline void settle_at(uint32_t place, struct node node)
{
    if (place > 0 && heap[(place - 1) / HEAP_WAYS].deadline > node.deadline)
        sift_up(place, node);
    else
        sift_down(place, node);
}

static ENGINE_CALL void engine_add(struct object *object, uint64_t deadline)
{
    object->timer.deadline = deadline;
    sift_up(heap_count++, (struct node){deadline, object});
}

static ENGINE_CALL void engine_cancel(struct object *object)
{
    uint32_t place = object->timer.place;
    if (place == IDLE)
        return;
    object->timer.place = IDLE;
    struct node last = heap[--heap_count];
    if (place < heap_count)
        settle_at(place, last);
}

static ENGINE_CALL void engine_move(struct object *object, uint64_t deadline)
{
    if (object->timer.place == IDLE) {
        engine_add(object, deadline);
        return;
    }
    object->timer.deadline = deadline;
    settle_at(object->timer.place, (struct node){deadline, object});
}

static ENGINE_CALL struct object *take_due(uint64_t tick)
{
    if (heap_count == 0 || heap[0].deadline > tick)
        return NULL;
    struct object *object = heap[0].object;
    engine_cancel(object);
    return object;
}

static inline void engine_advance(uint64_t tick)
{
    struct object *object;
    while ((object = take_due(tick)) != NULL)
        object->fire(object);
}

static ENGINE_CALL uint64_t engine_next(void)
{
    return heap_count > 0 ? heap[0].deadline : UINT64_MAX;
}

#include "../workloads.inc.h"
