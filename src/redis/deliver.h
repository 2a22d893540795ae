/* SPDX-License-Identifier: MIT
 *
 * From a due task to an entry of its Stream, or an element of its List.
 */
#ifndef TW_REDIS_DELIVER_H
#define TW_REDIS_DELIVER_H

#include "batch.h"

/* Delivers a task that is filed nowhere; afterwards it is gone, filed again, or held by its route.
 * Returns TW__DEFER_NONE, or why nothing at all can be delivered now: then the task is filed nowhere still. */
enum tw__defer tw__deliver(RedisModuleCtx *ctx, struct tw__task *task, uint64_t now_ms);

enum tw__drained {
    TW__DRAINED,          /* *delivered says how many; 0: none can be */
    TW__DRAINED_NONE_YET, /* the time was over while each was refused: the next call goes on behind these */
    TW__DRAIN_FORBIDDEN /* the caller may not write the target of one; nothing was delivered, the error has been sent */
};

/* Delivers up to `limit` of a schedule's tasks whatever their time, for about 20 ms. */
enum tw__drained tw__deliver_now(RedisModuleCtx *ctx, struct tw__schedule *schedule, uint64_t limit,
                                 uint64_t *delivered);

/* Whether deliveries may be made at all, and if not, why. */
enum tw__defer tw__deliver_allowed(RedisModuleCtx *ctx);

/* Lateness of what was delivered: the value that `share` of all do not exceed, in us. */
uint64_t tw__lateness_us(double share);
uint64_t tw__lateness_us_max(void);

/* That of the past ten seconds, and how many deliveries there were. */
struct tw__lateness {
    uint64_t fired, p50_us, p90_us, p99_us, p999_us, max_us;
};
struct tw__lateness tw__lateness_recent(void);
/* The same of the past minute: 54 to 60 seconds. */
struct tw__lateness tw__lateness_minute(void);

#endif
