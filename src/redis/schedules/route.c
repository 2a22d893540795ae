/* SPDX-License-Identifier: MIT
 *
 * Routes are numbered, and a task keeps the number of its route: four bytes instead of a pointer.
 *
 * Invariants
 * R1 A route stands in the list of all routes at its number, and in the table of its own schedule. The number
 *    in a task is that of a route of the task's schedule.
 * R2 `tasks` of a route is the number of its tasks, plus one while a chunk that uses the route is read, and
 *    one for each open chore that puts a task with the route (chores.c).
 * R3 A route that counts no tasks is the route that was used last.
 * R4 `longest_route` of the schedule is no less than the size of any route.
 */
#include "route.h"

#include <base/assert.h>
#include <base/list.h>
#include <string.h>

#include "check.h"
#include "place.h"
#include "sums.h"

void tw__redis_route_key(const void *entry, const char **bytes, size_t *size)
{
    const struct tw__redis_route *route = entry;
    *bytes = route->key;
    *size = route->key_size;
}

/* ---- plans ----------------------------------------------------------------------------------------------- */

enum {
    ROUTE_FIXED = 2 + 2 * sizeof(uint64_t), /* kind, late, maxlen, late_ms: before the target */
    RETRY_SIZE = 2 * sizeof(uint64_t) + 3 * sizeof(uint32_t) /* of tasks for workers, instead of a target */
};

static size_t plan_size(const struct tw__redis_plan *plan)
{
    return ROUTE_FIXED + (plan->kind == TW__REDIS_WORKERS ? (size_t)RETRY_SIZE : plan->target.size);
}

static void pack_retry(char *at, const struct tw__redis_retry *retry)
{
    memcpy(at, &retry->first_ms, sizeof retry->first_ms);
    memcpy(at + 8, &retry->max_ms, sizeof retry->max_ms);
    memcpy(at + 16, &retry->tries, sizeof retry->tries);
    memcpy(at + 20, &retry->factor, sizeof retry->factor);
    memcpy(at + 24, &retry->jitter, sizeof retry->jitter);
}

static struct tw__redis_retry unpack_retry(const char *at)
{
    struct tw__redis_retry retry;
    memcpy(&retry.first_ms, at, sizeof retry.first_ms);
    memcpy(&retry.max_ms, at + 8, sizeof retry.max_ms);
    memcpy(&retry.tries, at + 16, sizeof retry.tries);
    memcpy(&retry.factor, at + 20, sizeof retry.factor);
    memcpy(&retry.jitter, at + 24, sizeof retry.jitter);
    return retry;
}

static void pack_plan(char *key, const struct tw__redis_plan *plan)
{
    key[0] = (char)plan->kind;
    key[1] = (char)plan->late;
    memcpy(key + 2, &plan->maxlen, sizeof plan->maxlen);
    memcpy(key + 2 + sizeof plan->maxlen, &plan->late_ms, sizeof plan->late_ms);
    if (plan->kind == TW__REDIS_WORKERS)
        pack_retry(key + ROUTE_FIXED, &plan->retry);
    else if (plan->target.size > 0)
        memcpy(key + ROUTE_FIXED, plan->target.at, plan->target.size);
}

struct tw__redis_plan tw__redis_route_plan(const struct tw__redis_route *route)
{
    struct tw__redis_plan plan = {.kind = (uint8_t)route->key[0], .late = (uint8_t)route->key[1]};
    if (plan.kind == TW__REDIS_WORKERS)
        plan.retry = unpack_retry(route->key + ROUTE_FIXED);
    else
        plan.target = (struct tw__redis_bytes){route->key + ROUTE_FIXED, route->key_size - ROUTE_FIXED};
    memcpy(&plan.maxlen, route->key + 2, sizeof plan.maxlen);
    memcpy(&plan.late_ms, route->key + 2 + sizeof plan.maxlen, sizeof plan.late_ms);
    return plan;
}

static bool retries_are_equal(const struct tw__redis_retry *a, const struct tw__redis_retry *b)
{
    return a->first_ms == b->first_ms && a->max_ms == b->max_ms && a->tries == b->tries &&
           a->factor == b->factor && a->jitter == b->jitter;
}

static bool plan_is_of(const struct tw__redis_plan *plan, const struct tw__redis_route *route)
{
    struct tw__redis_plan other = tw__redis_route_plan(route);
    return plan->kind == other.kind && plan->late == other.late && plan->maxlen == other.maxlen &&
           plan->late_ms == other.late_ms && tw__redis_bytes_equal(plan->target, other.target) &&
           (plan->kind != TW__REDIS_WORKERS || retries_are_equal(&plan->retry, &other.retry));
}

/* ---- numbers --------------------------------------------------------------------------------------------- */

static const uint32_t NO_INDEX = UINT32_MAX;

/* Returns an unused number for a route. */
static uint32_t new_index(struct tw__redis_schedules *schedules)
{
    if (schedules->routes > 0 && schedules->route_free != NO_INDEX) {
        uint32_t index = schedules->route_free;
        schedules->route_free = (uint32_t)((uintptr_t)schedules->route[index] >> 1);
        return index;
    }
    if (schedules->routes == schedules->route_capacity) {
        schedules->route_capacity = schedules->route_capacity == 0 ? 16 : schedules->route_capacity * 2;
        schedules->route = schedules->memory.realloc(schedules->route, schedules->route_capacity *
                                                                           sizeof(struct tw__redis_route *));
    }
    schedules->route_free = NO_INDEX;
    TW_ASSERT(schedules->routes < TW__REDIS_ROUTES_MAX); /* so many routes take more than 80 GB */
    return schedules->routes++;
}

static void free_index(struct tw__redis_schedules *schedules, uint32_t index)
{
    schedules->route[index] = (struct tw__redis_route *)((uintptr_t)schedules->route_free << 1 | 1);
    schedules->route_free = index;
}

/* ---- making and freeing ---------------------------------------------------------------------------------- */

static void free_route(struct tw__redis_route *route)
{
    struct tw__redis_schedule *schedule = route->schedule;
    struct tw__redis_schedules *schedules = schedule->schedules;
    tw__redis_sums_block(schedule, route, -1);
    if (schedule->last == route)
        schedule->last = NULL;
    tw__redis_place_rest(route);
    free_index(schedules, route->index);
    if (route->target != NULL)
        schedules->forget(route->target);
    schedules->memory.free(route);
}

/* Frees a route that has no tasks. The route that was used last stays, as the next task may want it. */
static void free_if_unused(struct tw__redis_route *route)
{
    struct tw__redis_schedule *schedule = route->schedule;
    if (route->tasks > 0 || route == schedule->last)
        return;
    size_t before = tw__redis_sums_table_bytes(schedule);
    tw__redis_table_remove(&schedule->routes,
                           tw__redis_table_hash(&schedule->schedules->of_routes, route->key, route->key_size),
                           route);
    tw__redis_sums_tables(schedule, before);
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

static struct tw__redis_route *make_route(struct tw__redis_schedule *schedule, const char *key, size_t size,
                                          uint64_t hash)
{
    struct tw__redis_schedules *schedules = schedule->schedules;
    struct tw__redis_route *route = schedules->memory.alloc(sizeof *route + size);
    memset(route, 0, sizeof *route);
    route->schedule = schedule;
    tw__list_init(&route->line);
    tw_timer_init(&route->retry);
    route->index = new_index(schedules);
    route->key_size = (uint32_t)size;
    memcpy(route->key, key, size);
    schedules->route[route->index] = route;
    size_t before = tw__redis_sums_table_bytes(schedule);
    tw__redis_table_add(&schedule->routes, hash, route);
    if (route->key_size > schedule->longest_route)
        schedule->longest_route = route->key_size;
    tw__redis_sums_tables(schedule, before);
    tw__redis_sums_block(schedule, route, 1);
    return route;
}

struct tw__redis_route *tw__redis_route_for(struct tw__redis_schedule *schedule,
                                            const struct tw__redis_plan *plan)
{
    if (schedule->last != NULL && plan_is_of(plan, schedule->last))
        return schedule->last;
    const struct tw__redis_memory *memory = &schedule->schedules->memory;
    size_t size = plan_size(plan);
    char *key = memory->alloc(size);
    pack_plan(key, plan);
    uint64_t hash = tw__redis_table_hash(&schedule->schedules->of_routes, key, size);
    struct tw__redis_route *route = tw__redis_table_find(&schedule->routes, hash, key, size);
    if (route == NULL)
        route = make_route(schedule, key, size, hash);
    memory->free(key);
    struct tw__redis_route *before = schedule->last;
    schedule->last = route;
    if (before != NULL)
        free_if_unused(before);
    tw__redis_check_changed(schedule->schedules, tw__redis_check_sums);
    return route;
}

uint64_t tw__redis_route_count(const struct tw__redis_schedule *schedule)
{
    return tw__redis_table_count(&schedule->routes) - (schedule->last != NULL && schedule->last->tasks == 0);
}

void tw__redis_route_free_all(struct tw__redis_schedule *schedule)
{
    struct tw__redis_route *route;
    TW_ASSERT(tw__redis_table_count(&schedule->tasks) == 0);
    while ((route = tw__redis_table_pop(&schedule->routes)) != NULL)
        free_route(route);
}
