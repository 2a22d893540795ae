/* SPDX-License-Identifier: MIT
 *
 * How many tasks the runner claims ahead of the workers.
 */
#ifndef TW_STORE_PACE_H
#define TW_STORE_PACE_H

#include "pool.h"

struct tw__store_pace {
    uint64_t ahead;  /* how many jobs may wait for a worker */
    bool more_ready; /* more tasks may be ready than `ahead` lets the runner claim */
};

void tw__store_pace_init(struct tw__store_pace *pace, uint64_t workers);

/* Returns how many tasks may be claimed now, of at most `room`. A worker that has nothing to do gets one in any
 * case. `max_jobs`: the most that may ever wait. The runner's thread alone. */
uint64_t tw__store_pace_claims(struct tw__store_pace *pace, struct tw__store_pool *pool, uint64_t max_jobs,
                               uint64_t room);

/* Takes the jobs back that have waited for a worker too long. Their answers come with those of the others. */
void tw__store_pace_take_back(struct tw__store_pace *pace, struct tw__store_pool *pool);

/* Returns when that is to be done next, on the monotonic clock; UINT64_MAX: no job waits. */
uint64_t tw__store_pace_next(const struct tw__store_pool *pool);

#endif
