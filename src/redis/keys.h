/* SPDX-License-Identifier: MIT
 *
 * Schedules as keys.
 */
#ifndef TW_REDIS_KEYS_H
#define TW_REDIS_KEYS_H

#include "shared.h"

enum tw__opened { TW__OPEN_NONE, TW__OPEN_SCHEDULE, TW__OPEN_OTHER };

/* Looks a key up: what it is, and the schedule. */
enum tw__opened tw__keys_open(RedisModuleKey *key, struct tw__schedule **schedule);

/* Tells a schedule of which key it is the value. A name of NULL is an empty one. */
void tw__keys_name(struct tw__schedule *schedule, const RedisModuleString *name, int db);

/* Says that a schedule was changed, to those who watch its key and to those who listen. They may do anything, so no key
 * is open meanwhile, and the schedule may be another key's, or nobody's, afterwards. */
void tw__keys_changed(RedisModuleCtx *ctx, RedisModuleString *name, const char *event);

/* Removes the key if its value is a schedule without tasks, and says so to those who listen; replicas have to be told
 * unless what they are told otherwise has the same effect. */
void tw__keys_remove_if_empty(RedisModuleCtx *ctx, RedisModuleString *name, bool replicate);

/* The same for some of the schedules that are there. */
void tw__keys_remove_empty_ones(RedisModuleCtx *ctx);

#endif
