/* SPDX-License-Identifier: MIT
 *
 * What LATE says about a due task that is late.
 */
#ifndef TW_REDIS_LATE_H
#define TW_REDIS_LATE_H

#include "call.h"

/* LATE DROP: skips the periods that are too late. Returns whether it skipped any; the task is then done.
 * Example: EVERY 1000 and LATE DROP 500, due at 0, and now it is 2600. The periods 0, 1000 and 2000 are
 * skipped. */
bool tw__redis_late_drop(struct tw__redis_delivery *delivery);

/* LATE COALESCE: only the latest of the missed periods is delivered. Returns how many missed periods come
 * before it. */
uint64_t tw__redis_late_missed(const struct tw__redis_delivery *delivery);

/* Ends a delivery: the task leaves, or is filed for its next time. Requires: the task is filed nowhere. */
void tw__redis_late_done(struct tw__redis_delivery *delivery);

#endif
