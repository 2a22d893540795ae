/* SPDX-License-Identifier: MIT
 *
 * Workers, and the tasks without a target that they take.
 */
#ifndef TW_REDIS_WORKERS_H
#define TW_REDIS_WORKERS_H

#include "delivery.h"

/* ---- workers that wait in TW.TAKE: the queues whose ready tasks they have not seen ----------------------- */

/* Notes that a queue has a ready task, or that its ready tasks may be given out again. */
void tw__redis_workers_wake(struct tw__redis_queue *queue);

/* The same for all queues that have ready tasks. Cost: a look at each queue. */
void tw__redis_workers_wake_all(void);

/* Tells the server which queues have ready tasks, if it may give them out. The server then serves the
 * clients that are blocked on these keys, in the order in which they were blocked. */
void tw__redis_workers_signal(RedisModuleCtx *ctx);

/* Blocks the client of a TW.TAKE until one of the keys has a ready task; 0 ms: without an end. */
void tw__redis_workers_block(RedisModuleCtx *ctx, RedisModuleString **keys, int count, long long ms);

/* ---- tasks whose time has come: they become ready, or their lease has run out (offer.c) ------------------ */

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

/* The lease of a task has run out, a lapse: the task waits for its next attempt, or is dead after the last. A
 * lease that ran out before the time since which workers are served (shared.h), when nobody could have ended
 * it, begins anew instead, once. Returns TW__REDIS_DEFER_NONE, or why the server must not write now; the task
 * is then filed nowhere, as before. */
enum tw__redis_defer tw__redis_offer_lapse(struct tw__redis_delivery *delivery);

/* How often and when the attempts of a task are made again: as its caller or the settings say. */
struct tw__task_retry tw__redis_workers_retry(const struct tw__redis_task *task);

#endif
