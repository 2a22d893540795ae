/* SPDX-License-Identifier: MIT
 *
 * Looking for some of the tasks of a queue.
 */
#ifndef TW_REDIS_LOOK_H
#define TW_REDIS_LOOK_H

#include "state.h"

/* Which tasks of a queue are looked for, of those that wait for a time: ready, leased and dead tasks are
 * never wanted. */
struct tw__redis_wanted {
    uint64_t from, to;            /* from <= due <= to */
    struct tw__redis_task *after; /* if not NULL: only tasks after this task in that order */
    uint64_t drain; /* if not 0: no held tasks, and no tasks whose route refused this TW.DRAIN or a later one */
};

/* Writes up to `limit` of the wanted tasks to `task`, in the order of due times. Returns how many. Cost: a
 * look at the tasks of all queues that are due before the last task written, or at all tasks of this
 * queue, whichever are fewer. */
size_t tw__redis_look_wanted(const struct tw__redis_queue *queue, const struct tw__redis_wanted *wanted,
                             uint64_t now_ms, size_t limit, struct tw__redis_task **task);
/* The same for the tasks with from <= due <= to. */
size_t tw__redis_look_earliest(const struct tw__redis_queue *queue, uint64_t from, uint64_t to, uint64_t now_ms,
                               size_t limit, struct tw__redis_task **task);

/* Counts the tasks of a queue that wait, and are due up to now_ms + step * count: counts[i] is the number
 * for step i. Example: with a step of 1000, a task due at now_ms + 1500 counts in counts[1]. Requires:
 * neither `step` nor `count` is 0. */
void tw__redis_look_forecast(const struct tw__redis_queue *queue, uint64_t now_ms, uint64_t step, size_t count,
                             uint64_t *counts);

/* Returns all tasks of a queue in the order of due times, in a block of memory that the caller frees; NULL
 * if the queue has no tasks. */
struct tw__redis_task **tw__redis_look_sorted(const struct tw__redis_queue *queue);

#endif
