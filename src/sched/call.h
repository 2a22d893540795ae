/* SPDX-License-Identifier: MIT
 *
 * One call of a callback.
 */
#ifndef TW_SCHED_CALL_H
#define TW_SCHED_CALL_H

#include "internal.h"

/* Whether this thread is inside the callback of the task with this id, or inside any callback of the shard if
 * id is 0. The caller holds the shard's lock. */
bool tw__sched_inside_task(const struct tw__sched_shard *shard, uint64_t id);
/* Whether this thread is inside a callback of this scheduler. The caller holds no lock. */
bool tw__sched_inside(const struct tw_sched *sched);

/* The call of the task with this id, or NULL if it has no call under way. The caller holds the shard's lock. */
struct tw__sched_call *tw__sched_call_of(const struct tw__sched_shard *shard, uint64_t id);

/* A guest is a call that may take long, because it waits or hands tasks over, and was not made in a callback.
 * With TW_DEBUG guests are counted as they begin and end, and tw_sched_free() asserts that none is under way.
 * It does wait for such calls made in callbacks. The caller holds no lock. */
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

/* Begins the call of a READY task. If the task's policy puts the call off, files the task for later instead.
 * The caller holds the shard's lock. Returns whether the call has begun. */
bool tw__sched_call_try_begin(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t now_ns,
                              struct tw__sched_call *call);

/* Makes a call that has begun, and ends it. The caller holds the shard's lock, which is released during the
 * call. Returns the time at which the callback returned. *ready receives whether the task is in the ready
 * list again. */
uint64_t tw__sched_call_make(struct tw__sched_shard *shard, struct tw__sched_call *call, bool *ready);

#endif
