/* SPDX-License-Identifier: MIT
 *
 * Routes: the target's name and options, stored once for all tasks that share them.
 */
#ifndef TW_REDIS_ROUTE_H
#define TW_REDIS_ROUTE_H

#include "state.h"

/* Tells a route's key to the table of routes. */
void tw__route_key(const void *entry, const char **bytes, size_t *size);

struct tw__plan tw__route_plan(const struct tw__route *route);

/* The route of a plan, made if need be. It stays while it has tasks, is kept, or is the one that was asked for
 * last. */
struct tw__route *tw__route_for(struct tw__schedule *schedule, const struct tw__plan *plan);
/* Keeps a route; and lets go of it again: then it is freed if nobody wants it. Each task keeps its route. */
void tw__route_keep(struct tw__route *route);
void tw__route_release(struct tw__route *route);
/* How many have tasks. */
uint64_t tw__route_count(const struct tw__schedule *schedule);
/* Frees all routes. Requires: the schedule has no tasks. */
void tw__route_free_all(struct tw__schedule *schedule);

#endif
