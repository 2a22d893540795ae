/* SPDX-License-Identifier: MIT
 *
 * The wait after a failure.
 */
#ifndef TW_TASK_BACKOFF_H
#define TW_TASK_BACKOFF_H

#include <stdint.h>

/* How often and when an attempt is made again. Each member is resolved: none means "as configured". */
struct tw__task_retry {
    uint32_t tries;          /* failures until the task is dead */
    uint32_t factor_percent; /* of a wait to the wait before it */
    uint32_t jitter;         /* percent */
    uint64_t first_ms, max_ms;
};

/* Returns the wait that follows a wait: `factor_percent` of it, at most max_ms. It is longer by at least one,
 * up to max_ms, unless the factor is 1. */
uint64_t tw__task_wait_after(const struct tw__task_retry *retry, uint64_t wait_ms);

/* Returns the wait after failure number n, without jitter. Requires: n > 0. */
uint64_t tw__task_wait(const struct tw__task_retry *retry, uint32_t n);

/* Returns a wait that is shorter or longer by up to `percent`, as the token of the attempt says. So each look
 * reckons the same time. */
uint64_t tw__task_jitter(uint64_t wait_ms, uint32_t percent, uint64_t token);

/* Returns when the attempt comes that follows failure number n, or a lapse in its place, at `end_ms`.
 * Requires: n > 0. */
uint64_t tw__task_retry_at(const struct tw__task_retry *retry, uint32_t n, uint64_t token, uint64_t end_ms);

#endif
