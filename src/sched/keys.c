/* SPDX-License-Identifier: MIT
 *
 * Tasks with keys: a hash table for each shard, from key to task.
 *
 * The table is uthash's; the hash is SipHash (libsodium's crypto_shorthash) with a secret drawn for each scheduler, so
 * that nobody who chooses keys can make them collide. Its upper half chooses the shard, its lower half the bucket.
 *
 * A key names its task from the set until the end of the last call. So the calls of one key never overlap: a key that
 * is set while its callback is under way runs again when that has returned, not beside it.
 */
#include "internal.h"

#include <sodium/crypto_shorthash.h>
#include <string.h>

/* uthash's own way to be told of a table without memory; `shard` is in scope wherever a key is added. */
#define HASH_NONFATAL_OOM 1
#define uthash_malloc(size) tw__alloc(shard->sched, size)
#define uthash_free(block, size) tw__release(shard->sched, block, size)
#define uthash_nonfatal_oom(item) (added = false)
#include <uthash.h>

struct tw__keyed {
    struct tw__details details;
    struct tw__task *task;
    UT_hash_handle hh;
    unsigned char bytes[];
};

static struct tw__keyed *keyed_of(struct tw__details *details)
{
    return (struct tw__keyed *)(void *)details;
}

const void *tw__key_bytes(const struct tw__details *details)
{
    return ((const struct tw__keyed *)(const void *)details)->bytes;
}

/* ---- the table ------------------------------------------------------------------------------------------- */

/* Where a key belongs. */
struct place {
    struct tw__shard *shard;
    const void *key;
    size_t size;
    unsigned hash;
};

static struct place place_of(struct tw_sched *sched, const void *key, size_t size)
{
    uint64_t hash;
    crypto_shorthash((unsigned char *)&hash, key, size, sched->secret);
    return (struct place){&sched->shard[(hash >> 32) % sched->options.shards], key, size, (unsigned)hash};
}

static struct tw__keyed *find(const struct place *place)
{
    struct tw__keyed *found;
    HASH_FIND_BYHASHVALUE(hh, place->shard->keys, place->key, place->size, place->hash, found);
    return found;
}

/* NOLINTNEXTLINE(readability-function-size): most of it is inside uthash's macro */
static bool enter(const struct place *place, struct tw__keyed *keyed)
{
    struct tw__shard *shard = place->shard;
    bool added = true;
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, shard->keys, keyed->bytes, place->size, place->hash, keyed);
    if (added)
        shard->stats.keys++;
    return added;
}

void tw__key_forget(struct tw__shard *shard, struct tw__details *details)
{
    struct tw__keyed *keyed = keyed_of(details);
    HASH_DELETE(hh, shard->keys, keyed);
    shard->stats.keys--;
}

void tw__key_free(struct tw__shard *shard, struct tw__details *details)
{
    tw__release(shard->sched, details, sizeof(struct tw__keyed) + details->key_size);
}

/* ---- setting --------------------------------------------------------------------------------------------- */

struct wish {
    uint64_t due_ns;
    const struct tw_every *every;
    tw_task_fn *fn;
    void *value;
    void **old;
};

static void fill(struct tw__details *details, const struct wish *wish)
{
    details->fn = wish->fn;
    details->arg = wish->value;
    details->period_ns = details->left = details->missed = 0;
    if (wish->every != NULL)
        tw__details_every(details, wish->every);
}

/* The details of a key that is new, in the table. NULL: no memory. */
static struct tw__keyed *new_key(const struct place *place, struct tw__task *task)
{
    struct tw__keyed *keyed = tw__alloc(place->shard->sched, sizeof *keyed + place->size);
    if (keyed == NULL)
        return NULL;
    memset(keyed, 0, sizeof *keyed);
    keyed->task = task;
    keyed->details.holders = 1;
    keyed->details.key_size = (uint32_t)place->size;
    memcpy(keyed->bytes, place->key, place->size);
    if (enter(place, keyed))
        return keyed;
    tw__key_free(place->shard, &keyed->details);
    return NULL;
}

static int file_new_key(const struct place *place, struct tw__task *task, const struct wish *wish)
{
    struct tw__keyed *keyed = new_key(place, task);
    if (keyed == NULL)
        return TW_ENOMEM;
    fill(&keyed->details, wish);
    task->detailed = 1;
    task->arg = keyed;
    return tw__task_file(place->shard, task, wish->due_ns);
}

static int set_new(const struct place *place, const struct wish *wish)
{
    struct tw__task *task = tw__task_take(place->shard);
    if (task == NULL)
        return TW_ENOMEM;
    int error = tw__hold(place->shard, task) ? file_new_key(place, task, wish) : TW_EFULL;
    if (error != 0)
        tw__task_drop(place->shard, task);
    else
        place->shard->stats.added++;
    return error;
}

/* A key whose callback is under way runs once more, whatever was planned for it. */
static int set_running(struct tw__shard *shard, struct tw__task *task, uint64_t due_ns)
{
    int error = tw__task_again(shard, task, due_ns);
    if (error == 0)
        task->dead = 0;
    return error;
}

static int set_existing(const struct place *place, struct tw__keyed *keyed, const struct wish *wish)
{
    struct tw__task *task = keyed->task;
    bool lives = task->state != TW__RUNNING || tw__task_goes_on(task);
    int error = task->state == TW__RUNNING ? set_running(place->shard, task, wish->due_ns)
                                           : tw__task_refile(place->shard, task, wish->due_ns);
    if (error != 0)
        return error;
    if (wish->old != NULL && lives)
        *wish->old = keyed->details.arg;
    fill(&keyed->details, wish);
    keyed->details.fresh = task->state == TW__RUNNING;
    place->shard->stats.moved++;
    return 0;
}

static int set_locked(const struct place *place, const struct wish *wish)
{
    if (place->shard->stopped)
        return TW_ESTOPPED;
    int error = wish->every == NULL ? 0 : tw__every_reach(place->shard, wish->every);
    if (error != 0)
        return error;
    struct tw__keyed *keyed = find(place);
    return keyed == NULL ? set_new(place, wish) : set_existing(place, keyed, wish);
}

static int set(struct tw_sched *sched, const void *key, size_t size, const struct wish *wish)
{
    if (size == 0 || size > TW_KEY_MAX)
        return TW_EINVAL;
    int error = tw__sched_ready(sched);
    if (error != 0)
        return error;
    if (wish->old != NULL)
        *wish->old = NULL;
    struct place place = place_of(sched, key, size);
    pthread_mutex_lock(&place.shard->lock);
    error = set_locked(&place, wish);
    pthread_mutex_unlock(&place.shard->lock);
    return error;
}

int tw_sched_set_at(struct tw_sched *sched, const void *key, size_t key_size, uint64_t due_ns, tw_task_fn *fn,
                    void *value, void **old)
{
    return set(sched, key, key_size, &(struct wish){.due_ns = due_ns, .fn = fn, .value = value, .old = old});
}

int tw_sched_set_after(struct tw_sched *sched, const void *key, size_t key_size, uint64_t delay_ns,
                       tw_task_fn *fn, void *value, void **old)
{
    return tw_sched_set_at(sched, key, key_size, tw__sum(tw__clock_read(sched), delay_ns), fn, value, old);
}

int tw_sched_set_every(struct tw_sched *sched, const void *key, size_t key_size, const struct tw_every *every,
                       tw_task_fn *fn, void *value, void **old)
{
    uint64_t due_ns = tw__every_first(sched, every);
    int error = tw__every_check(sched, every);
    if (error != 0)
        return error;
    return set(sched, key, key_size,
               &(struct wish){.due_ns = due_ns, .every = every, .fn = fn, .value = value, .old = old});
}

/* ---- moving, removing, looking ---------------------------------------------------------------------------- */

/* The key's task as long as there is something to come of it; the shard is locked by this. */
static struct tw__keyed *find_and_lock(struct tw_sched *sched, const void *key, size_t size,
                                       struct place *place)
{
    *place = place_of(sched, key, size);
    pthread_mutex_lock(&place->shard->lock);
    return find(place);
}

int tw_sched_key_move_at(struct tw_sched *sched, const void *key, size_t key_size, uint64_t due_ns)
{
    struct place place;
    struct tw__keyed *keyed = find_and_lock(sched, key, key_size, &place);
    int error = keyed == NULL ? TW_EGONE : tw__task_move(place.shard, keyed->task, due_ns);
    pthread_mutex_unlock(&place.shard->lock);
    return error;
}

int tw_sched_key_move_after(struct tw_sched *sched, const void *key, size_t key_size, uint64_t delay_ns)
{
    return tw_sched_key_move_at(sched, key, key_size, tw__sum(tw__clock_read(sched), delay_ns));
}

enum tw_cancelled tw_sched_key_remove(struct tw_sched *sched, const void *key, size_t key_size, void **value)
{
    struct place place;
    struct tw__keyed *keyed = find_and_lock(sched, key, key_size, &place);
    enum tw_cancelled found = TW_GONE;
    if (keyed != NULL) {
        void *held = keyed->details.arg;
        found = tw__task_cancel(place.shard, keyed->task);
        if (value != NULL && found == TW_CANCELLED)
            *value = held;
    }
    pthread_mutex_unlock(&place.shard->lock);
    return found;
}

int tw_sched_key_get(struct tw_sched *sched, const void *key, size_t key_size, struct tw_task *task)
{
    struct place place;
    struct tw__keyed *keyed = find_and_lock(sched, key, key_size, &place);
    bool lives = keyed != NULL && (keyed->task->state != TW__RUNNING || tw__task_goes_on(keyed->task));
    if (lives) {
        tw__task_describe(place.shard, keyed->task, task);
        task->key = NULL; /* it may go as soon as the lock does */
    }
    pthread_mutex_unlock(&place.shard->lock);
    return lives ? 0 : TW_EGONE;
}
