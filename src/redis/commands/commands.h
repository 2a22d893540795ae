/* SPDX-License-Identifier: MIT
 *
 * The commands. docs/redis.md describes each one, and docs.c lists them. Beside them stand INFO, the server's
 * events, and the functions that several commands share.
 */
#ifndef TW_REDIS_COMMANDS_H
#define TW_REDIS_COMMANDS_H

#include "server/shared.h"

/* Tells the server the commands, with their keys and their descriptions. */
int tw__redis_commands_register(RedisModuleCtx *ctx);

#define TW__REDIS_COMMAND(name)                                                                                \
    int tw__redis_##name##_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)

/* Filing and moving. */
TW__REDIS_COMMAND(send);
TW__REDIS_COMMAND(put);
TW__REDIS_COMMAND(cancel);
TW__REDIS_COMMAND(move);
TW__REDIS_COMMAND(promote);
TW__REDIS_COMMAND(pause);
TW__REDIS_COMMAND(resume);
/* Workers. */
TW__REDIS_COMMAND(take);
TW__REDIS_COMMAND(ack);
TW__REDIS_COMMAND(nack);
TW__REDIS_COMMAND(touch);
/* Dead tasks. */
TW__REDIS_COMMAND(dead);
TW__REDIS_COMMAND(replay);
TW__REDIS_COMMAND(purge);
/* Looks. */
TW__REDIS_COMMAND(get);
TW__REDIS_COMMAND(len);
TW__REDIS_COMMAND(next);
TW__REDIS_COMMAND(scan);
TW__REDIS_COMMAND(range);
TW__REDIS_COMMAND(forecast);
TW__REDIS_COMMAND(info);
TW__REDIS_COMMAND(top);
/* Of the append-only file and the primary alone. */
TW__REDIS_COMMAND(fired);
TW__REDIS_COMMAND(load);

/* ---- events and INFO ------------------------------------------------------------------------------------- */

/* Registers the handlers of keyspace notifications and of server events. */
int tw__redis_events_register(RedisModuleCtx *ctx);

/* Registers INFO tickwheel. */
int tw__redis_info_register(RedisModuleCtx *ctx);

/* Reads the server's settings that INFO warns by. */
void tw__redis_info_settings(RedisModuleCtx *ctx);

/* Returns how the server's present configuration endangers tasks, or "none". */
const char *tw__redis_info_warning(RedisModuleCtx *ctx);

/* ---- shared by commands ---------------------------------------------------------------------------------- */

/* The task with an id, or NULL. `queue` may be NULL. */
struct tw__redis_task *tw__redis_changes_find(const struct tw__redis_queue *queue, RedisModuleString *id);

/* The end of a command that has changed tasks: replicates its changes, if there are any, notifies of the event,
 * and removes the queue if it is empty. */
void tw__redis_changes_close(RedisModuleCtx *ctx, RedisModuleString *name, const char *event);

/* Begins or ends the pause of a queue. `queue` is NULL if the key does not exist: then the pause makes a queue.
 * Requires: the queue is not in this state. */
void tw__redis_pause_set(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue *queue, bool on);

/* ---- the tasks that a command names: ALL, or IDS n id [id ...] (named.c) --------------------------------- */

/* ALL is at most so many tasks in one call, because the server serves nobody else meanwhile. */
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
 * the queue, as tw__redis_keys_open() does, and names the tasks. Returns false after an error reply. The
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
