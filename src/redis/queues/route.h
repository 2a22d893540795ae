/* SPDX-License-Identifier: MIT
 *
 * Routes: the name of a target and its options, stored once for all tasks that share both; and what the options
 * make of a task that is late.
 */
#ifndef TW_REDIS_ROUTE_H
#define TW_REDIS_ROUTE_H

#include <task/periods.h>

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

/* Decides about the turn of a task whose time has come, to be taken or delivered: what the route's policy for
 * missed periods and its limit of lateness make of the periods that have passed (task/periods.h).
 *
 * A call that has begun goes on with its due time and its periods, however late it is: a worker has had the
 * task, or its target has refused it. The tries of a task that was held behind a refused one are not its own,
 * and begin nothing. If the clock was set back since the task became ready, it counts as standing at that time.
 * Requires: the task is neither leased nor dead. */
struct tw__task_turn tw__redis_turn(const struct tw__redis_queues *queues, const struct tw__redis_task *task,
                                    uint64_t now_ms);

#endif
