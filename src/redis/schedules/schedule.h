/* SPDX-License-Identifier: MIT
 *
 * A schedule: its beginning and end, and the tasks that come and go. state.h has the overview.
 */
#ifndef TW_REDIS_SCHEDULE_H
#define TW_REDIS_SCHEDULE_H

#include "state.h"

/* An empty, detached schedule. */
struct tw__redis_schedule *tw__redis_schedule_new(struct tw__redis_schedules *schedules);
/* Frees a schedule. Requires: it is detached and has no tasks. */
void tw__redis_schedule_free(struct tw__redis_schedule *schedule);
/* It is the value of a key, or will be: its tasks count, and come due. */
void tw__redis_schedule_attach(struct tw__redis_schedule *schedule);
/* And no longer. */
void tw__redis_schedule_detach(struct tw__redis_schedule *schedule);

/* The bytes that it takes in memory. */
size_t tw__redis_schedule_bytes(const struct tw__redis_schedule *schedule);

/* The hash of an id: what the functions below want. */
uint64_t tw__redis_schedule_hash(const struct tw__redis_schedules *schedules, struct tw__redis_bytes id);
/* Finding a task takes three fetches from memory, each after the other. A command tells beforehand which id it
 * will look for, does something else, and tells once more: if it turns out to mean the same schedule as the
 * last one, what it needs is there. Returns the hash of the id. */
uint64_t tw__redis_schedule_foresee(const struct tw__redis_schedules *schedules, struct tw__redis_bytes id);
void tw__redis_schedule_foresee_task(const struct tw__redis_schedules *schedules, uint64_t hash);

struct tw__redis_task *tw__redis_schedule_find(const struct tw__redis_schedule *schedule, uint64_t hash,
                                               struct tw__redis_bytes id);
/* Puts a task in and files it; `old`, if not NULL, is the one with this id, which it replaces. Requires: the
 * route is the schedule's; the task is filed nowhere; `old` is what tw__redis_schedule_find() finds. */
void tw__redis_schedule_put(struct tw__redis_schedule *schedule, struct tw__redis_task *task,
                            struct tw__redis_route *route, uint64_t hash, struct tw__redis_task *old,
                            uint64_t now_ms);
/* Takes a task out, wherever it is filed, and frees it. Requires: it is a task of this schedule, with this
 * hash. */
void tw__redis_schedule_remove(struct tw__redis_schedule *schedule, struct tw__redis_task *task, uint64_t hash);
/* Takes out and frees up to `limit` tasks. Returns how many. Requires: the schedule is detached and about to be
 * freed: its own counts are not kept. */
uint64_t tw__redis_schedule_drop(struct tw__redis_schedule *schedule, uint64_t limit);

/* The task's block has been moved: `old` is where it was. */
void tw__redis_schedule_moved(struct tw__redis_schedule *schedule, const struct tw__redis_task *old,
                              struct tw__redis_task *task);
/* For defragmentation: tw__redis_table_relocate() of the table of tasks. */
bool tw__redis_schedule_relocate(struct tw__redis_schedule *schedule, uint64_t *segment,
                                 void *(*move)(void *old));

#endif
