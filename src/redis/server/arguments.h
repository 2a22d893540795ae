/* SPDX-License-Identifier: MIT
 *
 * Reads the arguments of commands, and replies with an error that names a wrong argument.
 */
#ifndef TW_REDIS_ARGUMENTS_H
#define TW_REDIS_ARGUMENTS_H

#include <redismodule.h>
#include <stdbool.h>
#include <stdint.h>
#include <task/limits.h>

#include "queues/task.h"

/* Replies with an error, which `format` writes. Returns false, as each function here does after an error. */
bool tw__redis_refuse(RedisModuleCtx *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Replies with the server's own error for a wrong number of arguments. Returns REDISMODULE_OK. */
int tw__redis_wrong_arity(RedisModuleCtx *ctx);

/* Returns whether an argument is this word, without regard to case. */
bool tw__redis_argument_is(RedisModuleString *argument, const char *word);

/* The unit of a number, which an error names: who writes 30m for a delay learns that it is in milliseconds. */
enum tw__redis_unit {
    TW__REDIS_TEXT, /* no number at all */
    TW__REDIS_COUNT,
    TW__REDIS_MS,
    TW__REDIS_UNIX_MS
};

/* Reads a number from min to max. An error names the argument. */
bool tw__redis_argument_number(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what,
                               enum tw__redis_unit unit, long long min, long long max, uint64_t *number);

/* Replies with an error: this argument stands for `what`, and `expected` was expected. */
bool tw__redis_argument_error(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what,
                              const char *expected);
/* Replies with an error: the caller has left out `what`, and `expected` was expected. */
bool tw__redis_argument_missing(RedisModuleCtx *ctx, const char *what, const char *expected);
/* Replies with an error: the caller has left out the value behind a word, or the number. */
bool tw__redis_argument_no_value(RedisModuleCtx *ctx, const char *word, const char *expected);
bool tw__redis_argument_no_number(RedisModuleCtx *ctx, const char *word, enum tw__redis_unit unit,
                                  long long min, long long max);

/* Whether an id, which the caller names, has 1 to `most` bytes. Replies with an error if not. */
bool tw__redis_argument_id(RedisModuleCtx *ctx, RedisModuleString *id, size_t most);
/* The same for each `step`-th of `argc` arguments: the ids of tasks that are there, dead periods too. */
bool tw__redis_argument_ids(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int step);

/* An option with one value. */
struct tw__redis_option {
    const char *word;
    enum tw__redis_unit unit;
    long long min, max;       /* of a number */
    uint64_t *number;         /* set to the number that the caller gives; NULL: the value is read elsewhere */
    RedisModuleString *value; /* NULL: the caller did not give it */
};

/* An option that is a number of the contract. */
static inline struct tw__redis_option tw__redis_option_of(const char *word, enum tw__redis_unit unit,
                                                          enum tw__task_number of, uint64_t *number)
{
    struct tw__task_range range = tw__task_range(of);
    return (struct tw__redis_option){word, unit, (long long)range.least, (long long)range.most, number, NULL};
}

/* Reads options in any order, each at most once, and then their numbers in the order of the list, which ends
 * with a NULL word. `expected` names all options. */
bool tw__redis_argument_options(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                                struct tw__redis_option *options, const char *expected);

/* Reads the milliseconds of an option that the caller has to give. */
bool tw__redis_argument_option_ms(RedisModuleCtx *ctx, const struct tw__redis_option *option, uint64_t *ms);

/* ---- times and conditions -------------------------------------------------------------------------------- */

/* Reads IN ms or AT unix-ms, the first two of `argc` arguments. Sets *now_ms to the time, or to 0 if filing the
 * task will not ask for the time, because the due time is absolute and far away. To read the clock takes a
 * thirtieth of a TW.MOVE. An error names IN and AT if they are missing. */
bool tw__redis_argument_time(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, uint64_t *now_ms,
                             uint64_t *due);

/* Reads a condition, one of task/conditions.h. Returns whether the argument is one. */
bool tw__redis_argument_condition(RedisModuleString *argument, unsigned *condition);
/* The word of a condition. */
const char *tw__redis_conditions_word(unsigned condition);

/* Replies that a second condition was given beside the first one, or the same one again. */
bool tw__redis_conditions_refuse(RedisModuleCtx *ctx, unsigned first, RedisModuleString *second);

/* Returns whether the conditions let a task that is due at `due` take the place of `old`, which may be NULL. */
bool tw__redis_conditions_met(unsigned conditions, const struct tw__redis_task *old, uint64_t due);

#endif
