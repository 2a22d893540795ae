/* SPDX-License-Identifier: MIT
 *
 * The client that the server asks last after a tick. Needed for Redis 7.0 alone; newer servers get no call.
 */
#ifndef TW_REDIS_ASKED_H
#define TW_REDIS_ASKED_H

#include "server/shared.h"

/* The keys whose waiting clients the server asks after a tick. The later one in this list is the better one to
 * wait on. */
enum tw__redis_asked { TW__REDIS_ASKED_LIST, TW__REDIS_ASKED_STREAM, TW__REDIS_ASKED_QUEUE };

/* Looks at the server's version. To be called when the module is loaded. */
void tw__redis_asked_start(void);

/* Notes that the tick adds to a target, or tells the server that a queue has ready tasks. */
void tw__redis_asked_note(enum tw__redis_asked what, int db, RedisModuleString *key);

/* Sees to it that a client of ours is asked last. To be called at the end of the tick: whatever signals a key
 * as ready comes before. */
void tw__redis_asked_last(RedisModuleCtx *ctx);

/* Frees that client. To be called when the event loop wakes up, before any command. */
void tw__redis_asked_over(void);

#endif
