/* SPDX-License-Identifier: MIT
 *
 * Looking for some of the tasks of a queue.
 */
#ifndef TW_REDIS_LOOK_H
#define TW_REDIS_LOOK_H

#include "state.h"

/* Which tasks of a queue are looked for, of those that wait for a time, by their `next`: that of a held task is
 * the next try of its target. Leased and dead tasks are never wanted, nor those in the line of ready tasks. The
 * clock alone makes a task ready. So `from` is later than the present time if only waiting tasks are wanted. */
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

#endif
