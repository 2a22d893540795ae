/* SPDX-License-Identifier: MIT
 *
 * Looks for tasks of a queue, and looks at all queues at once.
 */
#ifndef TW_REDIS_LOOK_H
#define TW_REDIS_LOOK_H

#include "state.h"

/* The tasks of a queue that wait for a time, chosen by their `next`: of a held task the next try of its target.
 * Leased and dead tasks are never wanted, nor tasks in the line of ready tasks. The clock alone makes a task
 * ready. So `from` is later than the present time if only waiting tasks are wanted. */
struct tw__redis_wanted {
    uint64_t from, to;            /* from <= next <= to */
    struct tw__redis_task *after; /* if not NULL: only tasks after this task in that order */
};

/* Writes up to `limit` of the wanted tasks to `task`, in the order of `next`. Returns how many. Cost: a look at
 * the tasks of all queues that come before the last task written, or at all tasks of this queue, whichever are
 * fewer. Tasks in the lines of due tasks cost nothing if `from` is later than the present time. */
size_t tw__redis_look_wanted(const struct tw__redis_queue *queue, const struct tw__redis_wanted *wanted,
                             uint64_t now_ms, size_t limit, struct tw__redis_task **task);
/* The same for the tasks with from <= next <= to. */
size_t tw__redis_look_earliest(const struct tw__redis_queue *queue, uint64_t from, uint64_t to, uint64_t now_ms,
                               size_t limit, struct tw__redis_task **task);

/* Counts the waiting tasks of a queue with a `next` up to now_ms + step * count: counts[i] is the number for
 * step i. Example: with a step of 1000, a task whose `next` is now_ms + 1500 counts in counts[1]. Requires:
 * neither `step` nor `count` is 0. */
void tw__redis_look_forecast(const struct tw__redis_queue *queue, uint64_t now_ms, uint64_t step, size_t count,
                             uint64_t *counts);

/* How many tasks of a queue are in each state that is a matter of the clock. */
struct tw__redis_states {
    uint64_t waiting, ready;
};
/* Counts these tasks. Cost: a look at the tasks of all queues that are due, and that no tick has moved to a
 * line, or at all tasks of this queue, whichever are fewer. */
void tw__redis_look_states(const struct tw__redis_queue *queue, uint64_t now_ms,
                           struct tw__redis_states *states);

/* Returns all tasks of a queue in the order of due times, in a block of memory that the caller frees; NULL
 * if the queue has no tasks. */
struct tw__redis_task **tw__redis_look_sorted(const struct tw__redis_queue *queue);

/* ---- all queues at once (overview.c) --------------------------------------------------------------------- */

/* Counts the tasks of all queues that are due up to now_ms + step * count, by step. A task that waits in a
 * line counts in the first step. Returns whether the counts are exact; if not, they are estimated from a
 * sample. Requires: neither `step` nor `count` is 0. */
bool tw__redis_overview_forecast(struct tw__redis_queues *queues, uint64_t now_ms, uint64_t step, size_t count,
                                 uint64_t *counts);

/* Writes up to `limit` of the attached queues with the most tasks to `largest`, the largest first. Returns
 * how many. */
size_t tw__redis_overview_largest(const struct tw__redis_queues *queues, const struct tw__redis_queue **largest,
                                  size_t limit);

/* Writes up to `limit` of the attached queues that are paused to `paused`: first those with the most ready
 * tasks, as far as ticks have seen. Returns how many. It looks at 20,000 paused queues at most. */
size_t tw__redis_overview_paused(const struct tw__redis_queues *queues, const struct tw__redis_queue **paused,
                                 size_t limit);

/* Writes how many tasks of each of these queues are ready, whether a tick has seen them or not. The numbers are
 * lower bounds if more than 20,000 timers had to be looked at. Requires: no queue is in the list twice, and
 * there are at most TW__REDIS_LISTED_MAX. */
enum { TW__REDIS_LISTED_MAX = 100 };
void tw__redis_overview_ready(const struct tw__redis_queues *queues, uint64_t now_ms,
                              const struct tw__redis_queue *const *list, size_t count, uint64_t *ready);

/* The ready tasks of all attached queues. A task of a queue that is not paused is late while it has neither
 * been delivered nor offered to workers. */
struct tw__redis_ready {
    uint64_t count, late;
    uint64_t since, late_since; /* the first time from which one of them has been so; TW_NEVER: there is none */
};

/* Counts these tasks. The numbers are lower bounds if more than 20,000 timers had to be looked at. For the
 * two times it looks at the first 20,000 queues, and at the first 1,000 tasks of each line. */
void tw__redis_overview_all_ready(const struct tw__redis_queues *queues, uint64_t now_ms,
                                  struct tw__redis_ready *ready);

/* Returns since when the task of a queue that has been ready longest has been so, as far as ticks have seen; or
 * TW_NEVER. It looks at the first 1,000 tasks of each line. */
uint64_t tw__redis_overview_ready_since(const struct tw__redis_queue *queue, uint64_t now_ms);

#endif
