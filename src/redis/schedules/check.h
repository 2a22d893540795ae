/* SPDX-License-Identifier: MIT
 *
 * Checkers of the named invariants: of places (P, head of place.c), of sums (C, head of sums.c), of routes (R,
 * head of route.c), of tables (T, head of table.c). Each returns NULL, or which invariant does not hold.
 */
#ifndef TW_REDIS_CHECK_H
#define TW_REDIS_CHECK_H

#include <base/assert.h>

#include "state.h"

const char *tw__redis_check_places(const struct tw__redis_schedules *schedules);
const char *tw__redis_check_sums(const struct tw__redis_schedules *schedules);
/* The routes of one schedule. Requires: no chunk is being read into it, and it has not been buried. */
const char *tw__redis_check_routes(const struct tw__redis_schedule *schedule);
/* All of these, and all tables. Requires: no chunk is being read. */
const char *tw__redis_check_all(struct tw__redis_schedules *schedules);

/* What is changed is checked at once with TW_DEBUG 2, as long as there are few tasks. */
enum { TW__REDIS_CHECK_TASKS = 1000 };
static inline void tw__redis_check_changed(const struct tw__redis_schedules *schedules,
                                           const char *(*check)(const struct tw__redis_schedules *schedules))
{
    TW_ASSERT_WALK(schedules->pending + schedules->reaping > TW__REDIS_CHECK_TASKS || check(schedules) == NULL);
    (void)schedules;
    (void)check;
}

#endif
