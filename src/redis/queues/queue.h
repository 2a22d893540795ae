/* SPDX-License-Identifier: MIT
 *
 * A queue, and all queues together: their beginning and end, and the tasks that come and go. state.h has the
 * overview.
 */
#ifndef TW_REDIS_QUEUE_H
#define TW_REDIS_QUEUE_H

#include <task/keepdue.h>

#include "state.h"

/* Makes an empty, detached queue. */
struct tw__redis_queue *tw__redis_queue_new(struct tw__redis_queues *queues);
/* Frees a queue. Requires: the queue is detached and has no tasks. */
void tw__redis_queue_free(struct tw__redis_queue *queue);
/* Attaches a queue that is the value of a key, or will be: from now on its tasks count, and become due. */
void tw__redis_queue_attach(struct tw__redis_queue *queue);
/* Detaches a queue that is no longer the value of a key. */
void tw__redis_queue_detach(struct tw__redis_queue *queue);

/* The hash of an id, for the parameter `hash` of the functions below. */
uint64_t tw__redis_queue_hash(const struct tw__redis_queues *queues, struct tw__redis_bytes id);
/* Prefetch the memory that tw__redis_queue_find() will read. Finding a task takes three cache misses, each
 * after the other: the directory of the table, its cells, the task. So a command passes its id to
 * tw__redis_queue_foresee(), which returns the hash. It calls tw__redis_queue_foresee_cells() a while
 * later, and looks the id up as late as it can. If the command addresses the same queue as the command
 * before it, some of the cache lines have arrived by then. */
uint64_t tw__redis_queue_foresee(const struct tw__redis_queues *queues, struct tw__redis_bytes id);
void tw__redis_queue_foresee_cells(const struct tw__redis_queues *queues, uint64_t hash);

/* Prefetches the task itself, and the allocator's entry for its block, which freeing the task will read. */
void tw__redis_queue_foresee_removal(const struct tw__redis_queue *queue, uint64_t hash);

struct tw__redis_task *tw__redis_queue_find(const struct tw__redis_queue *queue, uint64_t hash,
                                            struct tw__redis_bytes id);
/* The same without the hash. */
struct tw__redis_task *tw__redis_queue_named(const struct tw__redis_queue *queue, struct tw__redis_bytes id);
/* Puts a task into a queue and files it. Takes out and frees `old`, the task that it replaces; NULL if
 * there is none. Requires: the route belongs to the queue; the task is filed nowhere;
 * tw__redis_queue_find() returns `old` for the task's id. */
void tw__redis_queue_put(struct tw__redis_queue *queue, struct tw__redis_task *task,
                         struct tw__redis_route *route, uint64_t hash, struct tw__redis_task *old,
                         uint64_t now_ms);
/* Takes a task out of the queue and of the place where it is filed, if any, and frees it. Requires: the
 * task belongs to this queue and has this hash. */
void tw__redis_queue_remove(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t hash);

/* Gives a task another attempt state, or takes its own away if `attempt` is NULL. The task stays filed as it
 * is, so the caller changes the place before or after. Returns the task, whose address may have changed.
 * Requires: the task belongs to this queue; it is not in the line of dead tasks. */
struct tw__redis_task *tw__redis_queue_set_attempt(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                                   const struct tw__redis_attempt *attempt);

/* Gives a task a payload that another task of the queue can share (share.c), unless it has one. The task
 * stays filed as it is. Returns the task, whose address may have changed. */
struct tw__redis_task *tw__redis_queue_share(struct tw__redis_queue *queue, struct tw__redis_task *task);

/* Gives a task the payload and the repetition of `fresh`, which it frees, and a route. Its times, its attempt
 * state and its place stay. Returns the task, whose address has changed. Requires: the task is not dead;
 * `fresh` is in no queue, and shares no payload; the route is that of the task, or the task is not held. */
struct tw__redis_task *tw__redis_queue_renew(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                             struct tw__redis_task *fresh, struct tw__redis_route *route);

/* The task waits for `due_ms` as if it had just been put: without an attempt state, without failed tries. Logs
 * nothing. */
void tw__redis_queue_begin_anew(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t due_ms,
                                uint64_t now_ms);

/* The attempt under way has not begun: the task has the attempt state that it had before, or none if it has
 * made no other attempt and waits for its due time, `at_ms`. It keeps its order, and is filed nowhere. Returns
 * the task, whose address may have changed. Logs nothing. Requires: the task is leased. */
struct tw__redis_task *tw__redis_queue_unbegin(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                               uint64_t at_ms);

/* Corrects the queue after the block of a task has been moved from `old`. */
void tw__redis_queue_moved(struct tw__redis_queue *queue, const struct tw__redis_task *old,
                           struct tw__redis_task *task);
/* For defragmentation: tw__redis_table_relocate() of the table of tasks. */
bool tw__redis_queue_relocate(struct tw__redis_queue *queue, uint64_t *segment, void *(*move)(void *old));

/* ---- KEEPDUE (keep.c) ------------------------------------------------------------------------------------ */

/* A put or a send with KEEPDUE, whose other conditions are met. */

/* Decides about a task with this plan and `every`, for which the call gives the time `due`. `old` has its id;
 * NULL: there is none. */
struct tw__task_keep tw__redis_keep_decide(const struct tw__redis_queues *queues,
                                           const struct tw__redis_task *old, const struct tw__redis_plan *plan,
                                           uint64_t every, uint64_t due, uint64_t now_ms);

/* Whether `old`, which may be NULL, can be renewed in place with this route. */
bool tw__redis_keep_fits(const struct tw__redis_queue *queue, const struct tw__redis_task *old,
                         const struct tw__redis_route *route);

/* IN_PLACE and SAME_TIMES: lets the new task take the place of `old`, as was decided. Takes out and frees what
 * is not needed any more. Requires: the task is in no queue, and filed nowhere; its hash is `hash`, and its
 * route belongs to the queue. */
void tw__redis_keep_put(struct tw__redis_queue *queue, struct tw__redis_task *task,
                        struct tw__redis_route *route, uint64_t hash, struct tw__redis_task *old,
                        enum tw__task_keepdue how, uint64_t now_ms);

/* ---- all queues ------------------------------------------------------------------------------------------ */

/* Makes the state without any queue, at these times of the wall clock and of a monotonic clock. Routes and
 * queues keep strings of the server's; `forget` frees such a string. Returns NULL if there is no memory
 * for the wheels. */
struct tw__redis_queues *tw__redis_queues_new(const struct tw__redis_memory *memory,
                                              void (*forget)(void *string), uint64_t now_ms,
                                              uint64_t monotonic_ms);
/* Frees the state and the removed queues. Requires: all queues have been handed to the reaper. */
void tw__redis_queues_free(struct tw__redis_queues *queues);

/* ---- removed queues -------------------------------------------------------------------------------------- */

/* Hands a queue to the reaper. Requires: the queue is detached. Threads: any. */
void tw__redis_reaper_add(struct tw__redis_queue *queue);
/* Frees up to `limit` tasks of these queues, and the queues that have no tasks left. Returns the number of
 * freed tasks, plus one for each queue that it looked at. */
uint64_t tw__redis_reaper_run(struct tw__redis_queues *queues, uint64_t limit);
/* Frees all these queues. */
void tw__redis_reaper_run_all(struct tw__redis_queues *queues);
/* Whether there are detached queues, handed over or not. */
bool tw__redis_reaper_busy(const struct tw__redis_queues *queues);

#endif
