/* SPDX-License-Identifier: MIT
 *
 * Payloads that tasks share. How it works: head of share.c.
 */
#ifndef TW_REDIS_SHARE_H
#define TW_REDIS_SHARE_H

#include "state.h"

enum {
    TW__REDIS_DEATHS_MAX = 100, /* dead periods that a series keeps */
    TW__REDIS_USERS_MAX = 1000  /* of a shared payload */
};

/* Makes a payload of its own block, from that of a task, which is its only user so far. The caller gives the
 * task a block with which it shares the payload, and moves it there (tw__redis_queue_moved()). If the task
 * has shared another payload, it leaves that one. */
struct tw__redis_share *tw__redis_share_new(struct tw__redis_queue *queue, struct tw__redis_task *task);

/* Adds a task to the users of its payload as it comes to the queue; takes it out as it leaves, and frees the
 * payload with its last user. Requires: the task shares its payload. */
void tw__redis_share_join(struct tw__redis_queue *queue, struct tw__redis_task *task);
void tw__redis_share_leave(struct tw__redis_queue *queue, struct tw__redis_task *task);

/* Counts a task among the dead users, if it is dead: as it has died (`sign` 1), or is about to live again (-1).
 * Requires: the task shares its payload. */
void tw__redis_share_dead(struct tw__redis_queue *queue, struct tw__redis_task *task, int sign);

/* Corrects the users after the block of a task has been moved from `old`, which is not read. Requires: the task
 * shares its payload, and `old` is among the users. */
void tw__redis_share_moved(const struct tw__redis_task *old, struct tw__redis_task *task);

/* For defragmentation: moves the blocks of the payload that the task shares, if the task is its first user.
 * `move` returns the new block, or NULL if a block stays. */
void tw__redis_share_relocate(const struct tw__redis_task *task, void *(*move)(void *old));

/* The user that died first, if more than TW__REDIS_DEATHS_MAX users of the task's payload are dead; else
 * NULL. */
struct tw__redis_task *tw__redis_share_excess(const struct tw__redis_task *task);

#endif
