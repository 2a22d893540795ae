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

const char *tw__redis_check_places(const struct tw__redis_schedules *schedules);
const char *tw__redis_check_sums(const struct tw__redis_schedules *schedules);
/* Checks the routes of one schedule. Requires: no chunk is being read into the schedule, and the schedule has
 * not been buried. */
const char *tw__redis_check_routes(const struct tw__redis_schedule *schedule);
/* Checks places, sums, all routes and all tables. Requires: no chunk is being read. */
const char *tw__redis_check_all(struct tw__redis_schedules *schedules);

/* With TW_DEBUG 2, each change is checked at once, as long as there are few tasks. */
enum { TW__REDIS_CHECK_TASKS = 1000 };
static inline void tw__redis_check_changed(const struct tw__redis_schedules *schedules,
                                           const char *(*check)(const struct tw__redis_schedules *schedules))
{
    TW_ASSERT_WALK(schedules->pending + schedules->reaping > TW__REDIS_CHECK_TASKS || check(schedules) == NULL);
    (void)schedules;
    (void)check;
}

#endif
