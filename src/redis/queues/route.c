/* SPDX-License-Identifier: MIT
 *
 * Routes are numbered, and a task keeps the number of its route: four bytes instead of a pointer.
 *
 * Invariants
 * R1 A route stands in the list of all routes at its number, and in the table of its own queue. The number
 *    in a task is that of a route of the task's queue.
 * R2 `tasks` of a route is the number of its tasks, plus one while a chunk that uses the route is read.
 * R3 A route that counts no tasks is the route that was used last.
 * R4 `longest_route` of the queue is no less than the size of any route.
 */
#include "route.h"

#include <base/assert.h>
#include <base/list.h>
#include <string.h>

#include "check.h"
#include "sums.h"

void tw__redis_route_key(const void *entry, const char **bytes, size_t *size)
{
    const struct tw__redis_route *route = entry;
    *bytes = route->key;
    *size = route->key_size;
}

/* ---- plans ----------------------------------------------------------------------------------------------- */

/* The key of a route is its plan as these bytes, and then the name of the target. */
struct packed {
    uint8_t kind, missed;
    uint64_t maxlen, max_late_ms, first_ms, max_ms;
    uint32_t tries, factor_percent, jitter;
} __attribute__((packed));

static struct packed pack(const struct tw__redis_plan *plan)
{
    const struct tw__redis_retry *retry = &plan->retry;
    return (struct packed){.kind = plan->kind,
                           .missed = plan->missed,
                           .maxlen = plan->maxlen,
                           .max_late_ms = plan->max_late_ms,
                           .first_ms = retry->first_ms,
                           .max_ms = retry->max_ms,
                           .tries = retry->tries,
                           .factor_percent = retry->factor_percent,
                           .jitter = retry->jitter};
}

static struct tw__redis_bytes target_of(const struct tw__redis_route *route)
{
    size_t size = sizeof(struct packed);
    return (struct tw__redis_bytes){route->key + size, route->key_size - size};
}

struct tw__redis_plan tw__redis_route_plan(const struct tw__redis_route *route)
{
    struct packed packed;
    memcpy(&packed, route->key, sizeof packed);
    return (struct tw__redis_plan){
        .kind = packed.kind,
        .missed = packed.missed,
        .maxlen = packed.maxlen,
        .max_late_ms = packed.max_late_ms,
        .retry = {packed.first_ms, packed.max_ms, packed.tries, packed.factor_percent, packed.jitter},
        .target = target_of(route)};
}

void tw__redis_route_options(const struct tw__redis_route *route, struct tw__task *numbers)
{
    struct packed packed;
    memcpy(&packed, route->key, sizeof packed);
    numbers->has_target = packed.kind != TW__REDIS_WORKERS;
    numbers->missed = (enum tw_missed)packed.missed;
    numbers->max_late_ms = packed.max_late_ms;
}

bool tw__redis_route_allows(const struct tw__redis_route *route, const struct tw__redis_attempt *attempt)
{
    if (attempt == NULL || tw__redis_route_plan(route).kind == TW__REDIS_WORKERS)
        return true;
    if (attempt->stage == TW__TASK_FILED)
        return attempt->number == 0 && attempt->token == 0;
    return attempt->stage != TW__TASK_TAKEN;
}

/* ---- numbers --------------------------------------------------------------------------------------------- */

static const uint32_t NO_INDEX = UINT32_MAX;

/* Returns an unused number for a route. */
static uint32_t new_index(struct tw__redis_queues *queues)
{
    if (queues->routes > 0 && queues->route_free != NO_INDEX) {
        uint32_t index = queues->route_free;
        queues->route_free = (uint32_t)((uintptr_t)queues->route[index] >> 1);
        return index;
    }
    if (queues->routes == queues->route_capacity) {
        queues->route_capacity = queues->route_capacity == 0 ? 16 : queues->route_capacity * 2;
        queues->route =
            queues->memory.realloc(queues->route, queues->route_capacity * sizeof(struct tw__redis_route *));
    }
    queues->route_free = NO_INDEX;
    TW_ASSERT(queues->routes < TW__REDIS_ROUTES_MAX); /* so many routes take more than 80 GB */
    return queues->routes++;
}

static void free_index(struct tw__redis_queues *queues, uint32_t index)
{
    queues->route[index] = (struct tw__redis_route *)((uintptr_t)queues->route_free << 1 | 1);
    queues->route_free = index;
}

/* ---- making and freeing ---------------------------------------------------------------------------------- */

static void free_route(struct tw__redis_route *route)
{
    struct tw__redis_queue *queue = route->queue;
    struct tw__redis_queues *queues = queue->queues;
    tw__redis_sums_block(queue, route, -1);
    if (queue->last == route)
        queue->last = NULL;
    TW_ASSERT(!tw_timer_pending(&route->retry) && !tw__link_listed(&route->ready)); /* P3: it holds no task */
    free_index(queues, route->index);
    if (route->target != NULL)
        queues->forget(route->target);
    queues->memory.free(route);
}

/* Frees a route that has no tasks. The route that was used last stays, as the next task may want it. */
static void free_if_unused(struct tw__redis_route *route)
{
    struct tw__redis_queue *queue = route->queue;
    if (route->tasks > 0 || route == queue->last)
        return;
    size_t before = tw__redis_sums_table_bytes(queue);
    tw__redis_table_remove(&queue->routes,
                           tw__redis_table_hash(&queue->queues->of_routes, route->key, route->key_size), route);
    tw__redis_sums_tables(queue, before);
    free_route(route);
}

void tw__redis_route_keep(struct tw__redis_route *route)
{
    route->tasks++;
}

void tw__redis_route_release(struct tw__redis_route *route)
{
    TW_ASSERT(route->tasks > 0);
    route->tasks--;
    free_if_unused(route);
}

static struct tw__redis_route *make_route(struct tw__redis_queue *queue, const char *key, size_t size,
                                          uint64_t hash)
{
    struct tw__redis_queues *queues = queue->queues;
    struct tw__redis_route *route = queues->memory.alloc(sizeof *route + size);
    memset(route, 0, sizeof *route);
    route->queue = queue;
    tw__list_init(&route->line);
    tw_timer_init(&route->retry);
    route->index = new_index(queues);
    route->key_size = (uint32_t)size;
    memcpy(route->key, key, size);
    queues->route[route->index] = route;
    size_t before = tw__redis_sums_table_bytes(queue);
    tw__redis_table_add(&queue->routes, hash, route);
    if (route->key_size > queue->longest_route)
        queue->longest_route = route->key_size;
    tw__redis_sums_tables(queue, before);
    tw__redis_sums_block(queue, route, 1);
    return route;
}

struct tw__redis_route *tw__redis_route_for(struct tw__redis_queue *queue, const struct tw__redis_plan *plan)
{
    struct packed packed = pack(plan);
    if (queue->last != NULL && memcmp(queue->last->key, &packed, sizeof packed) == 0 &&
        tw__redis_bytes_equal(target_of(queue->last), plan->target))
        return queue->last;
    const struct tw__redis_memory *memory = &queue->queues->memory;
    size_t size = sizeof packed + plan->target.size;
    char *key = memory->alloc(size);
    memcpy(key, &packed, sizeof packed);
    if (plan->target.size > 0)
        memcpy(key + sizeof packed, plan->target.at, plan->target.size);
    uint64_t hash = tw__redis_table_hash(&queue->queues->of_routes, key, size);
    struct tw__redis_route *route = tw__redis_table_find(&queue->routes, hash, key, size);
    if (route == NULL)
        route = make_route(queue, key, size, hash);
    memory->free(key);
    struct tw__redis_route *before = queue->last;
    queue->last = route;
    if (before != NULL)
        free_if_unused(before);
    tw__redis_check_changed(queue->queues, tw__redis_check_sums);
    return route;
}

uint64_t tw__redis_route_count(const struct tw__redis_queue *queue)
{
    return tw__redis_table_count(&queue->routes) - (queue->last != NULL && queue->last->tasks == 0);
}

void tw__redis_route_free_all(struct tw__redis_queue *queue)
{
    struct tw__redis_route *route;
    TW_ASSERT(tw__redis_table_count(&queue->tasks) == 0);
    while ((route = tw__redis_table_pop(&queue->routes)) != NULL)
        free_route(route);
}
