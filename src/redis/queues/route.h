/* SPDX-License-Identifier: MIT
 *
 * Routes: the name of a target and its options, stored once for all tasks that share both.
 */
#ifndef TW_REDIS_ROUTE_H
#define TW_REDIS_ROUTE_H

#include "state.h"

/* Gives the key of a route to the table of routes. */
void tw__redis_route_key(const void *entry, const char **bytes, size_t *size);

struct tw__redis_plan tw__redis_route_plan(const struct tw__redis_route *route);
/* Whether a task of this route may have an attempt state, which may be NULL. Only workers have attempts. A task
 * with a target may stand behind one, wait for a later time than its due time, or be dead. */
bool tw__redis_route_allows(const struct tw__redis_route *route, const struct tw__redis_attempt *attempt);

/* Returns the route of a plan, and makes it if there is none. A route stays while it has tasks, while somebody
 * keeps it, or while it is the route that the queue was asked for last. */
struct tw__redis_route *tw__redis_route_for(struct tw__redis_queue *queue, const struct tw__redis_plan *plan);
/* Keep a route, and release it again. A release frees the route if it has no other reason to stay. Each task
 * keeps its route. */
void tw__redis_route_keep(struct tw__redis_route *route);
void tw__redis_route_release(struct tw__redis_route *route);
/* How many routes of the queue have tasks. */
uint64_t tw__redis_route_count(const struct tw__redis_queue *queue);
/* Frees all routes. Requires: the queue has no tasks. */
void tw__redis_route_free_all(struct tw__redis_queue *queue);

/* Sets the members of a task that its route knows: has_target, missed, max_late_ms. */
void tw__redis_route_options(const struct tw__redis_route *route, struct tw__task *numbers);

#endif
