/* SPDX-License-Identifier: MIT
 *
 * The arguments of TW.PUT and TW.SEND (options.c).
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

#endif
