/* SPDX-License-Identifier: MIT
 *
 * Tasks as bytes, a few hundred at a time: for RDB, for AOF, and to copy a queue.
 */
#ifndef TW_REDIS_CHUNK_H
#define TW_REDIS_CHUNK_H

#include "bytes.h"
#include "state.h"

/* Makes chunks of a queue's tasks, in the order of their due times, equal due times in the order of
 * filing:
 *     tw__redis_chunks_init(&chunks, queue);
 *     while (tw__redis_chunks_next(&chunks, &bytes)) ...      the bytes are good until the next call
 *     tw__redis_chunks_fini(&chunks); */
struct tw__redis_chunks {
    struct tw__redis_queues *queues;
    struct tw__redis_task **task;
    uint64_t count, at, dump; /* dump: its number */
    struct tw__redis_buffer buffer;
};
void tw__redis_chunks_init(struct tw__redis_chunks *chunks, const struct tw__redis_queue *queue);
bool tw__redis_chunks_next(struct tw__redis_chunks *chunks, struct tw__redis_bytes *bytes);
void tw__redis_chunks_fini(struct tw__redis_chunks *chunks);

/* For the log: writes a chunk of one task in place of what is in the buffer. The task need not be in a queue
 * yet, and the route is the one that it has or will have. Returns whether the payload is to stand beside the
 * chunk, because it has more bytes than TW__REDIS_CHUNK_PAYLOAD. */
enum { TW__REDIS_CHUNK_PAYLOAD = 512 };
bool tw__redis_chunk_put(struct tw__redis_buffer *buffer, const struct tw__redis_task *task,
                         struct tw__redis_route *route);

/* Whether bytes, of any format, are a chunk, and not changes (change.h). */
bool tw__redis_chunk_is(struct tw__redis_bytes bytes);

/* How the log has a task that was put or sent. */
struct tw__redis_logged {
    bool renews; /* the task of the queue is renewed in its place (keep.c) */
    /* The strings of the payload, beside the chunk; 0: the payload is in the chunk. */
    uint32_t count;
    struct tw__redis_bytes (*string)(void *arg, uint32_t i);
    void *arg;
};

/* Puts the tasks of a chunk into a queue, which has the tasks of the chunks before it: a task may share the
 * payload of one of them. A task of the chunk replaces a task with the same id. Tasks that a target had refused
 * are held again, by the monotonic clock. If `logged` is not NULL, the chunk has one task, which is filed as
 * its put or send did: it takes the place of the task with its id, or stands behind the attempt of that task.
 * Returns false if the bytes are not a chunk of format 1, or if that one task does not fit; then some of the
 * chunk's tasks may be in the queue, and `fault`, which may be NULL, says why. */
bool tw__redis_chunk_read(struct tw__redis_queue *queue, struct tw__redis_bytes bytes,
                          const struct tw__redis_logged *logged, uint64_t now_ms, uint64_t monotonic_ms,
                          struct tw__redis_fault *fault);

#endif
