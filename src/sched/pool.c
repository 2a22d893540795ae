/* SPDX-License-Identifier: MIT
 *
 * The memory of tasks: their lines, their ids, their details.
 *
 * Lines and ids. A task is one cache line in a chunk of 1,024 lines, and a chunk never moves. An id says
 * which line a task lies in, and which generation of tasks in that line it belongs to:
 *
 *     id, 64 bits     [ generation: 32 | 0 | shard: 6 | index of the line: 25 ]
 *
 * When a task ends, the generation of its line goes up by one, so the old id finds nothing any more (S2).
 *
 * Example: the first task of shard 0 lies in line 0 and is of generation 1. So its id is 1 * 2^32,
 * 4294967296. The task runs and ends, and the line goes to the head of the free list. The next task takes the
 * same line and is of generation 2, with the id 8589934592. If some thread now cancels the id 4294967296, it
 * finds line 0 with another generation. The cancel returns TW_GONE and the new task is safe.
 *
 * Generations do not start over. A line that has had its last generation, 2^32 - 1, is left alone for good.
 * That loses 64 bytes for every four billion tasks.
 *
 * Details. A task that repeats has details, in one of the 1,024 blocks of another kind of chunk. A task with
 * a key has its details in a block of its own, in front of the bytes of the key.
 *
 * Loose tasks (S6). A task that is cancelled while it is PENDING ends at once, but its line stays in the
 * wheel until a few more tasks were cancelled: see tw__sched_task_loosen().
 *
 * Rejected: an id that is an address. A stale address would find the next task in that line, a stranger's.
 */
#include "pool.h"

#include "memory.h"
#include "table.h"

#include <string.h>

/* ---- lines ---------------------------------------------------------------------------------------------- */

enum { FIRST_CHUNKS = 16 };

/* Makes room for the address of one more chunk. */
static bool widen_table(struct tw__sched_shard *shard)
{
    if (shard->chunk_count < shard->chunk_room)
        return true;
    uint32_t room = shard->chunk_room == 0 ? FIRST_CHUNKS : shard->chunk_room * 2;
    struct tw__sched_task **chunks = tw__sched_alloc(shard->sched, room * sizeof(void *));
    if (chunks == NULL)
        return false;
    for (uint32_t i = 0; i < shard->chunk_count; i++)
        chunks[i] = shard->chunks[i];
    if (shard->chunks != NULL)
        tw__sched_dealloc(shard->sched, shard->chunks, shard->chunk_room * sizeof(void *));
    shard->chunks = chunks;
    shard->chunk_room = room;
    return true;
}

static void push_free(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    task->next_free = shard->free;
    shard->free = task->index;
    shard->room++;
}

enum { CHUNK_BYTES = TW__SCHED_CHUNK * sizeof(struct tw__sched_task) + TW__SCHED_LINE };

/* Adds a chunk. It begins on a cache line, 1 to 64 bytes into its block, and the byte before it holds that
 * distance. Returns false if there is no memory, or the shard has all 2^25 tasks. */
static bool grow_pool(struct tw__sched_shard *shard)
{
    if (shard->chunk_count == 1u << (TW__SCHED_INDEX_BITS - TW__SCHED_CHUNK_SHIFT) || !widen_table(shard))
        return false;
    char *block = tw__sched_alloc(shard->sched, CHUNK_BYTES);
    if (block == NULL)
        return false;
    size_t skip = TW__SCHED_LINE - (uintptr_t)block % TW__SCHED_LINE; /* 1 to 64 */
    struct tw__sched_task *chunk = (struct tw__sched_task *)(void *)(block + skip);
    block[skip - 1] = (char)skip;
    uint32_t first = shard->chunk_count << TW__SCHED_CHUNK_SHIFT;
    shard->chunks[shard->chunk_count++] = chunk;
    for (uint32_t i = TW__SCHED_CHUNK; i-- > 0;) {
        chunk[i] = (struct tw__sched_task){.index = first + i, .generation = 1};
        push_free(shard, &chunk[i]);
    }
    return true;
}

uint64_t tw__sched_tasks_most(struct tw__sched_shard *shard)
{
    TW_ASSERT(tw__sched_locked(shard));
    uint64_t made = (uint64_t)shard->chunk_count << TW__SCHED_CHUNK_SHIFT;
    tw__sched_loose_settle(shard);
    return (UINT64_C(1) << TW__SCHED_INDEX_BITS) - made + shard->room;
}

bool tw__sched_tasks_reserve(struct tw__sched_shard *shard, uint64_t n)
{
    TW_ASSERT(tw__sched_locked(shard));
    tw__sched_loose_settle(shard);
    while (shard->room < n)
        if (!grow_pool(shard))
            return false;
    return true;
}

struct tw__sched_task *tw__sched_task_take(struct tw__sched_shard *shard)
{
    TW_ASSERT(tw__sched_locked(shard));
    if (shard->free == TW__SCHED_NONE)
        tw__sched_loose_settle(shard);
    if (shard->free == TW__SCHED_NONE && !grow_pool(shard))
        return NULL;
    struct tw__sched_task *task = tw__sched_task_at(shard, shard->free);
    shard->free = task->next_free;
    shard->room--;
    tw_timer_init(&task->timer);
    task->again = task->dead = task->counted = task->detailed = 0;
    return task;
}

/* ---- details -------------------------------------------------------------------------------------------- */

static void free_key(struct tw__sched_shard *shard, struct tw__sched_details *details)
{
    tw__sched_dealloc(shard->sched, details, sizeof(struct tw__sched_keyed) + details->key_size);
}

static bool add_details(struct tw__sched_shard *shard)
{
    void **chunk =
        tw__sched_alloc(shard->sched, sizeof(void *) + TW__SCHED_CHUNK * sizeof(struct tw__sched_details));
    if (chunk == NULL)
        return false;
    *chunk = shard->details.chunks;
    shard->details.chunks = chunk;
    struct tw__sched_details *block = (struct tw__sched_details *)(chunk + 1);
    for (uint32_t i = 0; i < TW__SCHED_CHUNK; i++) {
        *(void **)&block[i] = shard->details.free;
        shard->details.free = &block[i];
    }
    shard->details.room += TW__SCHED_CHUNK;
    return true;
}

bool tw__sched_details_reserve(struct tw__sched_shard *shard, uint64_t n)
{
    TW_ASSERT(tw__sched_locked(shard));
    while (shard->details.room < n)
        if (!add_details(shard))
            return false;
    return true;
}

struct tw__sched_details *tw__sched_details_take(struct tw__sched_shard *shard)
{
    TW_ASSERT(tw__sched_locked(shard));
    if (shard->details.free == NULL && !add_details(shard))
        return NULL;
    struct tw__sched_details *details = shard->details.free;
    shard->details.free = *(void **)details;
    shard->details.room--;
    *details = (struct tw__sched_details){.holders = 1};
    return details;
}

void tw__sched_details_drop(struct tw__sched_shard *shard, struct tw__sched_details *details)
{
    TW_ASSERT(tw__sched_locked(shard));
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a detailed task has details */
    if (--details->holders > 0)
        return;
    if (details->key_size > 0) {
        free_key(shard, details);
        return;
    }
    *(void **)details = shard->details.free;
    shard->details.free = details;
    shard->details.room++;
}

/* ---- keys ----------------------------------------------------------------------------------------------- */

struct tw__sched_details *tw__sched_key_new(struct tw__sched_shard *shard, const struct tw__sched_task *task,
                                            const struct tw__sched_key *key)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw__sched_keyed *keyed = tw__sched_alloc(shard->sched, sizeof *keyed + key->size);
    if (keyed == NULL)
        return NULL;
    *keyed = (struct tw__sched_keyed){.tag = key->tag};
    keyed->details.holders = 1;
    keyed->details.key_size = (uint32_t)key->size;
    memcpy(keyed->bytes, key->bytes, key->size);
    if (tw__sched_table_add(shard, &(struct tw__sched_cell){key->tag, task->index, &keyed->details})) {
        shard->stats.keys++;
        return &keyed->details;
    }
    free_key(shard, &keyed->details);
    return NULL;
}

/* Takes a key out of the table. Its details stay. */
static void forget_key(struct tw__sched_shard *shard, struct tw__sched_details *details)
{
    tw__sched_table_remove(shard, tw__sched_keyed_of(details)->tag, details);
    shard->stats.keys--;
}

/* ---- the quota ------------------------------------------------------------------------------------------ */

bool tw__sched_quota_take(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw_sched *sched = shard->sched;
    uint64_t most = sched->options.max_pending;
    if (most == 0 || task->counted)
        return true;
    if (atomic_fetch_add_explicit(&sched->counted, 1, memory_order_relaxed) < most) {
        task->counted = 1;
        return true;
    }
    atomic_fetch_sub_explicit(&sched->counted, 1, memory_order_relaxed);
    shard->stats.refused++;
    return false;
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
    struct tw__sched_details *details = tw__sched_task_details(task);
    if (details != NULL && details->key_size > 0)
        forget_key(shard, details);
    if (details != NULL)
        tw__sched_details_drop(shard, details);
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
    tw_timer_prefetch(&task->timer);
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
    *seen = (struct tw_task){.id = tw__sched_task_id(shard, task), .due_ns = task->due_ns};
    if (details == NULL) {
        seen->fn = task->fn;
        seen->arg = task->arg;
        return;
    }
    seen->fn = details->fn;
    seen->arg = details->arg;
    seen->period_ns = details->period_ns;
    seen->left = details->period_ns > 0 ? details->left : 0;
    seen->missed = details->missed;
    seen->policy = (enum tw_missed)details->policy;
    seen->key = details->key_size > 0 ? tw__sched_key_bytes(details) : NULL;
    seen->key_size = details->key_size;
}

/* ---- the end of the pool -------------------------------------------------------------------------------- */

void tw__sched_pool_end(struct tw__sched_shard *shard)
{
    for (uint32_t i = 0; i < shard->chunk_count; i++) {
        char *chunk = (char *)shard->chunks[i];
        tw__sched_dealloc(shard->sched, chunk - chunk[-1], CHUNK_BYTES);
    }
    if (shard->chunks != NULL)
        tw__sched_dealloc(shard->sched, shard->chunks, shard->chunk_room * sizeof(void *));
    while (shard->details.chunks != NULL) {
        void **chunk = shard->details.chunks;
        shard->details.chunks = *chunk;
        tw__sched_dealloc(shard->sched, chunk,
                          sizeof(void *) + TW__SCHED_CHUNK * sizeof(struct tw__sched_details));
    }
}
