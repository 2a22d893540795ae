/* SPDX-License-Identifier: MIT
 *
 * How many tasks and bytes a queue has, and the sums over all attached queues. With the sums, no caller
 * has to walk through all queues.
 */
#ifndef TW_REDIS_SUMS_H
#define TW_REDIS_SUMS_H

#include "state.h"

/* The names of the counts. */
extern const char *const tw__redis_count_name[TW__REDIS_COUNTS];

/* Adds the counts of a queue to the sums as it is attached (`sign` 1), or subtracts them as it is detached
 * (-1). */
void tw__redis_sums_queue(struct tw__redis_queue *queue, int sign);
/* Counts a task that is about to be put into the table of a queue (`sign` 1), or that has been taken out
 * of it (-1). Requires: the task is not in the table. */
void tw__redis_sums_task(struct tw__redis_queue *queue, int sign);
/* Counts a block of memory that becomes part of a queue (`sign` 1), or leaves it (-1). */
void tw__redis_sums_block(struct tw__redis_queue *queue, void *block, int sign);
/* The bytes of a queue's tables. The caller takes this number before it changes a table, and passes it to
 * tw__redis_sums_tables() after the change. */
size_t tw__redis_sums_table_bytes(const struct tw__redis_queue *queue);
void tw__redis_sums_tables(struct tw__redis_queue *queue, size_t before);
/* Count `more` tasks, which may be negative: waiting ones in the lines of late, past and stopped tasks; of
 * the lines of routes; of the lines of ready tasks. */
void tw__redis_sums_in_line(struct tw__redis_queue *queue, int more);
void tw__redis_sums_held(struct tw__redis_queue *queue, int more);
void tw__redis_sums_ready(struct tw__redis_queue *queue, int more);
/* Counts a task in the line of dead tasks, with its block, as it comes (`sign` 1) or leaves (-1); and a block
 * alone, of a dead task or of a payload that dead tasks share. */
void tw__redis_sums_dead(struct tw__redis_queue *queue, struct tw__redis_task *task, int sign);
void tw__redis_sums_dead_block(struct tw__redis_queue *queue, void *block, int sign);
/* Counts a task, if it is leased, as it comes to the queue or to this stage (`sign` 1), or leaves it (-1).
 * */
void tw__redis_sums_leased(struct tw__redis_queue *queue, const struct tw__redis_task *task, int sign);
/* Sets whether the queue is paused. */
void tw__redis_sums_pause(struct tw__redis_queue *queue, bool paused);
/* Puts a queue into the list of attached queues: before all others if it is paused, else behind them.
 * Requires: the queue is in no list. */
void tw__redis_sums_list(struct tw__redis_queue *queue);

/* A chunk (chunk.h) of a snapshot or of DUMP has at most TW__REDIS_CHUNK_TASKS tasks. It also ends after the
 * task with which it reaches TW__REDIS_CHUNK_BYTES. */
enum { TW__REDIS_CHUNK_TASKS = 512, TW__REDIS_CHUNK_BYTES = 64 * 1024 };
/* How many bytes a snapshot or DUMP takes for the queue at most. It looks at no task, only at the memory
 * that the queue holds. As an allocator rounds up, the result is too high:
 *   - by a hundredth to a third for payloads of 100 bytes and more that do not compress;
 *   - by up to three quarters for smaller payloads.
 * Requires: few tasks are due a year after the task before them. */
uint64_t tw__redis_sums_dump_most(const struct tw__redis_queue *queue);
/* From now on `too_large` counts the attached queues whose dump may take more than `bytes`. Cost: a look
 * at each attached queue, if the limit differs from the limit before. */
void tw__redis_sums_limit_dump(struct tw__redis_queues *queues, uint64_t bytes);
/* From now on an attached queue that has more than `count` dead tasks is stale (place.h); 0 means no limit.
 * Cost: as tw__redis_sums_limit_dump(). */
void tw__redis_sums_limit_dead(struct tw__redis_queues *queues, uint64_t count);

#endif
