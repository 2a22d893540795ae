/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of the commands that change the lives of tasks.
 */
#ifndef TW_REDIS_LIVES_H
#define TW_REDIS_LIVES_H

#include "server/shared.h"

/* Opens the queue of a command; *queue is NULL if there is no such key. Returns false after an error
 * reply. */
bool tw__redis_lives_open(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue **queue);

/* The task with an id, or NULL. */
struct tw__redis_task *tw__redis_lives_find(const struct tw__redis_queue *queue, RedisModuleString *id);

/* Replicates the changes that the command has made, if there are any, frees the log, and notifies of the event.
 * Removes the queue if it is empty. */
void tw__redis_lives_close(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_buffer *log,
                           const char *event);

#endif
