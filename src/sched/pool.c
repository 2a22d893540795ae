/* SPDX-License-Identifier: MIT
 *
 * The memory of tasks: their lines, their ids, their keys, their details.
 *
 * Lines and ids. A task is one cache line in a chunk of 1,024 lines, and a chunk never moves. There are lines
 * of two kinds, for tasks without keys (plain) and for tasks with keys (keyed), with a free list each. An id
 * says which line a task lies in, and which generation of tasks in that line it belongs to:
 *
 *     id, 64 bits     [ generation: 32 | keyed: 1 | shard: 6 | index of the line: 25 ]
 *
 * When a task ends, the generation of its line goes up by one, so the old id finds nothing any more (S2).
 *
 * Example: the first task of shard 0 has no key. It lies in plain line 0 and is of generation 1. So its id is
 * 1 * 2^32, 4294967296. The task runs and ends, and the line goes to the head of the free list. The next task
 * takes the same line and is of generation 2, with the id 8589934592. If some thread now cancels the id
 * 4294967296, it finds line 0 with another generation. The cancel finds TW_CANCEL_GONE, and the new task is
 * safe.
 *
 * Generations do not start over. A line that has had its last generation, 2^32 - 1, is left alone for good.
 * That loses 64 bytes for every four billion tasks.
 *
 * Keys. In a chunk of keyed lines, 1,024 slots of half a cache line follow the lines, one for each line:
 *
 *     chunk            [ line 0 | line 1 | ... | line 1,023 | slot 0 | slot 1 | ... | slot 1,023 ]
 *     slot, 32 bytes   [ tag: 4 | size: 4 | the key: up to 24 ]
 *
 * So the index that the table of keys holds gives the addresses of both the task and its key, and the
 * processor fetches them at once. Example: line 1,030 is line 6 of chunk 1. Its key lies 65,536 + 6 * 32 =
 * 65,728 bytes behind the beginning of that chunk. A key of more than 24 bytes has a block of its own, and the
 * slot holds the address of that block.
 *
 * Details. A task that repeats has details, in one of the 1,024 blocks of another kind of chunk. Tasks with
 * keys have blocks of their own, as they have lines: room that was reserved is for tasks without keys.
 *
 * Loose tasks (S6). A task that is cancelled while it is PENDING ends at once, but its line stays in the
 * wheel until a few more tasks were cancelled: see tw__sched_task_loosen().
 *
 * Rejected
 *   - An id that is an address: a stale address would find the next task in that line, a stranger's.
 *   - Lines and slots in turn, so that a task and its key share a page: it is no faster.
 */
#include "pool.h"

#include "memory.h"
#include "table.h"

#include <string.h>
#include <wheel/private.h>

/* ---- lines ---------------------------------------------------------------------------------------------- */

enum { FIRST_CHUNKS = 16 };

/* Makes room for the address of one more chunk. */
static bool widen_table(struct tw_sched *sched, struct tw__sched_lines *lines)
{
    if (lines->chunk_count < lines->chunk_room)
        return true;
    uint32_t room = lines->chunk_room == 0 ? FIRST_CHUNKS : lines->chunk_room * 2;
    struct tw__sched_task **chunks = tw__sched_alloc(sched, room * sizeof(void *));
    if (chunks == NULL)
        return false;
    for (uint32_t i = 0; i < lines->chunk_count; i++)
        chunks[i] = lines->chunks[i];
    if (lines->chunks != NULL)
        tw__sched_dealloc(sched, lines->chunks, lines->chunk_room * sizeof(void *));
    lines->chunks = chunks;
    lines->chunk_room = room;
    return true;
}

static void push_free(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    struct tw__sched_lines *lines = &shard->lines[task->keyed];
    task->next_free = lines->free;
    lines->free = task->index;
    lines->room++;
}

static size_t chunk_size(enum tw__sched_kind kind)
{
    size_t slot = kind == TW__SCHED_KEYED ? sizeof(struct tw__sched_slot) : 0;
    return TW__SCHED_CHUNK * (sizeof(struct tw__sched_task) + slot);
}

/* Adds a chunk. Returns false if there is no memory, or there are 2^25 lines of this kind. */
static bool grow_pool(struct tw__sched_shard *shard, enum tw__sched_kind kind)
{
    struct tw__sched_lines *lines = &shard->lines[kind];
    uint32_t first = tw__sched_lines_made(lines);
    if (first == 1u << TW__SCHED_INDEX_BITS || !widen_table(shard->sched, lines))
        return false;
    struct tw__sched_task *chunk = tw__sched_alloc_lines(shard->sched, chunk_size(kind));
    if (chunk == NULL)
        return false;
    lines->chunks[lines->chunk_count++] = chunk;
    for (uint32_t i = TW__SCHED_CHUNK; i-- > 0;) {
        chunk[i] = (struct tw__sched_task){.index = first + i, .generation = 1, .keyed = kind};
        if (kind == TW__SCHED_KEYED)
            *tw__sched_slot_at(shard, first + i) = (struct tw__sched_slot){.size = 0};
        push_free(shard, &chunk[i]);
    }
    return true;
}

uint64_t tw__sched_tasks_most(struct tw__sched_shard *shard)
{
    TW_ASSERT(tw__sched_locked(shard));
    const struct tw__sched_lines *lines = &shard->lines[TW__SCHED_PLAIN];
    tw__sched_loose_settle(shard);
    return (UINT64_C(1) << TW__SCHED_INDEX_BITS) - tw__sched_lines_made(lines) + lines->room;
}

bool tw__sched_tasks_reserve(struct tw__sched_shard *shard, uint64_t n)
{
    TW_ASSERT(tw__sched_locked(shard));
    const struct tw__sched_lines *lines = &shard->lines[TW__SCHED_PLAIN];
    tw__sched_loose_settle(shard);
    while (lines->room < n)
        if (!grow_pool(shard, TW__SCHED_PLAIN))
            return false;
    return true;
}

struct tw__sched_task *tw__sched_task_take(struct tw__sched_shard *shard, enum tw__sched_kind kind)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw__sched_lines *lines = &shard->lines[kind];
    if (lines->free == TW__SCHED_NONE)
        tw__sched_loose_settle(shard);
    if (lines->free == TW__SCHED_NONE && !grow_pool(shard, kind))
        return NULL;
    struct tw__sched_task *task = tw__sched_task_at(lines, lines->free);
    lines->free = task->next_free;
    lines->room--;
    tw_timer_init(&task->timer);
    task->again = task->dead = task->counted = task->detailed = 0;
    return task;
}

/* ---- details -------------------------------------------------------------------------------------------- */

static bool add_details(struct tw__sched_shard *shard, struct tw__sched_blocks *blocks)
{
    void **chunk =
        tw__sched_alloc(shard->sched, sizeof(void *) + TW__SCHED_CHUNK * sizeof(struct tw__sched_details));
    if (chunk == NULL)
        return false;
    *chunk = blocks->chunks;
    blocks->chunks = chunk;
    struct tw__sched_details *block = (struct tw__sched_details *)(chunk + 1);
    for (uint32_t i = 0; i < TW__SCHED_CHUNK; i++) {
        *(void **)&block[i] = blocks->free;
        blocks->free = &block[i];
    }
    blocks->room += TW__SCHED_CHUNK;
    return true;
}

bool tw__sched_details_reserve(struct tw__sched_shard *shard, uint64_t n)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw__sched_blocks *blocks = &shard->details[TW__SCHED_PLAIN];
    while (blocks->room < n)
        if (!add_details(shard, blocks))
            return false;
    return true;
}

struct tw__sched_details *tw__sched_details_take(struct tw__sched_shard *shard, enum tw__sched_kind kind)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw__sched_blocks *blocks = &shard->details[kind];
    if (blocks->free == NULL && !add_details(shard, blocks))
        return NULL;
    struct tw__sched_details *details = blocks->free;
    blocks->free = *(void **)details;
    blocks->room--;
    return details;
}

void tw__sched_details_drop(struct tw__sched_shard *shard, enum tw__sched_kind kind,
                            struct tw__sched_details *details)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw__sched_blocks *blocks = &shard->details[kind];
    *(void **)details = blocks->free;
    blocks->free = details;
    blocks->room++;
}

/* ---- keys ----------------------------------------------------------------------------------------------- */

/* Gives up one holder's claim to a long key, and frees the key with the last claim. */
static void drop_long(struct tw__sched_shard *shard, struct tw__sched_long *block)
{
    if (--block->holders == 0)
        tw__sched_dealloc(shard->sched, block, sizeof *block + block->size);
}

/* Copies a key into a slot, or into a block of its own. Returns false if there is no memory. */
static bool copy_key(struct tw__sched_shard *shard, struct tw__sched_slot *slot,
                     const struct tw__sched_key *key)
{
    unsigned char *bytes = slot->bytes;
    if (key->bytes.size > TW__SCHED_SHORT) {
        struct tw__sched_long *block = tw__sched_alloc(shard->sched, sizeof *block + key->bytes.size);
        if (block == NULL)
            return false;
        block->size = (uint32_t)key->bytes.size;
        block->holders = 1;
        slot->block = block;
        bytes = block->bytes;
    }
    memcpy(bytes, key->bytes.data, key->bytes.size);
    slot->tag = key->tag;
    slot->size = (uint32_t)key->bytes.size & ((1u << 30) - 1);
    slot->fresh = 0;
    return true;
}

/* Empties a slot. */
static void clear_key(struct tw__sched_shard *shard, struct tw__sched_slot *slot)
{
    if (slot->size > TW__SCHED_SHORT)
        drop_long(shard, slot->block);
    slot->size = 0;
}

/* Counts a legacy key that comes (1) or goes (-1). */
static void count_legacy(struct tw_sched *sched, int by)
{
    atomic_store_explicit(&sched->legacy_keys, atomic_load(&sched->legacy_keys) + (uint64_t)by,
                          memory_order_relaxed);
}

/* Marks a new key if it is a legacy key. The scheduler becomes wide under the lock of shard 0, which is held
 * here if the key is one of shard 0. */
static void mark_legacy(const struct tw__sched_shard *shard, struct tw__sched_slot *slot)
{
    struct tw_sched *sched = shard->sched;
    slot->legacy = shard->number == 0 && !atomic_load_explicit(&sched->wide, memory_order_relaxed) &&
                   tw__sched_hash_slot(sched, slot->tag) != 0;
    if (slot->legacy)
        count_legacy(sched, 1);
}

bool tw__sched_key_name(struct tw__sched_shard *shard, const struct tw__sched_task *task,
                        const struct tw__sched_key *key)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw__sched_slot *slot = tw__sched_slot_at(shard, task->index);
    if (!copy_key(shard, slot, key))
        return false;
    if (tw__sched_table_add(shard, key->tag, task->index)) {
        shard->stats.keys++;
        mark_legacy(shard, slot);
        return true;
    }
    clear_key(shard, slot);
    return false;
}

/* Ends the key of a task. If there was no memory for the key, the slot is still empty. */
static void forget_key(struct tw__sched_shard *shard, const struct tw__sched_task *task)
{
    struct tw__sched_slot *slot = tw__sched_slot_at(shard, task->index);
    if (slot->size == 0)
        return;
    tw__sched_table_remove(shard, slot->tag, task->index);
    clear_key(shard, slot);
    shard->stats.keys--;
    if (slot->legacy)
        count_legacy(shard->sched, -1);
}

const void *tw__sched_key_keep(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                               struct tw__sched_kept *kept)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw__sched_slot *slot = tw__sched_task_slot(shard, task);
    kept->block = NULL;
    if (slot == NULL)
        return NULL;
    if (slot->size > TW__SCHED_SHORT) {
        kept->block = slot->block;
        kept->block->holders++;
        return kept->block->bytes;
    }
    return memcpy(kept->bytes, slot->bytes, slot->size);
}

void tw__sched_key_give_up(struct tw__sched_shard *shard, const struct tw__sched_kept *kept)
{
    TW_ASSERT(tw__sched_locked(shard));
    if (kept->block != NULL)
        drop_long(shard, kept->block);
}

/* ---- the quota ------------------------------------------------------------------------------------------ */

bool tw__sched_quota_take(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw_sched *sched = shard->sched;
    uint64_t most = sched->options.max_pending;
    if (most == 0 || task->counted)
        return true;
    uint64_t counted = atomic_load_explicit(&sched->counted, memory_order_relaxed);
    do {
        if (counted >= most) {
            shard->stats.refused++;
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&sched->counted, &counted, counted + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    task->counted = 1;
    return true;
}

void tw__sched_quota_give_back(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    TW_ASSERT(tw__sched_locked(shard));
    if (task->counted)
        atomic_fetch_sub_explicit(&shard->sched->counted, 1, memory_order_relaxed);
    task->counted = 0;
}

/* ---- the end of a task ---------------------------------------------------------------------------------- */

/* Ends a task, but does not yet free its line for the next task. */
static void end_task(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    tw__sched_quota_give_back(shard, task);
    if (task->keyed)
        forget_key(shard, task);
    if (task->detailed)
        tw__sched_details_drop(shard, task->keyed, task->arg);
    task->state = TW__SCHED_FREE;
}

/* Frees the line of a task for the next generation, if there is one. */
static void retire(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    if (task->generation == UINT32_MAX)
        return;
    task->generation++;
    push_free(shard, task);
}

void tw__sched_task_drop(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    TW_ASSERT(tw__sched_locked(shard));
    end_task(shard, task);
    retire(shard, task);
}

/* ---- loose tasks ---------------------------------------------------------------------------------------- */

/* Takes a loose task out of the wheel and frees its line. */
static void tighten(struct tw__sched_shard *shard, struct tw__sched_task **loose)
{
    struct tw__sched_task *task = *loose;
    if (task == NULL)
        return;
    *loose = NULL;
    tw_wheel_cancel(shard->wheel, &task->timer);
    retire(shard, task);
}

/* A cancelled task ends at once, but stays in its list in the wheel until at most eight more tasks were
 * cancelled. To take it out, the wheel will write to the cache lines of its neighbours. These lines are
 * prefetched now and have arrived by then. With a million tasks pending, the cache misses that this avoids
 * are a third of the cost of a cancel. */
void tw__sched_task_loosen(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw__sched_task **loose = &shard->loose[shard->loose_next++ % TW__SCHED_LOOSE];
    tw__timer_prefetch(&task->timer);
    end_task(shard, task);
    shard->stats.pending--;
    tighten(shard, loose);
    *loose = task;
    shard->any_loose = true;
}

void tw__sched_loose_settle(struct tw__sched_shard *shard)
{
    TW_ASSERT(tw__sched_locked(shard));
    if (!shard->any_loose)
        return;
    shard->any_loose = false;
    for (uint32_t i = 0; i < TW__SCHED_LOOSE; i++)
        tighten(shard, &shard->loose[i]);
}

/* ---- looking -------------------------------------------------------------------------------------------- */

void tw__sched_task_describe(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                             struct tw_task *seen)
{
    TW_ASSERT(tw__sched_locked(shard));
    const struct tw__sched_details *details = tw__sched_task_details(task);
    const struct tw__sched_slot *slot = tw__sched_task_slot(shard, task);
    const struct tw__sched_value value = tw__sched_task_value(task);
    *seen = (struct tw_task){
        .id = tw__sched_task_id(shard, task), .fn = value.fn, .arg = value.arg, .due_ns = task->due_ns};
    if (details != NULL) {
        seen->period_ns = details->period_ns;
        seen->left = details->left;
        seen->missed_periods = details->missed_periods;
        seen->missed = (enum tw_missed)details->missed;
    }
    if (slot != NULL)
        seen->key = (struct tw_bytes){tw__sched_key_bytes(slot), slot->size};
}

/* ---- the end of the pool -------------------------------------------------------------------------------- */

static void free_lines(struct tw__sched_shard *shard, enum tw__sched_kind kind)
{
    struct tw__sched_lines *lines = &shard->lines[kind];
    for (uint32_t i = 0; i < lines->chunk_count; i++)
        tw__sched_dealloc_lines(shard->sched, lines->chunks[i], chunk_size(kind));
    if (lines->chunks != NULL)
        tw__sched_dealloc(shard->sched, lines->chunks, lines->chunk_room * sizeof(void *));
}

static void free_details(struct tw__sched_shard *shard, struct tw__sched_blocks *blocks)
{
    while (blocks->chunks != NULL) {
        void **chunk = blocks->chunks;
        blocks->chunks = *chunk;
        tw__sched_dealloc(shard->sched, chunk,
                          sizeof(void *) + TW__SCHED_CHUNK * sizeof(struct tw__sched_details));
    }
}

void tw__sched_pool_end(struct tw__sched_shard *shard)
{
    for (int kind = 0; kind < TW__SCHED_KINDS; kind++) {
        free_lines(shard, kind);
        free_details(shard, &shard->details[kind]);
    }
}
