/* SPDX-License-Identifier: MIT
 *
 * Tasks without keys: ids, adding, cancelling, moving.
 *
 * A task is one cache line in a chunk of a thousand that never moves; its id says which, and of which generation. When
 * a task ends its generation goes up, so the id finds nothing any more. Generations do not start over: a place whose
 * 2^32 are used up is left alone for good (64 bytes for each four thousand million tasks).
 *
 * What can be done with a task depends on where it is:
 *
 *     FREE -> PENDING -> READY -> RUNNING -> FREE
 *                ^          |        |
 *                +----------+--------+     moved; repeats
 *
 * While it is RUNNING nobody but the thread of its callback changes its place: others leave a note (again, dead).
 */
#include "internal.h"

/* ---- places for tasks ------------------------------------------------------------------------------------ */

enum { LINE = 64, FIRST_CHUNKS = 16 };

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

enum { CHUNK_BYTES = TW__SCHED_CHUNK * sizeof(struct tw__sched_task) + LINE };

/* A chunk begins on a cache line; the bytes before say how far the block begins before it. */
static bool add_chunk(struct tw__sched_shard *shard)
{
    if (shard->chunk_count == 1u << (TW__SCHED_INDEX_BITS - TW__SCHED_CHUNK_SHIFT) || !widen_table(shard))
        return false;
    char *block = tw__sched_alloc(shard->sched, CHUNK_BYTES);
    if (block == NULL)
        return false;
    size_t skip = LINE - (uintptr_t)block % LINE; /* 1 to 64 */
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

bool tw__sched_tasks_reserve(struct tw__sched_shard *shard, uint64_t n)
{
    uint64_t most = UINT64_C(1) << TW__SCHED_INDEX_BITS,
             made = (uint64_t)shard->chunk_count << TW__SCHED_CHUNK_SHIFT;
    tw__sched_loose_settle(shard);
    if (n > shard->room && n - shard->room > most - made)
        return false;
    while (shard->room < n)
        if (!add_chunk(shard))
            return false;
    return true;
}

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

struct tw__sched_task *tw__sched_task_find(const struct tw__sched_shard *shard, uint64_t id)
{
    uint32_t index = (uint32_t)id & ((1u << TW__SCHED_INDEX_BITS) - 1);
    if (index >> TW__SCHED_CHUNK_SHIFT >= shard->chunk_count)
        return NULL;
    struct tw__sched_task *task = tw__sched_task_at(shard, index);
    return task->generation == id >> 32 && task->state != TW__SCHED_FREE ? task : NULL;
}

struct tw__sched_task *tw__sched_task_take(struct tw__sched_shard *shard)
{
    if (shard->free == TW__SCHED_NONE)
        tw__sched_loose_settle(shard);
    if (shard->free == TW__SCHED_NONE && !add_chunk(shard))
        return NULL;
    struct tw__sched_task *task = tw__sched_task_at(shard, shard->free);
    shard->free = task->next_free;
    shard->room--;
    tw_timer_init(&task->timer);
    task->again = task->dead = task->waited = task->counted = task->detailed = 0;
    return task;
}

/* The end of a task but for its place. */
static void end_task(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    tw__sched_quota_give_back(shard, task);
    struct tw__sched_details *details = tw__sched_task_details(task);
    if (details != NULL && details->key_size > 0)
        tw__sched_key_forget(shard, details);
    if (details != NULL)
        tw__sched_details_drop(shard, details);
    task->state = TW__SCHED_FREE;
}

/* Makes the place of a task free for the next generation, of which there is one but for the last. */
static void retire(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    if (task->generation == UINT32_MAX)
        return;
    task->generation++;
    push_free(shard, task);
}

void tw__sched_task_drop(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    end_task(shard, task);
    retire(shard, task);
}

/* ---- loose tasks ------------------------------------------------------------------------------------------ */

static void tighten(struct tw__sched_shard *shard, struct tw__sched_task **loose)
{
    struct tw__sched_task *task = *loose;
    if (task == NULL)
        return;
    *loose = NULL;
    tw_wheel_cancel(shard->wheel, &task->timer);
    retire(shard, task);
}

/* A cancelled task is at an end at once, but stays in its list in the wheel until a few more were cancelled: its
 * neighbours' cache lines, which taking it out will write to, are asked for now and have come by then. With a million
 * tasks pending that is a third of what a cancel costs. */
static void loosen(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
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
    if (!shard->any_loose)
        return;
    shard->any_loose = false;
    for (uint32_t i = 0; i < TW__SCHED_LOOSE; i++)
        tighten(shard, &shard->loose[i]);
}

/* ---- details --------------------------------------------------------------------------------------------- */

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
    while (shard->details.room < n)
        if (!add_details(shard))
            return false;
    return true;
}

struct tw__sched_details *tw__sched_details_take(struct tw__sched_shard *shard)
{
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
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a detailed task has details */
    if (--details->holders > 0)
        return;
    if (details->key_size > 0) {
        tw__sched_key_free(shard, details);
        return;
    }
    *(void **)details = shard->details.free;
    shard->details.free = details;
    shard->details.room++;
}

/* ---- the wheel ------------------------------------------------------------------------------------------- */

/* The timer thread sleeps until `wake`; 0 means that it is up and will look again by itself. */
static void wake_for(struct tw__sched_shard *shard, uint64_t tick)
{
    if (tick >= shard->wake)
        return;
    shard->wake = 0;
    tw__sched_clock_wake(shard->sched);
}

/* Adds a timer to the wheel; one that will not take it is brought to the present and asked again. */
static int add_timer(struct tw__sched_shard *shard, struct tw_timer *timer, uint64_t tick)
{
    int error = tw_wheel_add_at(shard->wheel, timer, tick);
    if (error == 0)
        return 0;
    tw__sched_catch_up(shard);
    return tw_wheel_add_at(shard->wheel, timer, tick);
}

int tw__sched_task_file(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    uint64_t tick = tw__sched_tick_due(shard->sched, due_ns);
    int error = add_timer(shard, &task->timer, tick);
    if (error != 0)
        return error;
    task->due_ns = due_ns;
    task->state = TW__SCHED_PENDING;
    shard->stats.pending++;
    wake_for(shard, tick);
    return 0;
}

void tw__sched_task_unfile(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
    tw__list_remove(&task->link);
    tw_timer_init(&task->timer);
    shard->stats.pending--;
}

static int refile_ready(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    struct tw__link *before = task->link.prev;
    tw__sched_task_unfile(shard, task);
    int error = tw__sched_task_file(shard, task, due_ns);
    if (error != 0) { /* back to where it was */
        tw__list_insert(&task->link, before->next);
        shard->stats.pending++;
    }
    return error;
}

int tw__sched_task_refile(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    uint64_t tick = tw__sched_tick_due(shard->sched, due_ns);
    int error = task->state == TW__SCHED_READY ? 0 : tw_wheel_move_at(shard->wheel, &task->timer, tick);
    if (error != 0)
        tw__sched_catch_up(shard); /* which may make it ready */
    if (task->state == TW__SCHED_READY)
        return refile_ready(shard, task, due_ns);
    if (error != 0 && (error = tw_wheel_move_at(shard->wheel, &task->timer, tick)) != 0)
        return error;
    task->due_ns = due_ns;
    wake_for(shard, tick);
    return 0;
}

static int probe(struct tw__sched_shard *shard, uint64_t tick)
{
    struct tw_timer timer;
    tw_timer_init(&timer);
    int error = add_timer(shard, &timer, tick);
    tw_wheel_cancel(shard->wheel, &timer);
    return error;
}

int tw__sched_task_probe(struct tw__sched_shard *shard, uint64_t due_ns)
{
    return probe(shard, tw__sched_tick_due(shard->sched, due_ns));
}

/* The next call lies a period after one that is due. A wheel that grows reaches at least half as far as it does now,
 * wherever it stands. */
int tw__sched_every_reach(struct tw__sched_shard *shard, const struct tw_every *every)
{
    uint64_t ticks = (every->period_ns - 1) / shard->sched->options.tick_ns + 1;
    if (ticks > tw_wheel_range(shard->wheel))
        return TW_ERANGE;
    if (shard->sched->geometry.overflow != TW_OVERFLOW_GROW)
        return 0;
    return probe(shard, tw__add_saturating(tw_wheel_now(shard->wheel), tw__add_saturating(ticks, ticks)));
}

/* ---- counting -------------------------------------------------------------------------------------------- */

bool tw__sched_quota_take(struct tw__sched_shard *shard, struct tw__sched_task *task)
{
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
    if (task->counted)
        atomic_fetch_sub_explicit(&shard->sched->counted, 1, memory_order_relaxed);
    task->counted = 0;
}

/* ---- adding ---------------------------------------------------------------------------------------------- */

int tw__sched_ready(struct tw_sched *sched)
{
    return atomic_load_explicit(&sched->started, memory_order_acquire) ? 0 : tw__sched_threads_start(sched);
}

struct tw__sched_shard *tw__sched_home(struct tw_sched *sched)
{
    static _Atomic uint32_t threads;
    static _Thread_local uint32_t thread; /* from 1 */
    if (thread == 0)
        thread = atomic_fetch_add(&threads, 1) + 1;
    return &sched->shard[thread % sched->options.shards];
}

/* What is to be added. */
struct addition {
    uint64_t due_ns;
    tw_task_fn *fn;
    void *arg;
    const struct tw_every *every; /* NULL: once */
    uint64_t *id;
};

static int take_details(struct tw__sched_shard *shard, struct tw__sched_task *task,
                        const struct addition *addition)
{
    struct tw__sched_details *details = tw__sched_details_take(shard);
    if (details == NULL)
        return TW_ENOMEM;
    details->fn = addition->fn;
    details->arg = addition->arg;
    tw__sched_details_every(details, addition->every);
    task->detailed = 1;
    task->arg = details;
    return 0;
}

static int fill_and_file(struct tw__sched_shard *shard, struct tw__sched_task *task,
                         const struct addition *addition)
{
    task->fn = addition->fn;
    task->arg = addition->arg;
    int error = addition->every == NULL ? 0 : take_details(shard, task, addition);
    return error != 0 ? error : tw__sched_task_file(shard, task, addition->due_ns);
}

static int add_locked(struct tw__sched_shard *shard, const struct addition *addition)
{
    if (shard->stopped)
        return TW_ESTOPPED;
    int error = addition->every == NULL ? 0 : tw__sched_every_reach(shard, addition->every);
    if (error != 0)
        return error;
    struct tw__sched_task *task = tw__sched_task_take(shard);
    if (task == NULL)
        return TW_ENOMEM;
    error = tw__sched_quota_take(shard, task) ? fill_and_file(shard, task, addition) : TW_EFULL;
    if (error != 0) {
        tw__sched_task_drop(shard, task);
        return error;
    }
    shard->stats.added++;
    if (addition->id != NULL)
        *addition->id = tw__sched_task_id(shard, task);
    return 0;
}

static int add_to(struct tw__sched_shard *shard, const struct addition *addition)
{
    pthread_mutex_lock(&shard->lock);
    int error = add_locked(shard, addition);
    pthread_mutex_unlock(&shard->lock);
    return error;
}

/* Adds to this thread's shard; one that has no memory passes the task on to the others, where some may be reserved. */
static int add(struct tw_sched *sched, const struct addition *addition)
{
    int error = tw__sched_ready(sched);
    if (error != 0)
        return error;
    struct tw__sched_shard *home = tw__sched_home(sched);
    error = add_to(home, addition);
    for (uint32_t i = 0; error == TW_ENOMEM && i < sched->options.shards; i++)
        if (&sched->shard[i] != home)
            error = add_to(&sched->shard[i], addition);
    return error;
}

int tw_sched_at(struct tw_sched *sched, uint64_t due_ns, tw_task_fn *fn, void *arg, uint64_t *id)
{
    return add(sched, &(struct addition){.due_ns = due_ns, .fn = fn, .arg = arg, .id = id});
}

int tw_sched_after(struct tw_sched *sched, uint64_t delay_ns, tw_task_fn *fn, void *arg, uint64_t *id)
{
    return tw_sched_at(sched, tw__add_saturating(tw__sched_clock_read(sched), delay_ns), fn, arg, id);
}

int tw__sched_every_check(const struct tw_sched *sched, const struct tw_every *every)
{
    bool good = every->period_ns >= sched->options.tick_ns && every->missed >= TW_MISSED_BURST &&
                every->missed <= TW_MISSED_COALESCE;
    return good ? 0 : TW_EINVAL;
}

uint64_t tw__sched_every_first(const struct tw_sched *sched, const struct tw_every *every)
{
    return every->at_ns != 0 ? every->at_ns : tw__add_saturating(tw__sched_clock_read(sched), every->first_ns);
}

void tw__sched_details_every(struct tw__sched_details *details, const struct tw_every *every)
{
    details->period_ns = every->period_ns;
    details->policy = (uint8_t)every->missed;
    details->left = every->times == 0 || every->times == TW_FOREVER ? TW_FOREVER : every->times - 1;
    details->missed = 0;
}

int tw_sched_every(struct tw_sched *sched, const struct tw_every *every, tw_task_fn *fn, void *arg,
                   uint64_t *id)
{
    int error = tw__sched_every_check(sched, every);
    if (error != 0)
        return error;
    uint64_t due_ns = tw__sched_every_first(sched, every);
    return add(sched, &(struct addition){.due_ns = due_ns, .fn = fn, .arg = arg, .every = every, .id = id});
}

int tw_sched_reserve(struct tw_sched *sched, uint64_t n)
{
    uint64_t share = n / sched->options.shards + (n % sched->options.shards != 0);
    bool enough = true;
    for (uint32_t i = 0; enough && i < sched->options.shards; i++) {
        struct tw__sched_shard *shard = &sched->shard[i];
        pthread_mutex_lock(&shard->lock);
        enough = tw__sched_tasks_reserve(shard, share) && tw__sched_details_reserve(shard, share);
        pthread_mutex_unlock(&shard->lock);
    }
    return enough ? 0 : TW_ENOMEM;
}

/* ---- cancelling and moving ---------------------------------------------------------------------------------- */

bool tw__sched_task_goes_on(const struct tw__sched_task *task)
{
    const struct tw__sched_details *details = tw__sched_task_details(task);
    return !task->dead && (task->again || (details != NULL && details->period_ns > 0 && details->left > 0));
}

struct tw__sched_value tw__sched_task_value(const struct tw__sched_task *task)
{
    const struct tw__sched_details *details = tw__sched_task_details(task);
    return details != NULL ? (struct tw__sched_value){details->fn, details->arg}
                           : (struct tw__sched_value){task->fn, task->arg};
}

/* The value of a call under way is released at its end; one that was set meanwhile is not in use. */
enum tw_cancelled tw__sched_task_cancel(struct tw__sched_shard *shard, struct tw__sched_task *task,
                                        struct tw__sched_value *value)
{
    *value = (struct tw__sched_value){NULL, NULL};
    if (task->state == TW__SCHED_RUNNING) {
        const struct tw__sched_details *details = tw__sched_task_details(task);
        bool goes_on = tw__sched_task_goes_on(task);
        task->dead = 1;
        if (!goes_on)
            return TW_RUNNING;
        shard->stats.again++; /* as if it had been filed just before */
        shard->stats.cancelled++;
        if (details == NULL || !details->fresh)
            return TW_RUNNING;
        *value = tw__sched_task_value(task);
        return TW_CANCELLED;
    }
    *value = tw__sched_task_value(task);
    shard->stats.cancelled++;
    if (task->state == TW__SCHED_PENDING) {
        loosen(shard, task);
        return TW_CANCELLED;
    }
    tw__sched_task_unfile(shard, task);
    tw__sched_task_drop(shard, task);
    return TW_CANCELLED;
}

enum tw_cancelled tw_sched_cancel(struct tw_sched *sched, uint64_t id)
{
    struct tw__sched_shard *shard = tw__sched_shard_of(sched, id);
    if (shard == NULL)
        return TW_GONE;
    pthread_mutex_lock(&shard->lock);
    struct tw__sched_task *task = tw__sched_task_find(shard, id);
    struct tw__sched_value value = {NULL, NULL};
    enum tw_cancelled found = task == NULL ? TW_GONE : tw__sched_task_cancel(shard, task, &value);
    pthread_mutex_unlock(&shard->lock);
    tw__sched_value_release(sched, &value);
    return found;
}

/* Waits until the callback under way has returned, which takes `waited` back; a call that comes after it does not count. */
static void wait_for(struct tw__sched_shard *shard, uint64_t id)
{
    struct tw__sched_task *task = tw__sched_task_find(shard, id);
    if (task == NULL || task->state != TW__SCHED_RUNNING)
        return;
    for (task->waited = 1; task != NULL && task->state == TW__SCHED_RUNNING && task->waited;
         task = tw__sched_task_find(shard, id))
        pthread_cond_wait(&shard->idle, &shard->lock);
}

int tw_sched_cancel_wait(struct tw_sched *sched, uint64_t id, enum tw_cancelled *found)
{
    struct tw__sched_shard *shard = tw__sched_shard_of(sched, id);
    if (tw__sched_inside(sched, id))
        return TW_EDEADLK;
    enum tw_cancelled result = TW_GONE;
    if (shard != NULL) {
        struct tw__sched_value value = {NULL, NULL};
        pthread_mutex_lock(&shard->lock);
        struct tw__sched_task *task = tw__sched_task_find(shard, id);
        if (task != NULL)
            result = tw__sched_task_cancel(shard, task, &value);
        wait_for(shard, id);
        pthread_mutex_unlock(&shard->lock);
        tw__sched_value_release(sched, &value);
    }
    if (found != NULL)
        *found = result;
    return 0;
}

int tw__sched_task_again(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    int error = tw__sched_task_probe(shard, due_ns);
    if (error != 0)
        return error;
    if (!tw__sched_quota_take(shard, task))
        return TW_EFULL;
    task->again = 1;
    task->due_ns = due_ns;
    return 0;
}

/* Leaves a note for when the callback has returned. A task that runs once is moved by its own callback only. */
static int move_running(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    struct tw__sched_details *details = tw__sched_task_details(task);
    bool noted = task->again;
    if (task->dead ||
        (!tw__sched_task_goes_on(task) && !tw__sched_inside(shard->sched, tw__sched_task_id(shard, task))))
        return TW_EGONE;
    int error = tw__sched_task_again(shard, task, due_ns);
    if (error == 0 && !noted && details != NULL && details->left > 0 && details->left != TW_FOREVER)
        details->left--; /* the call that is filed now */
    return error;
}

int tw__sched_task_move(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    if (shard->stopped)
        return TW_ESTOPPED;
    int error = task->state == TW__SCHED_RUNNING ? move_running(shard, task, due_ns)
                                                 : tw__sched_task_refile(shard, task, due_ns);
    if (error == 0)
        shard->stats.moved++;
    return error;
}

int tw_sched_move_at(struct tw_sched *sched, uint64_t id, uint64_t due_ns)
{
    struct tw__sched_shard *shard = tw__sched_shard_of(sched, id);
    if (shard == NULL)
        return TW_EGONE;
    pthread_mutex_lock(&shard->lock);
    struct tw__sched_task *task = tw__sched_task_find(shard, id);
    int error = task == NULL ? TW_EGONE : tw__sched_task_move(shard, task, due_ns);
    pthread_mutex_unlock(&shard->lock);
    return error;
}

int tw_sched_move_after(struct tw_sched *sched, uint64_t id, uint64_t delay_ns)
{
    return tw_sched_move_at(sched, id, tw__add_saturating(tw__sched_clock_read(sched), delay_ns));
}

void tw__sched_task_describe(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                             struct tw_task *seen)
{
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

int tw__sched_task_look(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                        struct tw_task *seen)
{
    if (task == NULL || (task->state == TW__SCHED_RUNNING && !tw__sched_task_goes_on(task)))
        return TW_EGONE;
    tw__sched_task_describe(shard, task, seen);
    seen->key = NULL; /* it may go as soon as the lock does */
    return 0;
}

int tw_sched_get(struct tw_sched *sched, uint64_t id, struct tw_task *seen)
{
    struct tw__sched_shard *shard = tw__sched_shard_of(sched, id);
    if (shard == NULL)
        return TW_EGONE;
    pthread_mutex_lock(&shard->lock);
    int error = tw__sched_task_look(shard, tw__sched_task_find(shard, id), seen);
    pthread_mutex_unlock(&shard->lock);
    return error;
}
