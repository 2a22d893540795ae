/* SPDX-License-Identifier: MIT
 *
 * A schedule: its beginning and end, and the tasks that come and go. state.h has the overview.
 */
#ifndef TW_REDIS_SCHEDULE_H
#define TW_REDIS_SCHEDULE_H

#include "state.h"

/* Makes an empty, detached schedule. */
struct tw__redis_schedule *tw__redis_schedule_new(struct tw__redis_schedules *schedules);
/* Frees a schedule. Requires: the schedule is detached and has no tasks. */
void tw__redis_schedule_free(struct tw__redis_schedule *schedule);
/* Attaches a schedule that is the value of a key, or will be: from now on its tasks count, and become due. */
void tw__redis_schedule_attach(struct tw__redis_schedule *schedule);
/* Detaches a schedule that is no longer the value of a key. */
void tw__redis_schedule_detach(struct tw__redis_schedule *schedule);

/* The bytes that a schedule takes in memory. */
size_t tw__redis_schedule_bytes(const struct tw__redis_schedule *schedule);

/* The hash of an id, for the parameter `hash` of the functions below. */
uint64_t tw__redis_schedule_hash(const struct tw__redis_schedules *schedules, struct tw__redis_bytes id);
/* Prefetch the memory that tw__redis_schedule_find() will read. Finding a task takes three cache misses, each
 * after the other: the directory of the table, its cells, the task. So a command passes its id to
 * tw__redis_schedule_foresee(), which returns the hash. It calls tw__redis_schedule_foresee_cells() a while
 * later, and looks the id up as late as it can. If the command addresses the same schedule as the command
 * before it, some of the cache lines have arrived by then. */
uint64_t tw__redis_schedule_foresee(const struct tw__redis_schedules *schedules, struct tw__redis_bytes id);
void tw__redis_schedule_foresee_cells(const struct tw__redis_schedules *schedules, uint64_t hash);

/* Prefetches the task itself, and the allocator's entry for its block, which freeing the task will read. */
void tw__redis_schedule_foresee_removal(const struct tw__redis_schedule *schedule, uint64_t hash);

struct tw__redis_task *tw__redis_schedule_find(const struct tw__redis_schedule *schedule, uint64_t hash,
                                               struct tw__redis_bytes id);
/* Puts a task into a schedule and files it. Takes out and frees `old`, the task that it replaces; NULL if
 * there is none. Requires: the route belongs to the schedule; the task is filed nowhere;
 * tw__redis_schedule_find() returns `old` for the task's id. */
void tw__redis_schedule_put(struct tw__redis_schedule *schedule, struct tw__redis_task *task,
                            struct tw__redis_route *route, uint64_t hash, struct tw__redis_task *old,
                            uint64_t now_ms);
/* Takes a task out of the schedule and of the place where it is filed, if any, and frees it. Requires: the
 * task belongs to this schedule and has this hash. */
void tw__redis_schedule_remove(struct tw__redis_schedule *schedule, struct tw__redis_task *task, uint64_t hash);
/* Takes out and frees up to `limit` tasks. Returns how many. Requires: the schedule is detached and about to
 * be freed, because its own counts are not kept. */
uint64_t tw__redis_schedule_drop(struct tw__redis_schedule *schedule, uint64_t limit);

/* Gives a task another life, or takes its life away if `life` is NULL. The task stays filed as it is, so the
 * caller changes the place before or after. Returns the task, whose address may have changed. Requires: the
 * task belongs to this schedule; it is not in the line of dead tasks. */
struct tw__redis_task *tw__redis_schedule_relive(struct tw__redis_schedule *schedule,
                                                 struct tw__redis_task *task,
                                                 const struct tw__redis_life *life);

/* Gives a task a payload that another task of the schedule can share (share.c), unless it has one. The task
 * stays filed as it is. Returns the task, whose address may have changed. */
struct tw__redis_task *tw__redis_schedule_share(struct tw__redis_schedule *schedule,
                                                struct tw__redis_task *task);

/* The task waits for `due_ms` as if it had just been put: without a life, without failed tries. Logs
 * nothing. */
void tw__redis_schedule_begin_anew(struct tw__redis_schedule *schedule, struct tw__redis_task *task,
                                   uint64_t due_ms, uint64_t now_ms);

/* Corrects the schedule after the block of a task has been moved from `old`. */
void tw__redis_schedule_moved(struct tw__redis_schedule *schedule, const struct tw__redis_task *old,
                              struct tw__redis_task *task);
/* For defragmentation: tw__redis_table_relocate() of the table of tasks. */
bool tw__redis_schedule_relocate(struct tw__redis_schedule *schedule, uint64_t *segment,
                                 void *(*move)(void *old));

#endif
