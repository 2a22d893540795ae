/* SPDX-License-Identifier: MIT
 *
 * Arguments of commands: reading them, and saying what is wrong with them.
 */
#ifndef TW_REDIS_ARGUMENTS_H
#define TW_REDIS_ARGUMENTS_H

#include <redismodule.h>
#include <stdbool.h>
#include <stdint.h>

#include "schedules/task.h"

/* Whether an argument is this word, without regard to case. */
bool tw__redis_argument_is(RedisModuleString *argument, const char *word);

/* A number within bounds; false: an error that names the argument has been sent. */
bool tw__redis_argument_number(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what,
                               long long min, long long max, uint64_t *number);

/* Answers with an error: `what` is this argument, and something else was expected. */
int tw__redis_argument_error(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what,
                             const char *expected);

/* An option with one value. */
struct tw__redis_option {
    const char *word;
    RedisModuleString *value; /* NULL: it was not given */
};

/* Reads options in any order, each at most once; the list ends with a NULL word. `expected` names them all.
 * False: the error has been sent. */
bool tw__redis_argument_options(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                                struct tw__redis_option *options, const char *expected);

/* Reads the value of an option, if it was given. False: the error has been sent. */
bool tw__redis_argument_option_number(RedisModuleCtx *ctx, const struct tw__redis_option *option, long long min,
                                      long long max, uint64_t *number);

/* ---- times and conditions -------------------------------------------------------------------------------- */

/* Reads IN ms or AT unix-ms: two arguments. *absolute: it was AT. False: the error has been sent. */
bool tw__redis_argument_time(RedisModuleCtx *ctx, RedisModuleString **argv, uint64_t now_ms, uint64_t *due,
                             bool *absolute);

/* NX, XX, GT, LT. */
enum tw__redis_condition {
    TW__REDIS_ALWAYS,
    TW__REDIS_ONLY_NEW,
    TW__REDIS_ONLY_OLD,
    TW__REDIS_LATER,
    TW__REDIS_EARLIER
};

/* Reads a condition. Returns whether the argument is one. */
bool tw__redis_argument_condition(RedisModuleString *argument, enum tw__redis_condition *condition);

/* Whether a task that is due at `due` may be put in the place of `old`, which may be NULL. */
bool tw__redis_condition_allows(enum tw__redis_condition condition, const struct tw__redis_task *old,
                                uint64_t due);

#endif
