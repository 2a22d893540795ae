/* SPDX-License-Identifier: MIT
 *
 * A shard's wheel. The shard's lock is held.
 */
#ifndef TW_SCHED_FILING_H
#define TW_SCHED_FILING_H

#include "internal.h"

/* Appends the task of a timer that the wheel has let go of to one of the lists of READY tasks. */
static inline void tw__sched_task_ready(struct tw__link *head, struct tw_timer *timer)
{
    struct tw__sched_task *task = (struct tw__sched_task *)(void *)timer;
    task->state = TW__SCHED_READY;
    tw__list_append(head, &task->link);
}

/* Puts a task into the wheel, and wakes the timer thread if that sleeps too long. Returns: 0; TW_ERANGE;
 * TW_ENOMEM. */
int tw__sched_task_file(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns);
/* Takes a READY task out of its list. */
void tw__sched_task_unfile(struct tw__sched_shard *shard, struct tw__sched_task *task);
/* Changes when a PENDING or READY task is due. Returns: as tw__sched_task_file(). */
int tw__sched_task_refile(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns);

/* Whether the wheel would take a task due then, now or later: a wheel that grows has grown. Returns: as
 * above. */
int tw__sched_task_probe(struct tw__sched_shard *shard, uint64_t due_ns);
/* Whether the wheel will always take the next call of such a task. Returns: 0; TW_ERANGE; TW_ENOMEM. */
int tw__sched_every_reach(struct tw__sched_shard *shard, const struct tw_every *every);

/* Brings the wheel to the present, which it falls behind while the timer thread sleeps; what is due on the way
 * becomes ready. A wheel that refuses, or grows, measures its reach from where it stands. */
void tw__sched_catch_up(struct tw__sched_shard *shard);

/* The tick before which there is nothing to do in a shard; 0 when there is at once. */
uint64_t tw__sched_first_tick(struct tw__sched_shard *shard);
/* Notes that the timer thread is about to sleep. Returns the tick until which the shard lets it. */
uint64_t tw__sched_asleep(struct tw__sched_shard *shard);
/* Notes that it is up. */
void tw__sched_awake(struct tw__sched_shard *shard);

#endif
