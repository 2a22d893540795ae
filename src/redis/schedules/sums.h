/* SPDX-License-Identifier: MIT
 *
 * How many tasks and bytes a schedule has, and the sums over all attached schedules. With the sums, no caller
 * has to walk through all schedules.
 */
#ifndef TW_REDIS_SUMS_H
#define TW_REDIS_SUMS_H

#include "state.h"

/* Adds the counts of a schedule to the sums as it is attached (`sign` 1), or subtracts them as it is detached
 * (-1). */
void tw__redis_sums_schedule(struct tw__redis_schedule *schedule, int sign);
/* Counts a task that is about to be put into the table of a schedule (`sign` 1), or that has been taken out
 * of it (-1). Requires: the task is not in the table. */
void tw__redis_sums_task(struct tw__redis_schedule *schedule, int sign);
/* Counts a block of memory that becomes part of a schedule (`sign` 1), or leaves it (-1). */
void tw__redis_sums_block(struct tw__redis_schedule *schedule, void *block, int sign);
/* The bytes of a schedule's tables. The caller takes this number before it changes a table, and passes it to
 * tw__redis_sums_tables() after the change. */
size_t tw__redis_sums_table_bytes(const struct tw__redis_schedule *schedule);
void tw__redis_sums_tables(struct tw__redis_schedule *schedule, size_t before);
/* Count `more` tasks, which may be negative: waiting ones in the lines of overdue, past and stopped tasks; of
 * the lines of routes; of the lines of ready tasks. */
void tw__redis_sums_in_line(struct tw__redis_schedule *schedule, int more);
void tw__redis_sums_held(struct tw__redis_schedule *schedule, int more);
void tw__redis_sums_ready(struct tw__redis_schedule *schedule, int more);
/* Counts a task in the line of dead tasks, with its block, as it comes (`sign` 1) or leaves (-1); and a block
 * alone, of a dead task or of a payload that dead tasks share. */
void tw__redis_sums_dead(struct tw__redis_schedule *schedule, struct tw__redis_task *task, int sign);
void tw__redis_sums_dead_block(struct tw__redis_schedule *schedule, void *block, int sign);
/* Counts a task, if it is leased, as it comes to the schedule or to this stage (`sign` 1), or leaves it (-1).
 * */
void tw__redis_sums_leased(struct tw__redis_schedule *schedule, const struct tw__redis_task *task, int sign);
/* Sets whether the schedule is paused. */
void tw__redis_sums_pause(struct tw__redis_schedule *schedule, bool paused);
/* Puts a schedule into the list of attached schedules: before all others if it is paused, else behind them.
 * Requires: the schedule is in no list. */
void tw__redis_sums_list(struct tw__redis_schedule *schedule);

/* A chunk (chunk.h) of a snapshot or of DUMP has at most TW__REDIS_CHUNK_TASKS tasks. It also ends after the
 * task with which it reaches TW__REDIS_CHUNK_BYTES. */
enum { TW__REDIS_CHUNK_TASKS = 512, TW__REDIS_CHUNK_BYTES = 64 * 1024 };
/* How many bytes a snapshot or DUMP takes for the schedule at most. It looks at no task, only at the memory
 * that the schedule holds. As an allocator rounds up, the result is too high:
 *   - by a hundredth to a third for payloads of 100 bytes and more that do not compress;
 *   - by up to three quarters for smaller payloads.
 * Requires: few tasks are due a year after the task before them. */
uint64_t tw__redis_sums_dump_most(const struct tw__redis_schedule *schedule);
/* From now on `too_large` counts the attached schedules whose dump may take more than `bytes`. Cost: a look
 * at each attached schedule, if the limit differs from the limit before. */
void tw__redis_sums_limit_dump(struct tw__redis_schedules *schedules, uint64_t bytes);
/* From now on an attached schedule that has more than `count` dead tasks is stale (place.h); 0 means no limit.
 * Cost: as tw__redis_sums_limit_dump(). */
void tw__redis_sums_limit_dead(struct tw__redis_schedules *schedules, uint64_t count);

#endif
