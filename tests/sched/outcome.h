/* SPDX-License-Identifier: MIT
 *
 * Keys and drains as values, for assertions.
 */
#ifndef TESTS_SCHED_OUTCOME_H
#define TESTS_SCHED_OUTCOME_H

#include <tickwheel/sched.h>

/* The bytes of an object, as a key. */
#define BYTES_OF(object) ((struct tw_bytes){&(object), sizeof(object)})

/* Returns how many tasks were handed over, or the error. */
static inline int64_t try_drain(struct tw_sched *sched, tw_sched_visit_fn *visit, void *arg)
{
    uint64_t handed = UINT64_MAX;
    int error = tw_sched_drain(sched, visit, arg, &handed);
    return error != 0 ? error : (int64_t)handed;
}

#endif
