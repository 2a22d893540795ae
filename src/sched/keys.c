/* SPDX-License-Identifier: MIT
 *
 * Tasks with keys.
 *
 * The hash is SipHash (libsodium's crypto_shorthash). Each scheduler draws a secret for it, so that nobody
 * who chooses keys can make them collide.
 *
 * The lower half of the hash is the key's tag. The tag leads to the key's place in the table of a shard, and to
 * the shard: see tw__sched_hash_slot().
 *
 * To find a key costs two waits for memory however many keys there are: one for the cache line of the table,
 * then one for the task's line and the key's slot, which arrive together. table.c and pool.c say how.
 *
 * A key names its task from the set until the end of the task's last call (S2). So the calls of one key never
 * overlap. A key that is set during its callback runs again after that callback has returned, not beside it.
 *
 * Example: the callback of the key "cart:7" runs from 100 ms to 130 ms with value A. At 110 ms another thread
 * sets "cart:7" to value B, due at 115 ms. The set returns at once, and `fresh` notes that the task holds B
 * while the running call still uses A. The callback returns at 130 ms. The release hook, if there is one,
 * receives A. Then the task is filed again and runs with B at once, or on the next tick if the wheel is past
 * 115 ms already: about 15 ms late.
 *
 * Narrow and wide. A scheduler with several shards is narrow at first: all keys live in shard 0, because a
 * program with one thread gains nothing from more wheels. The scheduler becomes wide, for good, when a call
 * finds that a second shard was made for a second thread. From then on a new key lives in the shard of its
 * hash.
 *
 * A key that was set before is a legacy key, if its hash slot is not 0. It keeps its place and its id until its
 * task ends, also when it is set anew. So a call looks in shard 0 first, then in the shard of the hash. It need
 * not look in shard 0 if the tag has no bit in `legacy_bits`, or if the last legacy key has ended. More than
 * MARKED legacy keys would set most of the bits, and marking them takes time under the lock. There are no bits
 * then, and every call by key looks in shard 0 first until the last legacy key has ended.
 *
 *     narrow    find in shard 0, or set there
 *     wide      the bit is set and there are legacy keys: find in shard 0; otherwise, or if it is not there,
 *               find in the shard of the hash, or set there
 *
 * Example: one thread sets 1,000 keys, and a second thread adds a task. The next call for a key makes the
 * scheduler wide, with 2 shards. About 500 keys are legacy keys and set 500 of the 65,536 bits. A call for
 * another key whose hash leads to shard 1 meets one of these bits in one of 131 cases. Only then does it take
 * two locks, one after the other.
 *
 * A key is never in two shards. No legacy key is born after the change, which happens under the lock of shard
 * 0. So a thread that has not found the key in shard 0, under that lock, will not find it there later either.
 * (If there is no memory for the shard of a hash slot, a shard that exists becomes the home of all keys of
 * that slot. In shard 0 they are no legacy keys.)
 *
 * Rejected: setting the bits as keys are set. A program that sets short-lived keys all day would have set them
 * all before a second thread comes.
 */
#include "clock.h"
#include "filing.h"
#include "lock.h"
#include "memory.h"
#include "pool.h"
#include "run.h"
#include "shard.h"
#include "table.h"
#include "task.h"

#include <sodium/crypto_shorthash.h>
#include <string.h>

/* ---- finding -------------------------------------------------------------------------------------------- */

/* A key, its tag, and the shard that it belongs to. */
struct target {
    struct tw__sched_shard *shard;
    struct tw__sched_key key;
};

static struct target target_of_key(const struct tw_sched *sched, struct tw_bytes key)
{
    TW_ASSERT(key.data != NULL || key.size == 0);
    uint64_t hash;
    crypto_shorthash((unsigned char *)&hash, key.data, key.size, sched->secret);
    return (struct target){NULL, {key, (uint32_t)hash}};
}

/* The task that a key names, or NULL. Prefetches the task while the keys are compared. */
static struct tw__sched_task *find(const struct target *target)
{
    struct tw__sched_probe probe = tw__sched_table_probe(&target->shard->table, target->key.tag);
    uint32_t index;
    while ((index = tw__sched_probe_next(&probe)) != TW__SCHED_NONE) {
        struct tw__sched_task *task = tw__sched_task_at(&target->shard->lines[TW__SCHED_KEYED], index);
        __builtin_prefetch(task, 1);
        const struct tw__sched_slot *slot = tw__sched_slot_at(target->shard, index);
        TW_ASSERT(slot->size > 0); /* the table has no task without a key */
        const struct tw_bytes *key = &target->key.bytes;
        if (slot->size == key->size && memcmp(tw__sched_key_bytes(slot), key->data, key->size) == 0)
            return task;
    }
    return NULL;
}

/* ---- narrow and wide ------------------------------------------------------------------------------------ */

enum { MARKED = 16384, LEGACY_BYTES = TW__SCHED_LEGACY_BITS / 8 };

static bool is_wide(const struct tw_sched *sched)
{
    return atomic_load_explicit(&sched->wide, memory_order_acquire);
}

static void set_legacy_bit(void *arg, uint32_t tag)
{
    struct tw_sched *sched = arg;
    uint32_t at = tag % TW__SCHED_LEGACY_BITS;
    if (tw__sched_hash_slot(sched, tag) != 0)
        sched->legacy_bits[at / 64] |= UINT64_C(1) << at % 64;
}

/* Makes the scheduler wide. Without bits, every tag counts as one that a legacy key may have. The lock of shard
 * 0 is held. */
static void widen(struct tw_sched *sched)
{
    uint64_t legacy_keys = atomic_load(&sched->legacy_keys);
    if (legacy_keys > 0 && legacy_keys <= MARKED)
        sched->legacy_bits = tw__sched_alloc(sched, LEGACY_BYTES);
    if (sched->legacy_bits != NULL) {
        memset(sched->legacy_bits, 0, LEGACY_BYTES);
        tw__sched_table_visit(&sched->shard[0]->table, set_legacy_bit, sched);
    }
    atomic_store_explicit(&sched->wide, true, memory_order_release);
}

/* Whether a key that is not in shard 0 is in no shard. The lock of shard 0 is held. */
static bool stays_narrow(struct tw_sched *sched)
{
    if (is_wide(sched))
        return false;
    if (tw__sched_made(sched) == 1)
        return true;
    widen(sched);
    return false;
}

/* Fetches the line of the table in which the search for a key will most likely begin. No lock is needed. */
static void fetch_ahead(struct tw_sched *sched, const struct tw__sched_key *key)
{
    const struct tw__sched_shard *shard =
        is_wide(sched) ? tw__sched_home_of_key(sched, key->tag) : sched->shard[0];
    tw__sched_table_prefetch(&shard->table, key->tag);
}

/* Reads the clock, if ns is a delay, while that line is being fetched. */
static uint64_t due_of(struct tw_sched *sched, const struct tw__sched_key *key, uint64_t ns, bool delayed)
{
    fetch_ahead(sched, key);
    return delayed ? tw__add_saturating(tw__sched_clock_read(sched), ns) : ns;
}

/* Finds the task of a key, or NULL. Locks the shard in which the key lives or, if there is no task, the shard
 * in which it is to be set. */
static struct tw__sched_task *find_and_lock(struct tw_sched *sched, struct target *target)
{
    struct tw__sched_task *task;
    if (!is_wide(sched) || tw__sched_key_may_be_legacy(sched, target->key.tag)) {
        target->shard = sched->shard[0];
        tw__sched_lock(target->shard);
        task = find(target);
        if (task != NULL || stays_narrow(sched))
            return task;
        tw__sched_unlock(target->shard);
    }
    target->shard = tw__sched_home_of_key(sched, target->key.tag);
    tw__sched_lock(target->shard);
    return find(target);
}

/* ---- setting -------------------------------------------------------------------------------------------- */

struct assignment {
    uint64_t due_ns; /* with `delayed` the delay, until set() makes it the due time */
    bool delayed;
    const struct tw_every *every;
    uint64_t now_ns; /* with `every`: when the task is filed */
    tw_task_fn *fn;
    void *value;
    void **old;
};

/* Takes details in advance if a task is to repeat and has none. Returns false if there is no memory. */
static bool take_details(struct tw__sched_shard *shard, const struct tw__sched_task *task,
                         const struct assignment *wanted, struct tw__sched_details **taken)
{
    *taken = NULL;
    return wanted->every == NULL || task->detailed ||
           (*taken = tw__sched_details_take(shard, TW__SCHED_KEYED)) != NULL;
}

/* Gives a task its function and its value. `taken` are the details that were taken in advance, or NULL. */
static void fill(struct tw__sched_shard *shard, struct tw__sched_task *task, const struct assignment *wanted,
                 struct tw__sched_details *taken)
{
    struct tw__sched_details *details = taken != NULL ? taken : tw__sched_task_details(task);
    task->fn = wanted->fn;
    task->detailed = wanted->every != NULL;
    task->arg = task->detailed ? details : wanted->value;
    if (task->detailed) {
        details->arg = wanted->value;
        tw__sched_details_every(details, wanted->every, wanted->now_ns);
    } else if (details != NULL) {
        tw__sched_details_drop(shard, TW__SCHED_KEYED, details);
    }
}

static int file_new_key(const struct target *target, struct tw__sched_task *task,
                        const struct assignment *wanted)
{
    struct tw__sched_details *taken;
    if (!tw__sched_key_name(target->shard, task, &target->key) ||
        !take_details(target->shard, task, wanted, &taken))
        return TW_ENOMEM;
    fill(target->shard, task, wanted, taken);
    return tw__sched_task_file(target->shard, task, wanted->due_ns);
}

static int set_new(const struct target *target, const struct assignment *wanted)
{
    struct tw__sched_task *task = tw__sched_task_take(target->shard, TW__SCHED_KEYED);
    if (task == NULL)
        return TW_ENOMEM;
    int error = tw__sched_quota_take(target->shard, task) ? file_new_key(target, task, wanted) : TW_EFULL;
    if (error != 0)
        tw__sched_task_drop(target->shard, task);
    else
        target->shard->stats.added++;
    return error;
}

/* Sets a key whose callback is under way: it runs once more, whether it would have gone on or not. */
static int set_running(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    int error = tw__sched_task_again(shard, task, due_ns);
    if (error == 0)
        task->dead = 0;
    return error;
}

/* Files a task that is set anew. */
static int file_anew(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    return task->state == TW__SCHED_RUNNING ? set_running(shard, task, due_ns)
                                            : tw__sched_task_refile(shard, task, due_ns);
}

/* Sets a key that names a task. *replaced receives the value that nothing uses any more, if there is one. */
static int set_existing(const struct target *target, struct tw__sched_task *task,
                        const struct assignment *wanted, struct tw__sched_value *replaced)
{
    struct tw__sched_shard *shard = target->shard;
    struct tw__sched_details *taken;
    bool running = task->state == TW__SCHED_RUNNING, lives = !running || tw__sched_task_goes_on(task);
    if (!take_details(shard, task, wanted, &taken))
        return TW_ENOMEM;
    int error = file_anew(shard, task, wanted->due_ns);
    if (error != 0) {
        if (taken != NULL)
            tw__sched_details_drop(shard, TW__SCHED_KEYED, taken);
        return error;
    }
    const struct tw__sched_value value = tw__sched_task_value(task);
    if (wanted->old != NULL && lives)
        *wanted->old = value.arg;
    if (lives && (!running || tw__sched_task_fresh(shard, task))) /* else the call under way uses it */
        *replaced = value;
    fill(shard, task, wanted, taken);
    tw__sched_task_slot(shard, task)->fresh = running;
    shard->stats.moved++;
    return 0;
}

static int set_locked(const struct target *target, struct tw__sched_task *task, struct assignment *wanted,
                      struct tw__sched_value *replaced)
{
    if (target->shard->stopped)
        return TW_ESTOPPED;
    int error = wanted->every == NULL ? 0 : tw__sched_every_reach(target->shard, wanted->every);
    if (error != 0)
        return error;
    if (wanted->every == NULL && !wanted->delayed)
        wanted->due_ns = tw__sched_due_once(target->shard, wanted->due_ns);
    return task == NULL ? set_new(target, wanted) : set_existing(target, task, wanted, replaced);
}

static int set(struct tw_sched *sched, struct tw_bytes key, struct assignment *wanted)
{
    if (key.size == 0 || key.size > TW_SCHED_KEY_MAX)
        return TW_EINVAL;
    struct target target = target_of_key(sched, key);
    wanted->due_ns = due_of(sched, &target.key, wanted->due_ns, wanted->delayed);
    int error = tw__sched_ready(sched);
    if (error != 0)
        return error;
    if (wanted->old != NULL)
        *wanted->old = NULL;
    struct tw__sched_value replaced = {NULL, NULL};
    if (!is_wide(sched))
        tw__sched_home(sched); /* a second thread makes a second shard */
    struct tw__sched_task *task = find_and_lock(sched, &target);
    error = set_locked(&target, task, wanted, &replaced);
    tw__sched_unlock(target.shard);
    tw__sched_value_release(sched, &replaced);
    return error;
}

int tw_sched_key_put_at(struct tw_sched *sched, struct tw_bytes key, uint64_t due_ns, tw_task_fn *fn,
                        void *value, void **old)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(fn != NULL);
    return set(sched, key, &(struct assignment){.due_ns = due_ns, .fn = fn, .value = value, .old = old});
}

int tw_sched_key_put_in(struct tw_sched *sched, struct tw_bytes key, uint64_t delay_ns, tw_task_fn *fn,
                        void *value, void **old)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(fn != NULL);
    return set(sched, key,
               &(struct assignment){.due_ns = delay_ns, .delayed = true, .fn = fn, .value = value, .old = old});
}

int tw_sched_key_put_every(struct tw_sched *sched, struct tw_bytes key, const struct tw_every *every,
                           tw_task_fn *fn, void *value, void **old)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(every != NULL && fn != NULL);
    int error = tw__sched_every_check(sched, every);
    if (error != 0)
        return error;
    uint64_t now_ns = tw__sched_clock_read(sched), due_ns = tw__sched_every_first(every, now_ns);
    return set(sched, key,
               &(struct assignment){
                   .due_ns = due_ns, .every = every, .now_ns = now_ns, .fn = fn, .value = value, .old = old});
}

/* ---- moving, removing, looking -------------------------------------------------------------------------- */

/* Locks the shard of a key and finds the key's task. Returns NULL if the key names no task; a shard is locked
 * in either case. */
static struct tw__sched_task *lock_and_find(struct tw_sched *sched, struct tw_bytes key, struct target *target)
{
    TW_ASSERT(tw__sched_usable(sched));
    *target = target_of_key(sched, key);
    fetch_ahead(sched, &target->key);
    return find_and_lock(sched, target);
}

static int move_key(struct tw_sched *sched, struct tw_bytes key, uint64_t ns, bool delayed)
{
    TW_ASSERT(tw__sched_usable(sched));
    struct target target = target_of_key(sched, key);
    uint64_t due_ns = due_of(sched, &target.key, ns, delayed);
    struct tw__sched_task *task = find_and_lock(sched, &target);
    int error = task == NULL ? TW_EGONE : tw__sched_task_move(target.shard, task, due_ns);
    tw__sched_unlock(target.shard);
    return error;
}

int tw_sched_key_move_at(struct tw_sched *sched, struct tw_bytes key, uint64_t due_ns)
{
    return move_key(sched, key, due_ns, false);
}

int tw_sched_key_move_in(struct tw_sched *sched, struct tw_bytes key, uint64_t delay_ns)
{
    return move_key(sched, key, delay_ns, true);
}

enum tw_cancel tw_sched_key_cancel(struct tw_sched *sched, struct tw_bytes key, void **value)
{
    struct target target;
    struct tw__sched_task *task = lock_and_find(sched, key, &target);
    enum tw_cancel found = TW_CANCEL_GONE;
    struct tw__sched_value let_go = {NULL, NULL};
    if (task != NULL) {
        found = tw__sched_task_cancel(target.shard, task, &let_go);
        if (value != NULL && found == TW_CANCEL_CANCELLED)
            *value = let_go.arg;
    }
    tw__sched_unlock(target.shard);
    tw__sched_value_release(sched, &let_go);
    return found;
}

int tw_sched_key_get(struct tw_sched *sched, struct tw_bytes key, struct tw_task *seen, size_t size)
{
    TW_ASSERT(seen != NULL);
    struct target target;
    struct tw__sched_task *task = lock_and_find(sched, key, &target);
    int error = tw__sched_task_look(target.shard, task, seen, size);
    tw__sched_unlock(target.shard);
    return error;
}
