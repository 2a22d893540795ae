/* SPDX-License-Identifier: MIT
 *
 * The memory of tasks, their ids and details. The caller holds the shard's lock, unless a comment says
 * otherwise.
 */
#ifndef TW_SCHED_POOL_H
#define TW_SCHED_POOL_H

#include "internal.h"

/* ---- ids ------------------------------------------------------------------------------------------------ */

static inline struct tw__sched_task *tw__sched_task_at(const struct tw__sched_shard *shard, uint32_t index)
{
    return &shard->chunks[index >> TW__SCHED_CHUNK_SHIFT][index & (TW__SCHED_CHUNK - 1)];
}

static inline uint64_t tw__sched_task_id(const struct tw__sched_shard *shard, const struct tw__sched_task *task)
{
    return (uint64_t)task->generation << 32 | shard->number << TW__SCHED_INDEX_BITS | task->index;
}

static inline struct tw__sched_details *tw__sched_task_details(const struct tw__sched_task *task)
{
    return task->detailed ? (struct tw__sched_details *)task->arg : NULL;
}

/* The shard that an id names, or NULL if there is no such shard. No lock is needed. */
static inline struct tw__sched_shard *tw__sched_shard_of(const struct tw_sched *sched, uint64_t id)
{
    uint32_t number = (uint32_t)id >> TW__SCHED_INDEX_BITS;
    return number < tw__sched_made(sched) ? sched->shard[number] : NULL;
}

/* The task that an id names, or NULL if there is none, or it has ended. */
static inline struct tw__sched_task *tw__sched_task_find(const struct tw__sched_shard *shard, uint64_t id)
{
    TW_ASSERT(tw__sched_locked(shard));
    uint32_t index = (uint32_t)id & ((1u << TW__SCHED_INDEX_BITS) - 1);
    if (index >> TW__SCHED_CHUNK_SHIFT >= shard->chunk_count)
        return NULL;
    struct tw__sched_task *task = tw__sched_task_at(shard, index);
    return task->generation == id >> 32 && task->state != TW__SCHED_FREE ? task : NULL;
}

/* ---- beginning and end ---------------------------------------------------------------------------------- */

/* The most tasks that can still be added: 2^25, less those that there are. */
uint64_t tw__sched_tasks_most(struct tw__sched_shard *shard);
/* Makes room for n tasks, or for n details. Returns false if there is no memory. Requires: n is not more than
 * tw__sched_tasks_most(). */
bool tw__sched_tasks_reserve(struct tw__sched_shard *shard, uint64_t n);
bool tw__sched_details_reserve(struct tw__sched_shard *shard, uint64_t n);
/* Gives all memory back. The caller is the last that uses the shard, so no lock is needed. */
void tw__sched_pool_end(struct tw__sched_shard *shard);

/* Takes a task from the free list. The task is then in no list, and the caller files it. NULL: no memory. */
struct tw__sched_task *tw__sched_task_take(struct tw__sched_shard *shard);
/* Ends a task: from here on its id is stale and its key does not name it. Drops its details. */
void tw__sched_task_drop(struct tw__sched_shard *shard, struct tw__sched_task *task);
/* Ends a PENDING task in the same way, but takes it out of the wheel a little later. */
void tw__sched_task_loosen(struct tw__sched_shard *shard, struct tw__sched_task *task);
/* Takes the loose tasks out of the wheel. S6 tells before which calls this is needed. */
void tw__sched_loose_settle(struct tw__sched_shard *shard);

/* Details for a task without a key. NULL: no memory. */
struct tw__sched_details *tw__sched_details_take(struct tw__sched_shard *shard);
/* Gives up one holder's claim to the details, and frees the details with the last claim. */
void tw__sched_details_drop(struct tw__sched_shard *shard, struct tw__sched_details *details);

/* ---- keys ----------------------------------------------------------------------------------------------- */

/* The details of a task with a key. */
struct tw__sched_keyed {
    struct tw__sched_details details;
    uint32_t tag; /* the hash's lower half */
    unsigned char bytes[];
};

static inline const struct tw__sched_keyed *tw__sched_keyed_of(const struct tw__sched_details *details)
{
    return (const struct tw__sched_keyed *)(const void *)details;
}

/* The key of details that have one. */
static inline const void *tw__sched_key_bytes(const struct tw__sched_details *details)
{
    return tw__sched_keyed_of(details)->bytes;
}

/* A key and its tag, which is the lower half of its hash. */
struct tw__sched_key {
    const void *bytes;
    size_t size;
    uint32_t tag;
};

/* Makes a key name a task. Returns new details for that task, which the caller fills in; NULL: no memory. */
struct tw__sched_details *tw__sched_key_new(struct tw__sched_shard *shard, const struct tw__sched_task *task,
                                            const struct tw__sched_key *key);

/* ---- the quota ------------------------------------------------------------------------------------------ */

/* Counts a task towards max_pending. Returns false if there are too many tasks already. */
bool tw__sched_quota_take(struct tw__sched_shard *shard, struct tw__sched_task *task);
void tw__sched_quota_give_back(struct tw__sched_shard *shard, struct tw__sched_task *task);

/* ---- looking -------------------------------------------------------------------------------------------- */

/* Whether a RUNNING task will be filed again, unless a call changes that before the callback returns. */
static inline bool tw__sched_task_goes_on(const struct tw__sched_task *task)
{
    const struct tw__sched_details *details = tw__sched_task_details(task);
    return !task->dead && (task->again || (details != NULL && details->period_ns > 0 && details->left > 0));
}

/* The function and the argument of a task. */
static inline struct tw__sched_value tw__sched_task_value(const struct tw__sched_task *task)
{
    const struct tw__sched_details *details = tw__sched_task_details(task);
    return details != NULL ? (struct tw__sched_value){details->fn, details->arg}
                           : (struct tw__sched_value){task->fn, task->arg};
}

/* Describes a task. */
void tw__sched_task_describe(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                             struct tw_task *seen);

/* ---- arguments ------------------------------------------------------------------------------------------ */

/* Whether the release hook is to receive a value. */
static inline bool tw__sched_value_owned(const struct tw_sched *sched, const struct tw__sched_value *value)
{
    const struct tw_sched_options *options = &sched->options;
    return options->release != NULL && value->fn != NULL &&
           (options->release_of == NULL || options->release_of == value->fn);
}

/* Passes a value to the release hook, if the hook is to receive it. The caller holds no lock. */
static inline void tw__sched_value_release(const struct tw_sched *sched, const struct tw__sched_value *value)
{
    if (tw__sched_value_owned(sched, value))
        sched->options.release(sched->options.hook_arg, value->arg);
}

#endif
