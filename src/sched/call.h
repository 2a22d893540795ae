/* SPDX-License-Identifier: MIT
 *
 * One call of a callback.
 */
#ifndef TW_SCHED_CALL_H
#define TW_SCHED_CALL_H

#include "internal.h"

/* True inside a callback of this shard, on this thread: of the task with that id, or of any when id is 0. The
 * shard's lock is held. */
bool tw__sched_inside_task(const struct tw__sched_shard *shard, uint64_t id);
/* True inside a callback of this scheduler, on this thread. No lock is held. */
bool tw__sched_inside(const struct tw_sched *sched);

/* A call of the scheduler that may last, as it waits or hands tasks over, has begun, or has ended:
 * tw_sched_free() must meet none, but for those made in callbacks, which it waits for. They are counted with
 * TW_DEBUG. No lock is held. */
#if TW_DEBUG > 0
void tw__sched_guest_comes(struct tw_sched *sched);
void tw__sched_guest_goes(struct tw_sched *sched);
#else
static inline void tw__sched_guest_comes(struct tw_sched *sched)
{
    (void)sched;
}
static inline void tw__sched_guest_goes(struct tw_sched *sched)
{
    (void)sched;
}
#endif

/* Begins the call of a READY task, unless its policy puts that off: then the task is filed for later. The
 * shard's lock is held. Returns whether the call has begun. */
bool tw__sched_call_try_begin(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t now_ns,
                              struct tw__sched_call *call);

/* Makes a call that has begun, and ends it; the shard's lock is let go of meanwhile. Returns the time at its
 * end; *ready tells whether the task is in the ready list again. */
uint64_t tw__sched_call_make(struct tw__sched_shard *shard, struct tw__sched_call *call, bool *ready);

#endif
