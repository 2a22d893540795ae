/* SPDX-License-Identifier: MIT
 *
 * How many tasks and bytes a schedule has, and the sums over all attached ones, so that nobody has to go
 * through all schedules to know them.
 */
#ifndef TW_REDIS_SUMS_H
#define TW_REDIS_SUMS_H

#include "state.h"

/* A schedule is attached (`sign` 1), or detached (-1): its counts join the sums, or leave them. */
void tw__redis_sums_schedule(struct tw__redis_schedule *schedule, int sign);
/* A task is about to come into the table of a schedule (`sign` 1), or has left it (-1). Requires: it is not
 * in. */
void tw__redis_sums_task(struct tw__redis_schedule *schedule, int sign);
/* A block of memory becomes a schedule's (`sign` 1), or no longer is (-1). */
void tw__redis_sums_block(struct tw__redis_schedule *schedule, void *block, int sign);
/* The bytes of a schedule's tables; and: one of them was changed, they were `before` bytes. */
size_t tw__redis_sums_table_bytes(const struct tw__redis_schedule *schedule);
void tw__redis_sums_tables(struct tw__redis_schedule *schedule, size_t before);
/* So many more tasks wait in the queues of overdue and past ones; in the queue of a route. */
void tw__redis_sums_queued(struct tw__redis_schedule *schedule, int more);
void tw__redis_sums_held(struct tw__redis_schedule *schedule, int more);

/* A chunk (chunk.h) of a snapshot or of DUMP has at most so many tasks, and ends behind the task that makes it
 * so large. */
enum { TW__REDIS_CHUNK_TASKS = 512, TW__REDIS_CHUNK_BYTES = 64 * 1024 };
/* How many bytes a snapshot or DUMP takes for the schedule at most. It looks at no task, but at the memory that
 * the schedule holds: for payloads of 100 bytes and more that do not compress, the answer is a hundredth to a
 * third too high, as an allocator rounds up; for smaller ones up to three quarters. Requires: few tasks are due
 * a year after the task before. */
uint64_t tw__redis_sums_dump_most(const struct tw__redis_schedule *schedule);
/* From now on `too_large` counts the attached schedules whose dump may take more than `bytes`. Cost: a look at
 * each attached schedule, if that is another limit than before. */
void tw__redis_sums_limit_dump(struct tw__redis_schedules *schedules, uint64_t bytes);

#endif
