/* SPDX-License-Identifier: MIT
 *
 * Serving: who runs the due tasks.
 */
#ifndef TW_SCHED_SERVE_H
#define TW_SCHED_SERVE_H

#include "internal.h"

/* Serves the first tick on which any shard has work, if that tick has begun. Otherwise only brings all wheels
 * to the present. Returns whether that tick had begun, so there may be more. The caller holds no lock. */
bool tw__sched_serve(struct tw_sched *sched);
/* Runs ready tasks until there are none. Returns whether there were any. The caller holds no lock. */
bool tw__sched_work(struct tw_sched *sched);

#endif
