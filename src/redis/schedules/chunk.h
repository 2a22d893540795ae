/* SPDX-License-Identifier: MIT
 *
 * Tasks as bytes, a few hundred at a time: what RDB and AOF keep, and what a copy is made of.
 */
#ifndef TW_REDIS_CHUNK_H
#define TW_REDIS_CHUNK_H

#include "state.h"

/* Makes chunks of a schedule's tasks, in their order:
 *     tw__chunks_init(&chunks, schedule);
 *     while (tw__chunks_next(&chunks, &bytes)) ...      the bytes are good until the next call
 *     tw__chunks_fini(&chunks); */
struct tw__chunks {
    struct tw__schedules *schedules;
    struct tw__task **task;
    uint64_t count, at;
    char *buffer;
    size_t size, capacity;
};
void tw__chunks_init(struct tw__chunks *chunks, const struct tw__schedule *schedule);
bool tw__chunks_next(struct tw__chunks *chunks, struct tw__bytes *bytes);
void tw__chunks_fini(struct tw__chunks *chunks);

/* Puts a chunk's tasks into a schedule. A task that is there already is replaced. Returns false when the bytes
 * are not a chunk; then some of its tasks may be in. */
bool tw__chunk_read(struct tw__schedule *schedule, struct tw__bytes bytes, uint64_t now_ms);

#endif
