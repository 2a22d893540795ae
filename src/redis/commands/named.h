/* SPDX-License-Identifier: MIT
 *
 * The tasks that a command names: ALL, or IDS n id [id ...]. ALL is at most TW__REDIS_NAMED_MAX tasks in one
 * call, because the server serves nobody else meanwhile.
 */
#ifndef TW_REDIS_NAMED_H
#define TW_REDIS_NAMED_H

#include "queues/state.h"
#include "server/shared.h"

enum { TW__REDIS_NAMED_MAX = TW__TASK_MANY };

struct tw__redis_named {
    RedisModuleString **ids; /* NULL: the tasks in `all`, which the command gathers */
    size_t count;
    struct tw__redis_vector all;
    bool (*fits)(const struct tw__redis_task *task, uint64_t now_ms); /* whether the command is for this task */
    uint64_t now_ms;                                                  /* the time that `fits` gets */
    /* Adds those of all tasks that the command is for to `all`. */
    void (*gather)(const struct tw__redis_queue *queue, struct tw__redis_named *named);
};

/* Reads queue ALL|IDS n id [id ...] and, unless `due_ms` is NULL, [IN ms|AT unix-ms], which sets *due_ms. Opens
 * the queue, as tw__redis_lives_open() does, and names the tasks. Returns false after an error reply. The
 * caller has set `fits`, `now_ms` and `gather`, and frees `all`. */
bool tw__redis_named_open(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                          struct tw__redis_named *named, uint64_t *due_ms, struct tw__redis_queue **queue);

/* The task that is named at this place; NULL: the command is not for it. An id may be named twice, so it is
 * looked up when its turn comes. */
struct tw__redis_task *tw__redis_named_at(const struct tw__redis_queue *queue,
                                          const struct tw__redis_named *named, size_t i);

/* Returns whether the caller may write the targets of all these tasks, the tasks that have one. If not, replies
 * with an error. Ends at `until_us` of the monotonic clock, and leaves only the tasks seen by then named. */
bool tw__redis_named_may_deliver(RedisModuleCtx *ctx, const struct tw__redis_queue *queue,
                                 struct tw__redis_named *named, uint64_t until_us);

#endif
