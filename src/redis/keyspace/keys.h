/* SPDX-License-Identifier: MIT
 *
 * Queues as keys. This file is the only way to a queue: by its key, by the value of the key, or by a
 * walk over all queues. Each way settles the open batch of deliveries (batch.c) first. So the caller finds no
 * task that was delivered.
 */
#ifndef TW_REDIS_KEYS_H
#define TW_REDIS_KEYS_H

#include "server/shared.h"

/* ---- finding --------------------------------------------------------------------------------------------- */

/* Finds a queue for reading. Sets *queue to NULL if there is no such key. No key stays open, because nothing
 * can remove the queue before the command notifies others: a handler of another module may. Returns false,
 * after an error reply, if the key has another type. */
bool tw__redis_keys_find(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue **queue);

/* Finds a queue without an error reply. Returns NULL if there is none. */
struct tw__redis_queue *tw__redis_keys_peek(RedisModuleCtx *ctx, RedisModuleString *name);

/* Finds a queue for writing, as tw__redis_keys_find(). Returns false also if the call comes too early
 * (tw__redis_caller_is_early()). */
bool tw__redis_keys_open(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue **queue);

/* Returns the queue that the server passes to a callback as the value of a key. */
struct tw__redis_queue *tw__redis_keys_value(const void *value);

/* Returns all queues, for a walk over them. */
struct tw__redis_queues *tw__redis_keys_all(void);

/* Returns whether the queue is still the value of its key, in the selected database. This call is for the
 * batch itself and settles nothing. It removes a key that has expired, and the server notifies other modules
 * of that. */
bool tw__redis_keys_has(RedisModuleCtx *ctx, const struct tw__redis_queue *queue);

/* ---- coming and going ------------------------------------------------------------------------------------ */

/* Makes a queue the value of a key, which does not exist. To be called when the queue has its tasks, because
 * other modules are notified of the new key. */
void tw__redis_keys_make(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue *queue);

/* Sets the name and the database of the queue's key. A name of NULL counts as an empty name. */
void tw__redis_keys_name(struct tw__redis_queue *queue, const RedisModuleString *name, int db);

/* Attaches the queue whose key has come to this name by RENAME or MOVE; until now the queue lived on
 * without a key. */
void tw__redis_keys_renamed(RedisModuleCtx *ctx, RedisModuleString *name);

/* Detaches a queue that is no longer the value of a key. */
void tw__redis_keys_detach(struct tw__redis_queue *queue);

/* The same, as the server's callback: the key's value is removed, or moves to another key. */
void tw__redis_keys_unlinked(RedisModuleKeyOptCtx *context, const void *value);

/* Returns how many tasks the last unlinked queue had, if this was its name. Returns 0 otherwise, and on a
 * second call. */
uint64_t tw__redis_keys_take_unlinked(RedisModuleString *name);

/* ---- telling --------------------------------------------------------------------------------------------- */

/* Reports that a queue was changed, to clients that WATCH its key and by a keyspace notification. A
 * handler may do anything. So no key may be open meanwhile, and afterwards the queue may belong to another
 * key or to none. */
void tw__redis_keys_changed(RedisModuleCtx *ctx, RedisModuleString *name, const char *event);

/* Removes the key if its value is a queue without tasks, and sends a keyspace notification. With
 * `replicate`, replicas get a DEL. The replicas need it unless another replicated command has the same effect
 * there. Example: TW.CANCEL removes an emptied queue on the replica too, TW.FIRED does not. */
void tw__redis_keys_remove_if_empty(RedisModuleCtx *ctx, RedisModuleString *name, bool replicate);

/* The same for at most EMPTY_MAX of the queues without tasks, in any database. Replicates each DEL. */
void tw__redis_keys_remove_empty_ones(RedisModuleCtx *ctx);

/* ---- the data type --------------------------------------------------------------------------------------- */

/* Registers the data type (persist.c): how a queue is saved, loaded, written to the AOF, copied, digested,
 * defragmented and freed. */
int tw__redis_persist_register(RedisModuleCtx *ctx);

#endif
