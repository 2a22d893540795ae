/* SPDX-License-Identifier: MIT
 *
 * The memory of tasks, their ids and details. The caller holds the shard's lock, unless a comment says
 * otherwise.
 */
#ifndef TW_SCHED_POOL_H
#define TW_SCHED_POOL_H

#include "internal.h"

/* ---- ids ------------------------------------------------------------------------------------------------ */

static inline struct tw__sched_task *tw__sched_task_at(const struct tw__sched_lines *lines, uint32_t index)
{
    return &lines->chunks[index >> TW__SCHED_CHUNK_SHIFT][index & (TW__SCHED_CHUNK - 1)];
}

/* The number of lines of one kind. */
static inline uint32_t tw__sched_lines_made(const struct tw__sched_lines *lines)
{
    return lines->chunk_count << TW__SCHED_CHUNK_SHIFT;
}

static inline uint64_t tw__sched_task_id(const struct tw__sched_shard *shard, const struct tw__sched_task *task)
{
    uint32_t kind = task->keyed;
    return (uint64_t)task->generation << 32 | kind << 31 | shard->number << TW__SCHED_INDEX_BITS | task->index;
}

/* The details of a task that repeats. NULL: the task runs once. */
static inline struct tw__sched_details *tw__sched_task_details(const struct tw__sched_task *task)
{
    return task->detailed ? (struct tw__sched_details *)task->arg : NULL;
}

/* The number of the shard in an id. */
static inline uint32_t tw__sched_id_shard(uint64_t id)
{
    return (uint32_t)id >> TW__SCHED_INDEX_BITS & ((1u << TW__SCHED_SHARD_BITS) - 1);
}

/* The shard that an id names, or NULL if there is no such shard. No lock is needed. */
static inline struct tw__sched_shard *tw__sched_shard_of(const struct tw_sched *sched, uint64_t id)
{
    uint32_t number = tw__sched_id_shard(id);
    return number < tw__sched_made(sched) ? sched->shard[number] : NULL;
}

/* The task that an id names, or NULL if there is none, or it has ended. */
static inline struct tw__sched_task *tw__sched_task_find(const struct tw__sched_shard *shard, uint64_t id)
{
    TW_ASSERT(tw__sched_locked(shard));
    uint32_t index = (uint32_t)id & ((1u << TW__SCHED_INDEX_BITS) - 1);
    const struct tw__sched_lines *lines = &shard->lines[(uint32_t)id >> 31];
    if (index >= tw__sched_lines_made(lines))
        return NULL;
    struct tw__sched_task *task = tw__sched_task_at(lines, index);
    return task->generation == id >> 32 && task->state != TW__SCHED_FREE ? task : NULL;
}

/* ---- beginning and end ---------------------------------------------------------------------------------- */

/* The most tasks without keys that can still be added: 2^25, less the number that there is. */
uint64_t tw__sched_tasks_most(struct tw__sched_shard *shard);
/* Makes room for n tasks without keys, or for n details. Returns false if there is no memory. Requires: n is
 * not more than tw__sched_tasks_most(). */
bool tw__sched_tasks_reserve(struct tw__sched_shard *shard, uint64_t n);
bool tw__sched_details_reserve(struct tw__sched_shard *shard, uint64_t n);
/* Gives all memory back. The caller is the last that uses the shard, so no lock is needed. */
void tw__sched_pool_end(struct tw__sched_shard *shard);

/* Takes a task of one kind from the free list of that kind. The task is then in no list, and the caller files
 * it. NULL: no memory. */
struct tw__sched_task *tw__sched_task_take(struct tw__sched_shard *shard, enum tw__sched_kind kind);
/* Ends a task: from here on its id is stale and its key does not name it. Drops its details and its key. */
void tw__sched_task_drop(struct tw__sched_shard *shard, struct tw__sched_task *task);
/* Ends a PENDING task in the same way, but takes it out of the wheel a little later. */
void tw__sched_task_loosen(struct tw__sched_shard *shard, struct tw__sched_task *task);
/* Takes the loose tasks out of the wheel. S6 tells before which calls this is needed. */
void tw__sched_loose_settle(struct tw__sched_shard *shard);

/* Details for a task that repeats. NULL: no memory. */
struct tw__sched_details *tw__sched_details_take(struct tw__sched_shard *shard, enum tw__sched_kind kind);
void tw__sched_details_drop(struct tw__sched_shard *shard, enum tw__sched_kind kind,
                            struct tw__sched_details *details);

/* ---- keys ----------------------------------------------------------------------------------------------- */

/* The slot of the line with this index, which is a line for a task with a key. */
static inline struct tw__sched_slot *tw__sched_slot_at(const struct tw__sched_shard *shard, uint32_t index)
{
    struct tw__sched_task *chunk = shard->lines[TW__SCHED_KEYED].chunks[index >> TW__SCHED_CHUNK_SHIFT];
    return (struct tw__sched_slot *)(void *)(chunk + TW__SCHED_CHUNK) + (index & (TW__SCHED_CHUNK - 1));
}

/* The slot of a task. NULL: the task has no key. */
static inline struct tw__sched_slot *tw__sched_task_slot(const struct tw__sched_shard *shard,
                                                         const struct tw__sched_task *task)
{
    return task->keyed ? tw__sched_slot_at(shard, task->index) : NULL;
}

static inline const void *tw__sched_key_bytes(const struct tw__sched_slot *slot)
{
    return slot->size > TW__SCHED_SHORT ? slot->block->bytes : slot->bytes;
}

/* A key and its tag, which is the lower half of its hash. */
struct tw__sched_key {
    struct tw_bytes bytes;
    uint32_t tag;
};

/* The hash slot of the keys with a tag. All bits of the tag decide, because the table uses some of them. */
static inline uint32_t tw__sched_hash_slot(const struct tw_sched *sched, uint32_t tag)
{
    return (uint32_t)((uint64_t)(tag * UINT32_C(2654435769)) * sched->options.shards >> 32); /* 2^32 / 1.618 */
}

/* Whether a key with this tag may be a legacy key. Requires: keys live in the shards of their hashes. */
static inline bool tw__sched_key_may_be_legacy(const struct tw_sched *sched, uint32_t tag)
{
    uint32_t at = tag % TW__SCHED_LEGACY_BITS;
    return atomic_load_explicit(&sched->legacy_keys, memory_order_relaxed) != 0 &&
           (sched->legacy_bits == NULL || (sched->legacy_bits[at / 64] >> at % 64 & 1));
}

/* Makes a key name a task that was taken for a key. Returns false if there is no memory. */
bool tw__sched_key_name(struct tw__sched_shard *shard, const struct tw__sched_task *task,
                        const struct tw__sched_key *key);

/* A key that stays readable after its task has ended. */
struct tw__sched_kept {
    struct tw__sched_long *block; /* NULL: the key, if there is one, lies in `bytes` */
    unsigned char bytes[TW__SCHED_SHORT];
};

/* Keeps the key of a task, if it has one. Returns the key, or NULL. The caller must give it up afterwards. */
const void *tw__sched_key_keep(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                               struct tw__sched_kept *kept);
void tw__sched_key_give_up(struct tw__sched_shard *shard, const struct tw__sched_kept *kept);

/* Whether the key of a RUNNING task was set anew during the call. */
static inline bool tw__sched_task_fresh(const struct tw__sched_shard *shard, const struct tw__sched_task *task)
{
    return task->keyed && tw__sched_slot_at(shard, task->index)->fresh;
}

/* ---- the quota ------------------------------------------------------------------------------------------ */

/* Counts a task towards max_pending. Returns false if there are too many tasks already. */
bool tw__sched_quota_take(struct tw__sched_shard *shard, struct tw__sched_task *task);
void tw__sched_quota_give_back(struct tw__sched_shard *shard, struct tw__sched_task *task);

/* ---- looking -------------------------------------------------------------------------------------------- */

/* Whether a RUNNING task will be filed again, unless a call changes that before the callback returns. */
static inline bool tw__sched_task_goes_on(const struct tw__sched_task *task)
{
    const struct tw__sched_details *details = tw__sched_task_details(task);
    return !task->dead && (task->again || (details != NULL && details->left > 0));
}

/* The function and the argument of a task. */
static inline struct tw__sched_value tw__sched_task_value(const struct tw__sched_task *task)
{
    const struct tw__sched_details *details = tw__sched_task_details(task);
    return (struct tw__sched_value){task->fn, details != NULL ? details->arg : task->arg};
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
