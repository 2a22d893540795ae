/* SPDX-License-Identifier: MIT
 *
 * What TW.SEND and TW.PUT share: the options that both have, the id, the condition, the filing of the task, and
 * the command as replicas and the append-only file get it.
 */
#ifndef TW_REDIS_FILING_H
#define TW_REDIS_FILING_H

#include "server/arguments.h"
#include "server/shared.h"

/* The arguments of one TW.SEND or TW.PUT. */
struct tw__redis_filing {
    const char *command;
    RedisModuleString **argv;
    int argc;
    int id_at; /* the index of the id, which the time follows */
    RedisModuleString *queue, *id;
    uint64_t now_ms, due, every, times;
    bool absolute, new_id;
    unsigned seen;      /* the options that were given: TW__REDIS_OPTION_... */
    unsigned condition; /* of task/conditions.h; 0: none */
    int condition_at;   /* its index among the arguments; 0: none */
    struct tw__redis_plan plan;
    RedisModuleString **payload;
    int payload_count;
};

/* Options, so that none is given twice. */
enum tw__redis_filing_option {
    TW__REDIS_OPTION_NONE,
    TW__REDIS_OPTION_CONDITION = 1,
    TW__REDIS_OPTION_EVERY = 2,
    TW__REDIS_OPTION_TIMES = 4,
    TW__REDIS_OPTION_LATE = 8,
    TW__REDIS_OPTION_KIND = 16,
    TW__REDIS_OPTION_MAXLEN = 32,
    TW__REDIS_OPTION_TRIES = 64,
    TW__REDIS_OPTION_BACKOFF = 128
};

/* Reads an option of one command at argv[*at], with its values, and moves *at to the last of them. Sets
 * *option, or leaves it if the argument is no such option. Returns false after an error reply. */
typedef bool tw__redis_filing_read(RedisModuleCtx *ctx, struct tw__redis_filing *filing, int *at,
                                   enum tw__redis_filing_option *option);

/* Reads the time after the id, and all options up to PAYLOAD. `own` reads those of the command; `expected`
 * names all. Returns false after an error reply. */
bool tw__redis_filing_init(RedisModuleCtx *ctx, struct tw__redis_filing *filing, const char *command, int id_at,
                           RedisModuleString **argv, int argc);
bool tw__redis_filing_options(RedisModuleCtx *ctx, struct tw__redis_filing *filing, tw__redis_filing_read *own,
                              const char *expected);

/* Reads the value of an option: an integer from 1 to 2^63-1. Moves *at to it. */
bool tw__redis_filing_value(RedisModuleCtx *ctx, const struct tw__redis_filing *filing, int *at,
                            const char *what, enum tw__redis_unit unit, uint64_t *value);

/* Returns whether the bytes of id, target and payload are few enough. If not, replies with an error. A task
 * that was acknowledged before is not refused. */
bool tw__redis_filing_fits(RedisModuleCtx *ctx, const struct tw__redis_filing *filing);

/* Files the task, replicates the command, notifies of `event`, and replies with the id; or with nil, if the
 * condition keeps the queue as it is. `hash` is that of the id among the arguments. */
int tw__redis_filing_file(RedisModuleCtx *ctx, struct tw__redis_filing *filing, uint64_t hash,
                          const char *event);

#endif
