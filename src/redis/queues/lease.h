/* SPDX-License-Identifier: MIT
 *
 * The verbs that change a task. Which task comes of it, src/task decides (docs/contract.md). These functions
 * give the stored task its new numbers and its place, and add this to `log`, for the append-only file and the
 * replicas (change.h). The block of the task may be another one afterwards.
 */
#ifndef TW_REDIS_LEASE_H
#define TW_REDIS_LEASE_H

#include "route.h"
#include "state.h"

/* The numbers of a task. Of `retry` nothing is set, as the settings belong to it. A task with a target has
 * attempt 0 until the target has refused it itself. Of a leased task `next_ms` is its due time, also if it
 * waited for another one. */
struct tw__task tw__redis_lease_numbers(const struct tw__redis_queues *queues,
                                        const struct tw__redis_task *task);

/* A call of a verb. */
struct tw__redis_verb {
    struct tw__task_call call;
    const struct tw__task_retry *retry; /* of the task, with the settings; NULL: the verb counts no failure */
    struct tw__redis_bytes said;        /* the worker of a take; the error of a failure */
};

/* Calls a verb for a task, and does as the outcome says. Returns the task, or NULL if it has left. Requires:
 * the verb is a move, a take, an answer, a lapse or a promotion. A task that is taken is ready, and one that is
 * promoted is not held. */
struct tw__redis_task *tw__redis_lease_change(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                              const struct tw__redis_verb *verb, uint64_t now_ms,
                                              struct tw__redis_buffer *log, struct tw__task_outcome *outcome);
/* Does as an outcome for the task says. `said` is as above. Returns as the function above. */
struct tw__redis_task *tw__redis_lease_settle(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                              const struct tw__task_outcome *outcome,
                                              struct tw__redis_bytes said, uint64_t now_ms,
                                              struct tw__redis_buffer *log);
/* Counts what has happened. The two functions above do so. */
void tw__redis_lease_count(struct tw__redis_queue *queue, const struct tw__task_tally *tally);

/* Puts a task into a queue, as tw__redis_queue_put() does. If an attempt of `old` is under way, the task stands
 * behind it. Logs nothing. */
void tw__redis_lease_put(struct tw__redis_queue *queue, struct tw__redis_task *task,
                         struct tw__redis_route *route, uint64_t hash, struct tw__redis_task *old,
                         uint64_t now_ms);
/* Whether a token is the task's: that of its lease or, after the lease, of its last attempt. */
bool tw__redis_lease_has_token(const struct tw__redis_task *task, uint64_t token);
/* A lease that has run out while nobody could end it begins anew. Requires: the task is leased. */
void tw__redis_lease_renew(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t now_ms,
                           struct tw__redis_buffer *log);
/* The task leaves its queue. */
void tw__redis_lease_remove(struct tw__redis_queue *queue, struct tw__redis_task *task,
                            struct tw__redis_buffer *log);

/* For a copy of the queue `from`, which has no leases and no tokens: the attempts under way there have not
 * begun. Its tasks are in the order of those of `from`. */
void tw__redis_lease_forget_all(struct tw__redis_queue *queue, const struct tw__redis_queue *from,
                                uint64_t now_ms);

#endif
