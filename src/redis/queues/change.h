/* SPDX-License-Identifier: MIT
 *
 * Changes of the attempt states of tasks, as bytes: how a server tells its append-only file and its replicas
 * that tasks were leased, given back, failed, died or were done. A change names the task, and gives its new
 * attempt state and time in full, so that nobody has to compute them again. If the buffer is NULL, nobody would
 * read the change, and nothing is written.
 */
#ifndef TW_REDIS_CHANGE_H
#define TW_REDIS_CHANGE_H

#include "state.h"

/* Adds the present attempt state and time of a task. Requires: the task has an attempt state. */
void tw__redis_change_put(struct tw__redis_buffer *buffer, const struct tw__redis_queues *queues,
                          const struct tw__redis_task *task);

/* Adds that a dead task is a new one, made from another task of its queue that goes on: the payload and the
 * route are those of `from`. Requires: the dead task has an attempt state. */
void tw__redis_change_put_dead_copy(struct tw__redis_buffer *buffer, const struct tw__redis_queues *queues,
                                    struct tw__redis_bytes from, const struct tw__redis_task *dead);

/* Adds that a task has left its queue; and that a repeating task, which has its new `times`, waits for its next
 * period at `due_ms`, without an attempt state. */
void tw__redis_change_put_gone(struct tw__redis_buffer *buffer, const struct tw__redis_queues *queues,
                               const struct tw__redis_task *task);
void tw__redis_change_put_next(struct tw__redis_buffer *buffer, const struct tw__redis_queues *queues,
                               const struct tw__redis_task *task, uint64_t due_ms);

/* Adds that a task waits for `due_ms` as if it had just been put. A time that has passed makes it ready. */
void tw__redis_change_put_anew(struct tw__redis_buffer *buffer, const struct tw__redis_queues *queues,
                               const struct tw__redis_task *task, uint64_t due_ms);

/* Adds that an attempt has not begun, and that its task is ready again for the time for which it is filed. */
void tw__redis_change_put_back(struct tw__redis_buffer *buffer, const struct tw__redis_queues *queues,
                               const struct tw__redis_task *task);

/* Makes all these changes in a queue. Returns false if a change does not fit its task, or if the bytes are not
 * changes of format 1; then the others may have been made, and `fault`, which may be NULL, says why. */
bool tw__redis_change_read(struct tw__redis_queue *queue, struct tw__redis_bytes bytes, uint64_t now_ms,
                           struct tw__redis_fault *fault);

/* Makes a dead task from another task, with the same payload, which both share, the same route, another id, and
 * this attempt state. The new task replaces a task with that id. Returns it. Requires: `from` shares its
 * payload. */
struct tw__redis_task *tw__redis_change_dead_copy(struct tw__redis_queue *queue,
                                                  const struct tw__redis_task *from, struct tw__redis_bytes id,
                                                  const struct tw__redis_attempt *attempt, uint64_t died_ms);

#endif
