/* SPDX-License-Identifier: MIT
 *
 * The places where tasks wait: filing tasks, taking them out when they are due, and holding them while their
 * target refuses. How it works: head of place.c.
 */
#ifndef TW_REDIS_PLACE_H
#define TW_REDIS_PLACE_H

#include <task/limits.h>

#include "state.h"

/* Makes the wheels. They count milliseconds of the wall clock, but the wheel of retries those of a monotonic
 * clock. Returns 0, or -1 without memory. */
int tw__redis_place_init(struct tw__redis_queues *queues, uint64_t now_ms, uint64_t monotonic_ms);
/* Frees the wheels. */
void tw__redis_place_fini(struct tw__redis_queues *queues);

/* A wheel may stand so many milliseconds ahead of the clock without a second wheel. */
enum { TW__REDIS_BACK_MS = 10 };

/* The end of a lease from a file or from another server may be so much later than its length allows. The clocks
 * of two servers differ a little, and the end shall be the same on both. */
enum { TW__REDIS_LEASE_MORE_MS = 1000 };

/* A walk of tw__redis_place_offer_again() passes at most so many ready tasks: the server goes on soon. */
enum { TW__REDIS_PASSED_MAX = TW__TASK_MANY };

/* The result of tw__redis_place_take(). */
enum tw__redis_taken {
    TW__REDIS_TAKEN_NONE,
    TW__REDIS_TAKEN_TASK,
    TW__REDIS_TAKEN_PROBE, /* a held task, tried again before the other tasks that its route holds */
    TW__REDIS_TAKEN_MORE   /* no task, as the budget is used up */
};

/* Where tw__redis_place_take() looks. */
enum tw__redis_source {
    TW__REDIS_FROM_WHEELS,
    TW__REDIS_FROM_LATE, /* the late and the past tasks, then the wheels */
    TW__REDIS_FROM_ALL   /* routes whose wait is over, then the same, with the tasks that were put aside */
};

/* ---- filing ---------------------------------------------------------------------------------------------- */

/* Files a task: a dead one in the line of its queue's dead tasks, any other one for its time. `now_ms` is
 * the present time: a task whose time has passed then comes in the order of filing. A lease ends no later than
 * its length allows, and TW__REDIS_LEASE_MORE_MS. Requires: the task is filed nowhere. */
void tw__redis_place_file(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t due_ms,
                          uint64_t now_ms);
/* Takes a task out of the wheel or line in which it is filed, if any. A delivery of the task is over then. */
void tw__redis_place_unfile(struct tw__redis_queues *queues, struct tw__redis_task *task);
/* Prefetches the neighbours of a task that will soon be unfiled or refiled. */
void tw__redis_place_prefetch(const struct tw__redis_task *task);
/* Corrects what points at a task from its wheel or line after its block has been moved. */
void tw__redis_place_moved(struct tw__redis_queue *queue, const struct tw__redis_task *old,
                           struct tw__redis_task *task);
/* Gives a task another due time. */
void tw__redis_place_refile(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t due_ms,
                            uint64_t now_ms);
/* Puts a task that was taken out into the line of late tasks. Requires: the task is filed nowhere. */
void tw__redis_place_file_late(struct tw__redis_queues *queues, struct tw__redis_task *task);
/* Puts a task with a target aside, because it needs memory and tasks for workers do not. It keeps its place in
 * the order of tasks: tw__redis_place_take() from all tasks finds it before the late ones. Requires: the
 * task was taken from the late tasks, and is filed nowhere. */
void tw__redis_place_put_aside(struct tw__redis_queues *queues, struct tw__redis_task *task);
/* Puts back a task that was taken out: a probe first in the line of its route, any other task first in the
 * line of late tasks. Requires: the task is filed nowhere. */
void tw__redis_place_put_back(struct tw__redis_queues *queues, struct tw__redis_task *task,
                              enum tw__redis_taken taken);

/* ---- targets that refuse --------------------------------------------------------------------------------- */

/* Whether the task's route holds tasks already. Then this task has to wait behind them, unless it is their
 * probe. */
bool tw__redis_place_is_blocked(const struct tw__redis_queues *queues, const struct tw__redis_task *task);
/* Puts a task at the end of its route's line. Requires: the task is filed nowhere, and is not leased; the line
 * is not empty. */
void tw__redis_place_hold(struct tw__redis_queues *queues, struct tw__redis_task *task);
/* Puts a task at the head of its route's line. The line then waits until `retry_ms` on the monotonic clock,
 * which is `next_ms` on the wall clock. Requires: the task is filed nowhere and is not leased. */
void tw__redis_place_hold_first(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t retry_ms,
                                uint64_t next_ms);
/* Holds a task that was filed just now, as a file or another server tells it, if its target has refused it or a
 * task before it: in the line of its route, which waits until the next try of the target, as
 * tw__redis_place_next_after() says. Nothing changes if the time of the task is yet to come, or if the wait is
 * over. Tasks come in the order of their due times. */
void tw__redis_place_hold_again(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t now_ms,
                                uint64_t monotonic_ms);
/* A held task, and how long its route waits. */
struct tw__redis_wait {
    uint64_t since_ms;    /* as in the line of the task */
    uint64_t retry_ms;    /* of the route, on the monotonic clock; 0: its wait is over */
    uint64_t next_try_ms; /* the same by the steady clock */
    uint64_t wait_ms;     /* the last wait of the route */
};
/* Takes a held task out of the line of its route. */
struct tw__redis_wait tw__redis_place_let_go(struct tw__redis_queues *queues, struct tw__redis_task *task);
/* Puts such a task, which has another route by now, at the end of the line of this route. If no task was in
 * this line, it waits as the other route does. Requires: the task is filed nowhere. */
void tw__redis_place_hold_on(struct tw__redis_queues *queues, struct tw__redis_task *task,
                             const struct tw__redis_wait *wait);
/* The next try of a route's target, by the wall clock; a time that has passed if its wait is over. */
uint64_t tw__redis_place_next_try(const struct tw__redis_route *route);
/* Notes the last wait of a route, as a file or another server tells it. Nothing changes if its line has tasks
 * already. */
void tw__redis_place_set_wait(struct tw__redis_route *route, uint64_t wait_ms, uint64_t next_ms);
/* The next try of the target of a task that it has refused, before the task was filed here; `now_ms` if the
 * wait is over, or if a lease of the task has ended, as it then waits for no target. As another clock may have
 * set this time, the task waits no longer than the last wait can have been, with its jitter. Requires: the
 * task is filed nowhere. */
uint64_t tw__redis_place_next_after(const struct tw__redis_queues *queues, const struct tw__redis_task *task,
                                    uint64_t now_ms);
/* Ends the wait of a route: tw__redis_place_take() now takes the first task of its line, and then the other
 * tasks of this line. Requires: the line is not empty. */
void tw__redis_place_make_ready(struct tw__redis_route *route);
/* The same at once, so that its tasks are ready at `now_ms`. */
void tw__redis_place_try_again(struct tw__redis_route *route, uint64_t now_ms);
/* Returns how many tries to deliver a task have failed. A wait for the target counts as a try of each task
 * that the route holds. */
uint32_t tw__redis_place_tries(const struct tw__redis_queues *queues, const struct tw__redis_task *task);

/* ---- workers, pauses, dead tasks ------------------------------------------------------------------------- */

/* Whether a ready or leased task has its `order` from a file, or from before a failover. Such tasks come
 * before the others, in the order of their times. */
bool tw__redis_place_is_from_elsewhere(const struct tw__redis_queues *queues,
                                       const struct tw__redis_task *task);
/* Puts a due task at the end of its queue's line of ready tasks. Requires: the task is filed nowhere. */
void tw__redis_place_offer(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t now_ms);
/* The same for a task that a worker has given back: the task goes to the place that it had, behind the tasks
 * that became ready before it. If this place is more than TW__REDIS_PASSED_MAX tasks away from the head, and
 * from the task that was given back last, the task goes behind so many tasks. Requires: the task is filed
 * nowhere. */
void tw__redis_place_offer_again(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t now_ms);
/* Puts a due task of a paused queue at the end of the queue's line of stopped tasks. Requires: the task
 * is filed nowhere. */
void tw__redis_place_stop(struct tw__redis_queues *queues, struct tw__redis_task *task);
/* Moves the stopped tasks of a queue to the line of late tasks, in the order of due times. */
void tw__redis_place_go_on(struct tw__redis_queue *queue);
/* The first ready task, and the first dead one, the one that died first; NULL if there is none. */
struct tw__redis_task *tw__redis_place_first_ready(const struct tw__redis_queue *queue);
struct tw__redis_task *tw__redis_place_first_dead(const struct tw__redis_queue *queue);
/* The dead task after this one, or NULL. */
struct tw__redis_task *tw__redis_place_next_dead(const struct tw__redis_queue *queue,
                                                 const struct tw__redis_task *task);

/* Whether there may be a stale queue: one whose first dead task died by `died_ms`, or that has more dead
 * tasks than the limit (sums.h). The answer false is certain. */
bool tw__redis_place_any_stale(const struct tw__redis_queues *queues, uint64_t died_ms);
/* Returns the first stale queue, or NULL if there is none or the budget is used up. The caller removes dead
 * tasks of the queue, and then calls one of the next two functions. The queue may have become fit
 * meanwhile, or detached. */
struct tw__redis_queue *tw__redis_place_first_stale(struct tw__redis_queues *queues, uint64_t died_ms,
                                                    uint32_t *budget);
/* The first dead task of a stale queue may stay for now: the queue is stale no more. */
void tw__redis_place_let_stay(struct tw__redis_queue *queue);
/* The stale queue becomes the last of them, because its tasks cannot be removed now. */
void tw__redis_place_let_wait(struct tw__redis_queue *queue);

/* ---- taking out ------------------------------------------------------------------------------------------ */

/* Takes out the task that is due next at `now_ms`. Passes over the tasks of detached queues. */
enum tw__redis_taken tw__redis_place_take(struct tw__redis_queues *queues, uint64_t now_ms,
                                          enum tw__redis_source from, uint32_t *budget,
                                          struct tw__redis_task **task);
/* Moves due tasks from the wheels to the line of late tasks, although they may not be delivered. Returns
 * whether there are more. */
bool tw__redis_place_collect(struct tw__redis_queues *queues, uint64_t now_ms, uint32_t budget);
/* The time from which the task that was taken last is late: its due time. If it does not repeat, and its time
 * had passed when it was filed, it is late from its filing, until the line where it waits is sorted. */
uint64_t tw__redis_place_late_since(const struct tw__redis_queues *queues, const struct tw__redis_task *task);
/* Whether tasks wait that could be delivered now: late tasks, past tasks, or tasks of a route whose wait
 * is over. */
bool tw__redis_place_any_waiting(const struct tw__redis_queues *queues);
/* Returns the next time at which a task is due or a wheel has work of its own, or TW_NEVER if the wheels are
 * empty. Late tasks do not count. */
uint64_t tw__redis_place_next_work(const struct tw__redis_queues *queues);
/* Merges the tasks that are due into one line, sorted by due time: those of the wheels, the late and the
 * past ones. Cost: a look at each of them. */
void tw__redis_place_sort_late(struct tw__redis_queues *queues, uint64_t now_ms);
/* From now on the due times of the past tasks count, not the times of their filing. Cost: a sort of the past
 * tasks alone, however many are late. */
void tw__redis_place_sort_past(struct tw__redis_queues *queues);
/* All tasks so far come from a file or from another primary, which knew in which order they became ready. If
 * they are given back, they have the order of their times. */
void tw__redis_place_begin_here(struct tw__redis_queues *queues);

/* ---- clocks ---------------------------------------------------------------------------------------------- */

/* The time for which a task is filed, by the wall clock. For a task that may be leased this function has the
 * time, and not tw__redis_task_due(). */
uint64_t tw__redis_place_due(const struct tw__redis_queues *queues, const struct tw__redis_task *task);
/* The time at which the task can be taken or delivered next, as looks show it: of a leased task the end of the
 * lease, of a held one the next try of its target, of a dead one 0. */
uint64_t tw__redis_place_next(const struct tw__redis_queues *queues, const struct tw__redis_task *task,
                              uint64_t now_ms);
/* The wall clock was set by so many milliseconds: moves the ends of all leases that have not ended. */
void tw__redis_place_clock_set(struct tw__redis_queues *queues, int64_t by_ms);
/* Returns the time of the wheel that follows the wall clock. */
uint64_t tw__redis_place_now(const struct tw__redis_queues *queues);
/* Prepares for a wall clock that was set back to `now_ms`. Requires: the wheel has passed `now_ms`. */
void tw__redis_place_clock_back(struct tw__redis_queues *queues, uint64_t now_ms);

#endif
