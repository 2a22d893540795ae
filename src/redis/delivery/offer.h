/* SPDX-License-Identifier: MIT
 *
 * Tasks without a target, when their time has come: they become ready for workers, or their lease has run out.
 */
#ifndef TW_REDIS_OFFER_H
#define TW_REDIS_OFFER_H

#include "delivery.h"

/* Makes a task ready that waits for workers and is due. Requires: the task is filed nowhere. */
void tw__redis_offer(struct tw__redis_delivery *delivery);

/* A TW.TAKE looks at so many tasks that are due and stay so. */
enum { TW__REDIS_LOOKS = 100 };

/* Makes tasks of a queue ready which are due, and which no tick has reached: as many as there have to be for
 * `count` ready ones. The tasks of other queues, those with targets and the leases that have run out keep
 * their places, for the next tick; each of them takes one of *looks, and the last one ends the search.
 * Returns how many tasks became ready: none while a batch is open, which goes on with its own tasks. The
 * caller tells of it. */
uint64_t tw__redis_offer_due(struct tw__redis_queue *queue, uint64_t count, uint64_t now_ms, uint32_t *looks);

/* The lease of a task has run out, a lapse: the task waits for its next attempt, or is dead after the 17th. A
 * lease that ran out before the time since which workers are served (shared.h), when nobody could have ended
 * it, begins anew instead, once. Returns TW__REDIS_DEFER_NONE, or why the server must not write now; the task
 * is then filed nowhere, as before. */
enum tw__redis_defer tw__redis_offer_lapse(struct tw__redis_delivery *delivery);

/* Ends an attempt that has failed with an error: the task waits for its next attempt, at `at_ms` or, if that
 * is 0, after its backoff; or it is dead, if this was its last attempt or `last` is true. Adds what it does
 * to `log`. Returns when the next attempt is, or 0 if the task is dead: then the caller removes those that are
 * too many (purge.h). Requires: the task is leased. */
uint64_t tw__redis_offer_fail(struct tw__redis_queue *queue, struct tw__redis_task *task,
                              struct tw__redis_bytes error, uint64_t at_ms, bool last, uint64_t now_ms,
                              struct tw__redis_buffer *log);

/* Ends an attempt as if it had not begun: the task is ready again, and blocked workers can have it. Adds what
 * it does to `log`. Returns the time for which the task waited. Requires: the task is leased. */
uint64_t tw__redis_offer_again(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t now_ms,
                               struct tw__redis_buffer *log);
/* The same, but the task waits until `at_ms`. */
void tw__redis_offer_put_off(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t at_ms,
                             uint64_t now_ms, struct tw__redis_buffer *log);

#endif
