/* SPDX-License-Identifier: MIT
 *
 * Arguments of commands: reading them, and saying what is wrong with them.
 */
#ifndef TW_REDIS_ARGUMENTS_H
#define TW_REDIS_ARGUMENTS_H

#include <redismodule.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether an argument is this word, without regard to case. */
bool tw__argument_is(RedisModuleString *argument, const char *word);

/* A number within bounds; false: an error that names the argument has been sent. */
bool tw__argument_number(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what, long long min,
                         long long max, uint64_t *number);

/* Answers with an error: `what` is this argument, and something else was expected. */
int tw__argument_error(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what,
                       const char *expected);

/* An option with one value. */
struct tw__option {
    const char *word;
    RedisModuleString *value; /* NULL: it was not given */
};

/* Reads options in any order, each at most once; the list ends with a NULL word. `expected` names them all. False: the
 * error has been sent. */
bool tw__argument_options(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, struct tw__option *options,
                          const char *expected);

/* Reads the value of an option, if it was given. False: the error has been sent. */
bool tw__argument_option_number(RedisModuleCtx *ctx, const struct tw__option *option, long long min,
                                long long max, uint64_t *number);

#endif
