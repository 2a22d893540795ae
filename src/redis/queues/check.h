/* SPDX-License-Identifier: MIT
 *
 * Checkers of the named invariants. Each returns NULL, or the invariant that does not hold.
 *   P  places, head of place.c
 *   C  sums, head of sums.c
 *   R  routes, head of route.c
 *   T  tables, head of table.c
 */
#ifndef TW_REDIS_CHECK_H
#define TW_REDIS_CHECK_H

#include <base/assert.h>

#include "state.h"

const char *tw__redis_check_places(const struct tw__redis_queues *queues);
const char *tw__redis_check_sums(const struct tw__redis_queues *queues);
/* Checks the routes of one queue. Requires: no chunk is being read into the queue, and the queue has
 * not been handed to the reaper. */
const char *tw__redis_check_routes(const struct tw__redis_queue *queue);
/* Checks places, sums, all routes and all tables. Requires: no chunk is being read. */
const char *tw__redis_check_all(struct tw__redis_queues *queues);

/* With TW_DEBUG 2, each change is checked at once, as long as there are few tasks. */
enum { TW__REDIS_CHECK_TASKS = 1000 };
static inline void tw__redis_check_changed(const struct tw__redis_queues *queues,
                                           const char *(*check)(const struct tw__redis_queues *queues))
{
    TW_ASSERT_WALK(queues->tasks + queues->reaping > TW__REDIS_CHECK_TASKS || check(queues) == NULL);
    (void)queues;
    (void)check;
}

#endif
