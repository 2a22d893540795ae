/* SPDX-License-Identifier: MIT
 *
 * A schedule: its beginning and end, and the tasks that come and go. state.h has the overview.
 */
#ifndef TW_REDIS_SCHEDULE_H
#define TW_REDIS_SCHEDULE_H

#include "state.h"

/* An empty, detached schedule. */
struct tw__schedule *tw__schedule_new(struct tw__schedules *schedules);
/* Frees a schedule. Requires: it is detached and has no tasks. */
void tw__schedule_free(struct tw__schedule *schedule);
/* It is the value of a key, or will be: its tasks count, and come due. */
void tw__schedule_attach(struct tw__schedule *schedule);
/* And no longer. */
void tw__schedule_detach(struct tw__schedule *schedule);

/* The bytes that it takes in memory. */
size_t tw__schedule_bytes(const struct tw__schedule *schedule);

/* The hash of an id: what the functions below want. */
uint64_t tw__schedule_hash(const struct tw__schedules *schedules, struct tw__bytes id);
/* Finding a task takes three fetches from memory, each after the other. A command tells beforehand which id it
 * will look for, does something else, and tells once more: if it turns out to mean the same schedule as the
 * last one, what it needs is there. Returns the hash of the id. */
uint64_t tw__schedule_foresee(const struct tw__schedules *schedules, struct tw__bytes id);
void tw__schedule_foresee_task(const struct tw__schedules *schedules, uint64_t hash);

struct tw__task *tw__schedule_find(const struct tw__schedule *schedule, uint64_t hash, struct tw__bytes id);
/* Puts a task in and files it; `old`, if not NULL, is the one with this id, which it replaces. Requires: the
 * route is the schedule's; the task is filed nowhere; `old` is what tw__schedule_find() finds. */
void tw__schedule_put(struct tw__schedule *schedule, struct tw__task *task, struct tw__route *route,
                      uint64_t hash, struct tw__task *old, uint64_t now_ms);
/* Takes a task out, wherever it is filed, and frees it. Requires: it is a task of this schedule, with this
 * hash. */
void tw__schedule_remove(struct tw__schedule *schedule, struct tw__task *task, uint64_t hash);
/* Takes out and frees up to `limit` tasks. Returns how many. Requires: the schedule is detached and about to be
 * freed: its own counts are not kept. */
uint64_t tw__schedule_drop(struct tw__schedule *schedule, uint64_t limit);

/* The task's block has been moved: `old` is where it was. */
void tw__schedule_moved(struct tw__schedule *schedule, const struct tw__task *old, struct tw__task *task);
/* For defragmentation: tw__table_relocate() of the table of tasks. */
bool tw__schedule_relocate(struct tw__schedule *schedule, uint64_t *segment, void *(*move)(void *old));

#endif
