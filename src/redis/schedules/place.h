/* SPDX-License-Identifier: MIT
 *
 * Where tasks wait: filing them, taking them out when they are due, holding them while their target refuses.
 * How: head of place.c.
 */
#ifndef TW_REDIS_PLACE_H
#define TW_REDIS_PLACE_H

#include "state.h"

/* Makes the wheels: that of tasks counts the wall clock's milliseconds, that of retries a monotonic clock's.
 * Returns 0 or -1: no memory. */
int tw__redis_place_init(struct tw__redis_schedules *schedules, uint64_t now_ms, uint64_t monotonic_ms);
/* Frees the wheels. */
void tw__redis_place_fini(struct tw__redis_schedules *schedules);

/* What was taken out. */
enum tw__redis_taken {
    TW__REDIS_TAKEN_NONE,
    TW__REDIS_TAKEN_TASK,
    TW__REDIS_TAKEN_PROBE, /* a task whose target had refused it: tried again, before others that are held */
    TW__REDIS_TAKEN_MORE   /* nothing, as the budget is used up */
};

/* ---- filing ---------------------------------------------------------------------------------------------- */

/* Files a task. Requires: it is filed nowhere. */
void tw__redis_place_file(struct tw__redis_schedules *schedules, struct tw__redis_task *task, uint64_t due_ms,
                          uint64_t now_ms);
/* Takes a task out of where it is filed, if anywhere. */
void tw__redis_place_unfile(struct tw__redis_schedules *schedules, struct tw__redis_task *task);
/* Fetches what lies beside a task that will be unfiled or filed elsewhere. */
void tw__redis_place_prefetch(const struct tw__redis_task *task);
/* The block of a task has been moved: its neighbours in a wheel or a queue are told. */
void tw__redis_place_moved(struct tw__redis_task *task);
/* Gives a task another time. */
void tw__redis_place_refile(struct tw__redis_schedules *schedules, struct tw__redis_task *task, uint64_t due_ms,
                            uint64_t now_ms);
/* Puts a task that was taken out into the queue of overdue ones. Requires: it is filed nowhere. */
void tw__redis_place_file_overdue(struct tw__redis_schedules *schedules, struct tw__redis_task *task);
/* Puts a task that was taken out back to where it was taken from: a probe to its route. Requires: it is filed
 * nowhere. */
void tw__redis_place_put_back(struct tw__redis_schedules *schedules, struct tw__redis_task *task,
                              enum tw__redis_taken taken);

/* ---- targets that refuse --------------------------------------------------------------------------------- */

/* Whether tasks for the same target are held, so that this one has to wait behind them, unless it is their
 * probe. */
bool tw__redis_place_is_blocked(const struct tw__redis_schedules *schedules, const struct tw__redis_task *task);
/* Puts a task at the end of its route's queue. Requires: it is filed nowhere, the queue is not empty. */
void tw__redis_place_hold(struct tw__redis_schedules *schedules, struct tw__redis_task *task);
/* Puts it before all in its route's queue, which then waits until `retry_ms` on the monotonic clock. Requires:
 * it is filed nowhere. */
void tw__redis_place_hold_first(struct tw__redis_schedules *schedules, struct tw__redis_task *task,
                                uint64_t retry_ms);
/* A route's wait is over: the first of its queue is what tw__redis_place_take() gives next, and then the
 * others. Requires: the queue is not empty. */
void tw__redis_place_make_ready(struct tw__redis_route *route);
/* A route's queue is empty: it waits for nothing. */
void tw__redis_place_rest(struct tw__redis_route *route);
/* Tries to deliver a task that failed. A wait for the target counts for all that are held by it. */
uint32_t tw__redis_place_tries(const struct tw__redis_schedules *schedules, const struct tw__redis_task *task);

/* ---- taking out ------------------------------------------------------------------------------------------ */

/* Takes the task out that is due next at `now_ms`, of the wheel or, if `queued`, of the queues too, where
 * probes wait. Detached schedules' tasks are passed over. */
enum tw__redis_taken tw__redis_place_take(struct tw__redis_schedules *schedules, uint64_t now_ms, bool queued,
                                          uint32_t *budget, struct tw__redis_task **task);
/* Whether tasks wait that could be delivered now. */
bool tw__redis_place_any_waiting(const struct tw__redis_schedules *schedules);
/* When tasks come due next, or the wheel has work of its own; TW_NEVER if it is empty; overdue tasks apart. */
uint64_t tw__redis_place_next_work(const struct tw__redis_schedules *schedules);
/* Makes one queue of overdue and past tasks, in the order of their times. */
void tw__redis_place_sort_overdue(struct tw__redis_schedules *schedules);
/* Gets ready for a clock that was set back to `now_ms`. Requires: the wheel has passed that. */
void tw__redis_place_clock_back(struct tw__redis_schedules *schedules, uint64_t now_ms);

#endif
