/* SPDX-License-Identifier: MIT
 *
 * Calls of the scheduler as values, for assertions.
 */
#ifndef TESTS_SCHED_OUTCOME_H
#define TESTS_SCHED_OUTCOME_H

#include <tickwheel/sched.h>

/* The bytes of an object, as a key. */
#define BYTES_OF(object) ((struct tw_bytes){&(object), sizeof(object)})

static inline enum tw_cancel try_cancel(struct tw_sched *sched, uint64_t id)
{
    enum tw_cancel found;
    tw_sched_cancel(sched, id, &found);
    return found;
}

static inline enum tw_cancel try_key_cancel(struct tw_sched *sched, struct tw_bytes key, void **value)
{
    enum tw_cancel found;
    tw_sched_key_cancel(sched, key, &found, value);
    return found;
}

/* Returns how many tasks were handed over, or the error. */
static inline int64_t try_drain(struct tw_sched *sched, tw_sched_visit_fn *visit, void *arg)
{
    uint64_t handed = UINT64_MAX;
    int error = tw_sched_drain(sched, visit, arg, &handed);
    return error != 0 ? error : (int64_t)handed;
}

static inline uint64_t try_stop(struct tw_sched *sched, unsigned flags, tw_sched_visit_fn *visit, void *arg)
{
    uint64_t handed;
    tw_sched_stop(sched, flags, visit, arg, &handed);
    return handed;
}

static inline uint64_t try_run_some(struct tw_sched *sched, uint64_t limit)
{
    uint64_t taken;
    tw_sched_run_some(sched, limit, &taken);
    return taken;
}

#endif
