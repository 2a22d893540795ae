/* SPDX-License-Identifier: MIT
 *
 * What MAXLATE and MISSED say about a task with a target that is late. Of a task for workers TW.TAKE decides.
 */
#ifndef TW_REDIS_LATE_H
#define TW_REDIS_LATE_H

#include "call.h"

/* Passes over the periods that are too late, or that `skip` leaves out. Returns whether there were any; the
 * task has then left, or is filed for its next period. Otherwise sets `missed_periods` of the delivery. A task
 * that its target has refused itself is never too late, and its `missed_periods` stays.
 * Example: EVERY 1000 and MAXLATE 500, due at 0, and now it is 2600. The periods 0, 1000 and 2000 are
 * dropped. */
bool tw__redis_late_passes(struct tw__redis_delivery *delivery);

/* The target has refused the task: its call has begun, and keeps `missed_periods` of the delivery. The first
 * refusal is logged, so that a restart does not make the call anew, and each further one is not. The block of
 * the task may be another one afterwards. Requires: the task is filed nowhere. */
void tw__redis_late_refused(struct tw__redis_delivery *delivery);

/* Ends a delivery: the task leaves, or is filed for its next time. Requires: the task is filed nowhere. */
void tw__redis_late_done(struct tw__redis_delivery *delivery);

#endif
