/* SPDX-License-Identifier: MIT
 *
 * Queues that are copied through chunks and compared, and chunks of any bytes, for the tests of chunks and
 * of changes.
 */
#ifndef TW_TESTS_REDIS_COPIES_H
#define TW_TESTS_REDIS_COPIES_H

#include "fixture.h"

/* Attempt states of each stage, with numbers at their limits; the strings are empty. A task for a target may
 * have the last two, which are behind the attempt of another task, and dead. */
enum { ATTEMPTS = 5, DEAD_ATTEMPT = ATTEMPTS - 1, REPLACED_ATTEMPT = ATTEMPTS - 2 };
extern const struct tw__redis_attempt attempt_of[ATTEMPTS];

/* Checks the order and the count of the dead tasks. */
void check_dead(const struct tw__redis_queue *queue);
/* Compares everything that a chunk keeps, of two queues of the same state or of two. */
void assert_queues_equal(const struct tw__redis_queue *a, const struct tw__redis_queue *b);
/* Makes a queue from the chunks of another one, and counts the chunks. */
struct tw__redis_queue *copy_through_chunks(const struct tw__redis_queue *queue, unsigned *chunks_made);

/* Checks that the tasks of a queue are valid, whatever bytes they were read from. `good`: the bytes were not
 * refused; then the queue is also copied. */
void check_what_was_read(struct tw__redis_queue *queue, bool good);
/* Reads a chunk into a new queue, checks it, and frees it again. Returns how many tasks it had, or -1 if the
 * bytes were refused. Requires: there is no other queue. */
int read_chunk(const char *bytes, size_t size);
/* Reads bytes as a chunk, if they are one, and then as the chunk of a put or of a renewal in the log, with so
 * many strings of a payload beside it. */
void read_logged(const char *bytes, size_t size, uint32_t strings);

#endif
