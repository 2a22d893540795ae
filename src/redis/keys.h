/* SPDX-License-Identifier: MIT
 *
 * Schedules as keys. This is the one way to a schedule: whoever comes to it by its key, by the value of the
 * key, or by going through all schedules, finds no task that a batch of deliveries has delivered and holds back
 * (batch.c).
 */
#ifndef TW_REDIS_KEYS_H
#define TW_REDIS_KEYS_H

#include "shared.h"

/* ---- finding --------------------------------------------------------------------------------------------- */

/* Finds a schedule to read it; NULL: there is no such key. The key is closed again: nothing can remove the
 * schedule before the command ends. False: the key has another type; the error has been sent. */
bool tw__redis_keys_find(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_schedule **schedule);

/* Opens a schedule to write to it; NULL: there is no such key. False: the key has another type, or the call
 * comes too early; the error has been sent, and no key is open. */
bool tw__redis_keys_open(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleKey **key,
                         struct tw__redis_schedule **schedule);

/* The schedule that the server hands over as the value of a key. */
struct tw__redis_schedule *tw__redis_keys_value(const void *value);

/* All schedules, to go through them. */
struct tw__redis_schedules *tw__redis_keys_all(void);

/* For the batch itself, which nothing is settled for: whether the schedule is still the value of its key, in
 * the selected database. Looking removes a key whose time to live is over, and tells other modules. */
bool tw__redis_keys_has(RedisModuleCtx *ctx, const struct tw__redis_schedule *schedule);

/* Answers that a data set is being loaded. */
int tw__redis_keys_reply_loading(RedisModuleCtx *ctx);

/* ---- coming and going ------------------------------------------------------------------------------------ */

/* Makes a schedule the value of its key, when its tasks are in: other modules are told of the new key. */
void tw__redis_keys_set(RedisModuleCtx *ctx, RedisModuleKey *key, RedisModuleString *name,
                        struct tw__redis_schedule *schedule);

/* Tells a schedule of which key it is the value. A name of NULL is an empty one. */
void tw__redis_keys_name(struct tw__redis_schedule *schedule, const RedisModuleString *name, int db);

/* A key came there under this name, whose value lived on without a key. */
void tw__redis_keys_renamed(RedisModuleCtx *ctx, RedisModuleString *name);

/* A schedule is no longer the value of a key. */
void tw__redis_keys_detach(struct tw__redis_schedule *schedule);

/* The same, as the server says it: the value goes, or goes elsewhere. */
void tw__redis_keys_unlinked(RedisModuleKeyOptCtx *context, const void *value);

/* How many tasks the schedule had that was unlinked last, if this was its name. Asked again, 0. */
uint64_t tw__redis_keys_take_unlinked(RedisModuleString *name);

/* ---- telling --------------------------------------------------------------------------------------------- */

/* Says that a schedule was changed, to those who watch its key and to those who listen. They may do anything,
 * so no key is open meanwhile, and the schedule may be another key's, or nobody's, afterwards. */
void tw__redis_keys_changed(RedisModuleCtx *ctx, RedisModuleString *name, const char *event);

/* Removes the key if its value is a schedule without tasks, and says so to those who listen; replicas have to
 * be told unless what they are told otherwise has the same effect. */
void tw__redis_keys_remove_if_empty(RedisModuleCtx *ctx, RedisModuleString *name, bool replicate);

/* The same for some of the schedules that are there. */
void tw__redis_keys_remove_empty_ones(RedisModuleCtx *ctx);

#endif
