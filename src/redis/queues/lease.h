/* SPDX-License-Identifier: MIT
 *
 * The ways of a task through its life: leased to a worker, failed, dead, done. attempt.h has the picture.
 *
 * Each function files the task in its new place, and adds what it has done to `log`, for the append-only file
 * and the replicas (change.h). The block of the task may be another one afterwards. "Leased" means the task
 * itself. A REPLACED one is not, and only tw__redis_lease_extend() takes both.
 */
#ifndef TW_REDIS_LEASE_H
#define TW_REDIS_LEASE_H

#include "route.h"
#include "state.h"

struct tw__redis_lease {
    uint64_t token; /* not 0 */
    uint32_t ms;
    struct tw__redis_bytes worker;
};

/* Gives a ready task to a worker: an attempt begins. The first one of a call fixes the period, and the further
 * periods for which the call stands. Returns the task, whose address may have changed. Requires: `turn` is that
 * of the task at `now_ms` (route.h), and it is its turn to be called. */
struct tw__redis_task *tw__redis_lease_begin(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                             const struct tw__task_turn *turn,
                                             const struct tw__redis_lease *lease, uint64_t now_ms,
                                             struct tw__redis_buffer *log);
/* It is not the turn of a ready task to be called: it waits for its next period, or leaves. */
void tw__redis_lease_pass_over(struct tw__redis_queue *queue, struct tw__redis_task *task,
                               const struct tw__task_turn *turn, uint64_t now_ms, struct tw__redis_buffer *log);
/* Lets a waiting task be ready now; it keeps its due time and its attempts. Returns the task, whose address may
 * have changed. Requires: the task is not held. */
struct tw__redis_task *tw__redis_lease_make_due(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                                uint64_t now_ms, struct tw__redis_buffer *log);
/* Puts a task into a queue, as tw__redis_queue_put() does. If an attempt of `old` is under way, the task stands
 * behind it. Logs nothing. */
void tw__redis_lease_put(struct tw__redis_queue *queue, struct tw__redis_task *task,
                         struct tw__redis_route *route, uint64_t hash, struct tw__redis_task *old,
                         uint64_t now_ms);
/* Gives a task another due time, with attempt 0. If an attempt is under way, the task stands behind it from now
 * on. */
void tw__redis_lease_move(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t due_ms,
                          uint64_t now_ms, struct tw__redis_buffer *log);
/* The attempt before which a task stands has ended at `end_ms`, in any way: the task waits for its due time or,
 * if that has passed by then, since this end. Returns the time for which it waits. Requires: the task is
 * REPLACED. */
uint64_t tw__redis_lease_end_replaced(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                      uint64_t end_ms, uint64_t now_ms, struct tw__redis_buffer *log);
/* Whether a token is the task's: that of its lease or, after the lease, of its last attempt. */
bool tw__redis_lease_has_token(const struct tw__redis_task *task, uint64_t token);
/* Lets the lease end `ms` from now, and have this length. `renewed`: it had run out. Requires: the task is
 * leased. */
void tw__redis_lease_extend(struct tw__redis_queue *queue, struct tw__redis_task *task, uint32_t ms,
                            bool renewed, uint64_t now_ms, struct tw__redis_buffer *log);
/* The attempt has failed: the task waits for the next one, at `at_ms`, and the token is void. After a lapse it
 * stays, for a late acknowledgement. Requires: the task is leased. */
void tw__redis_lease_fail(struct tw__redis_queue *queue, struct tw__redis_task *task, bool lapsed,
                          struct tw__redis_bytes error, uint64_t at_ms, uint64_t now_ms,
                          struct tw__redis_buffer *log);
/* Counts a lapse: the lease has run out. The caller then lets the attempt fail, or kills the task. */
void tw__redis_lease_count_lapse(struct tw__redis_task *task);
/* The worker gives the task back as if it had not taken it: the attempt does not count, the token is void,
 * and the task is ready again, at the place and for the time that it had before, or for now if that is later.
 * If it had no attempt state before, it has none any more. Returns the task, whose address may have changed.
 * Requires: the task is leased. */
struct tw__redis_task *tw__redis_lease_give_back(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                                 uint64_t now_ms, struct tw__redis_buffer *log);
/* The same, but the task waits until `at_ms`, behind the others there. */
void tw__redis_lease_put_off(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t at_ms,
                             uint64_t now_ms, struct tw__redis_buffer *log);
/* The task leaves its queue. */
void tw__redis_lease_remove(struct tw__redis_queue *queue, struct tw__redis_task *task,
                            struct tw__redis_buffer *log);
/* The work is done: the task leaves, or waits for the first period for which its call does not stand. */
void tw__redis_lease_done(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t now_ms,
                          struct tw__redis_buffer *log);

/* The task is dead, after so many attempts or tries. Of a repeating task only the period is dead: it becomes a
 * task of its own, whose id is that of the task, an @ and the due time, and then -1, -2 ... while such an id
 * is in use; and the task waits for its next period. Requires: the task is not dead. */
void tw__redis_lease_kill(struct tw__redis_queue *queue, struct tw__redis_task *task, uint32_t attempts,
                          struct tw__redis_bytes error, uint64_t now_ms, struct tw__redis_buffer *log);
/* The same, and a repeating task dies as a whole. */
void tw__redis_lease_kill_series(struct tw__redis_queue *queue, struct tw__redis_task *task, uint32_t attempts,
                                 struct tw__redis_bytes error, uint64_t now_ms, struct tw__redis_buffer *log);

/* For a copy of a queue, which has no leases and no tokens: the attempts under way there have not begun. */
void tw__redis_lease_forget_all(struct tw__redis_queue *queue, uint64_t now_ms);

#endif
