/* SPDX-License-Identifier: MIT
 *
 * The threads of a scheduler.
 */
#ifndef TW_SCHED_RUN_H
#define TW_SCHED_RUN_H

#include "internal.h"

/* Starts the threads, once. Returns: 0; TW_ESYSTEM. */
int tw__sched_threads_start(struct tw_sched *sched);
void tw__sched_threads_end(struct tw_sched *sched);

/* Every add calls this first: it starts the threads, unless they run already.
 * Returns: as tw__sched_threads_start(). */
static inline int tw__sched_ready(struct tw_sched *sched)
{
    return atomic_load_explicit(&sched->started, memory_order_acquire) ? 0 : tw__sched_threads_start(sched);
}

#endif
