/* SPDX-License-Identifier: MIT
 *
 * Routes: the target's name and options, stored once for all tasks that share them.
 */
#ifndef TW_REDIS_ROUTE_H
#define TW_REDIS_ROUTE_H

#include "state.h"

/* Tells a route's key to the table of routes. */
void tw__redis_route_key(const void *entry, const char **bytes, size_t *size);

struct tw__redis_plan tw__redis_route_plan(const struct tw__redis_route *route);

/* The route of a plan, made if need be. It stays while it has tasks, is kept, or is the one that was asked for
 * last. */
struct tw__redis_route *tw__redis_route_for(struct tw__redis_schedule *schedule,
                                            const struct tw__redis_plan *plan);
/* Keeps a route; and lets go of it again: then it is freed if nobody wants it. Each task keeps its route. */
void tw__redis_route_keep(struct tw__redis_route *route);
void tw__redis_route_release(struct tw__redis_route *route);
/* How many have tasks. */
uint64_t tw__redis_route_count(const struct tw__redis_schedule *schedule);
/* Frees all routes. Requires: the schedule has no tasks. */
void tw__redis_route_free_all(struct tw__redis_schedule *schedule);

#endif
