/* SPDX-License-Identifier: MIT
 *
 * A shard's wheel. The caller holds the shard's lock.
 */
#ifndef TW_SCHED_FILING_H
#define TW_SCHED_FILING_H

#include "internal.h"

/* Appends a task that was due on `tick` to one of the lists of READY tasks. If the last task of the list has a
 * later tick, the new task gets that tick, so the list is always sorted (S7). */
static inline void tw__sched_task_queue(struct tw__link *list, struct tw__sched_task *task, uint64_t tick)
{
    if (!tw__list_empty(list) && tick < tw__sched_task_linked(list->prev)->tick)
        tick = tw__sched_task_linked(list->prev)->tick;
    task->state = TW__SCHED_READY;
    task->tick = tick;
    task->ahead = task;
    tw__list_append(list, &task->link);
}

/* Appends the task of a timer that the wheel has given out. */
static inline void tw__sched_task_ready(struct tw__link *list, struct tw_timer *timer)
{
    tw__sched_task_queue(list, (struct tw__sched_task *)(void *)timer, tw_timer_deadline(timer));
}

/* Appends the task of a timer that the timer thread has collected to the ready list. If the task that was
 * collected eight tasks before still waits, it learns the new task's address: see due.c. */
static inline void tw__sched_task_collect(struct tw__sched_shard *shard, struct tw_timer *timer)
{
    struct tw__sched_task **place = &shard->collected[shard->collected_next++ % TW__SCHED_AHEAD];
    tw__sched_task_ready(&shard->ready, timer);
    if (*place != NULL && (*place)->state == TW__SCHED_READY)
        (*place)->ahead = timer;
    *place = (struct tw__sched_task *)(void *)timer;
}

/* The due time of a task that runs once. A point that has passed becomes the beginning of the present tick, or
 * stays if it lies in that tick. So the task starts at once, and is late from the call that files it on. */
uint64_t tw__sched_due_once(struct tw__sched_shard *shard, uint64_t due_ns);
/* Puts a task into the wheel, and wakes the timer thread if it would sleep past the task's tick.
 * Returns: 0; TW_ERANGE; TW_ENOMEM. */
int tw__sched_task_file(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns);
/* Takes a READY task out of its list. */
void tw__sched_task_unfile(struct tw__sched_shard *shard, struct tw__sched_task *task);
/* Changes the due time of a PENDING or READY task. Returns: as tw__sched_task_file(). */
int tw__sched_task_refile(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns);

/* Checks that the wheel will take a task due at due_ns, if it is filed now or later. A wheel that grows has
 * grown as far as that needs. Returns: as tw__sched_task_file(). */
int tw__sched_task_probe(struct tw__sched_shard *shard, uint64_t due_ns);
/* Checks that the wheel will always take the next call of a task that repeats so.
 * Returns: 0; TW_ERANGE; TW_ENOMEM. */
int tw__sched_every_reach(struct tw__sched_shard *shard, const struct tw_every *every);

/* Moves the wheel to the present tick; tasks due on the way become READY. The wheel falls behind while the
 * timer thread sleeps, but a wheel that refuses measures its reach from the tick of its latest poll, and a
 * wheel that grows from the tick it stands on. */
void tw__sched_catch_up(struct tw__sched_shard *shard);

/* The tick before which the timer thread has no work in a shard. If it has work at once, because it runs or
 * sends the READY tasks, this is the tick of the first of them. */
uint64_t tw__sched_first_tick(struct tw__sched_shard *shard);
/* Notes that the timer thread is about to sleep. Returns the tick until which the shard lets it sleep. */
uint64_t tw__sched_asleep(struct tw__sched_shard *shard);
/* Notes that the timer thread is awake. */
void tw__sched_awake(struct tw__sched_shard *shard);

#endif
