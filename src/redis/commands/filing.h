/* SPDX-License-Identifier: MIT
 *
 * TW.PUT and TW.SEND, in two steps: reading the arguments, and filing the task.
 */
#ifndef TW_REDIS_FILING_H
#define TW_REDIS_FILING_H

#include <task/keepdue.h>

#include "server/arguments.h"
#include "server/shared.h"

/* The arguments of one TW.SEND or TW.PUT. */
struct tw__redis_filing {
    RedisModuleString **argv;
    int argc;
    RedisModuleString *queue, *id;
    uint64_t now_ms, due, every, times;
    bool new_id;
    unsigned seen;      /* the options that were given (options.c) */
    unsigned condition; /* of task/conditions.h, but not KEEPDUE; 0: none */
    bool keepdue;
    enum tw__task_keepdue how;
    struct tw__redis_plan plan;
    RedisModuleString **payload;
    int payload_count;
};

/* Reads all arguments of a TW.PUT or, with `send`, of a TW.SEND. They reach to the id at least. Returns false
 * after an error reply. */
bool tw__redis_filing_read(RedisModuleCtx *ctx, struct tw__redis_filing *filing, bool send,
                           RedisModuleString **argv, int argc);

/* Files the task, logs the outcome, notifies of `event`, and replies with the id; or with nil, if the
 * condition keeps the queue as it is. `hash` is that of the id among the arguments. */
int tw__redis_filing_file(RedisModuleCtx *ctx, struct tw__redis_filing *filing, uint64_t hash,
                          const char *event);

#endif
