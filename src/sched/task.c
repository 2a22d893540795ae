/* SPDX-License-Identifier: MIT
 *
 * Tasks without keys: adding, cancelling, moving.
 *
 * A task is always in one of four states:
 *
 *     FREE -> PENDING -> READY -> RUNNING -> FREE
 *                ^          |        |
 *                +----------+--------+     moved; repeats
 *
 * A cancel or a move of a PENDING or READY task takes effect at once, under the lock (S1). While a task is
 * RUNNING, only the thread of its callback changes the task's place. Other threads leave a note, which that
 * thread reads when the callback has returned:
 *
 *     again    file the task once more, at due_ns
 *     dead     do not file the task again
 *
 * Example: a task runs every 10 ms. The callback that was due at 20 ms is still running when another thread
 * moves the task to 50 ms. The move sets `again` and due_ns. When the callback returns, its thread files the
 * task for 50 ms instead of 30 ms. If a third thread cancels the task before that, it sets `dead`, and the
 * task ends when the callback returns.
 */
#include "task.h"

#include "call.h"
#include "clock.h"
#include "filing.h"
#include "lock.h"
#include "pool.h"
#include "run.h"
#include "shard.h"

#include <base/grow.h>

/* ---- adding --------------------------------------------------------------------------------------------- */

/* A task that is to be added. */
struct addition {
    uint64_t now_ns, due_ns;
    bool delayed; /* due_ns has not passed */
    tw_task_fn *fn;
    void *arg;
    const struct tw_every *every; /* NULL: once */
    uint64_t *id;
};

static int take_details(struct tw__sched_shard *shard, struct tw__sched_task *task,
                        const struct addition *addition)
{
    struct tw__sched_details *details = tw__sched_details_take(shard, TW__SCHED_PLAIN);
    if (details == NULL)
        return TW_ENOMEM;
    details->arg = addition->arg;
    tw__sched_details_every(details, addition->every, addition->now_ns);
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
    if (error != 0)
        return error;
    bool may_have_passed = addition->every == NULL && !addition->delayed;
    uint64_t due_ns = may_have_passed ? tw__sched_due_once(shard, addition->due_ns) : addition->due_ns;
    return tw__sched_task_file(shard, task, due_ns);
}

static int add_locked(struct tw__sched_shard *shard, const struct addition *addition)
{
    if (shard->stopped)
        return TW_ESTOPPED;
    int error = addition->every == NULL ? 0 : tw__sched_every_reach(shard, addition->every);
    if (error != 0)
        return error;
    struct tw__sched_task *task = tw__sched_task_take(shard, TW__SCHED_PLAIN);
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
    tw__sched_lock(shard);
    int error = add_locked(shard, addition);
    tw__sched_unlock(shard);
    return error;
}

/* Adds a task to any shard but one. It makes the next shard when all others have failed. */
static int add_elsewhere(struct tw_sched *sched, const struct tw__sched_shard *home,
                         const struct addition *addition)
{
    int error = TW_ENOMEM;
    for (uint32_t i = 0; error == TW_ENOMEM && i < sched->options.shards; i++) {
        struct tw__sched_shard *shard = tw__sched_shard_at(sched, i);
        if (shard == NULL)
            return TW_ENOMEM;
        if (shard != home)
            error = add_to(shard, addition);
    }
    return error;
}

/* Adds a task to this thread's shard. If that shard has no memory, tries the other shards, where the caller
 * may have reserved some. */
static int add_task(struct tw_sched *sched, const struct addition *addition)
{
    int error = tw__sched_ready(sched);
    if (error != 0)
        return error;
    struct tw__sched_shard *home = tw__sched_home(sched);
    error = add_to(home, addition);
    return error == TW_ENOMEM ? add_elsewhere(sched, home, addition) : error;
}

int tw_sched_add_at(struct tw_sched *sched, uint64_t due_ns, tw_task_fn *fn, void *arg, uint64_t *id)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(fn != NULL);
    return add_task(sched, &(struct addition){.due_ns = due_ns, .fn = fn, .arg = arg, .id = id});
}

int tw_sched_add_in(struct tw_sched *sched, uint64_t delay_ns, tw_task_fn *fn, void *arg, uint64_t *id)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(fn != NULL);
    uint64_t due_ns = tw__add_saturating(tw__sched_clock_read(sched), delay_ns);
    return add_task(sched,
                    &(struct addition){.due_ns = due_ns, .delayed = true, .fn = fn, .arg = arg, .id = id});
}

int tw__sched_every_check(const struct tw_sched *sched, const struct tw_every *every)
{
    bool good = every->period_ns >= sched->options.tick_ns && (unsigned)every->missed <= TW_MISSED_BURST &&
                TW__GROW_UNUSED(every->reserved);
    return good ? 0 : TW_EINVAL;
}

uint64_t tw__sched_every_first(const struct tw_every *every, uint64_t now_ns)
{
    return every->at_ns != 0 ? every->at_ns : tw__add_saturating(now_ns, every->first_ns);
}

void tw__sched_details_every(struct tw__sched_details *details, const struct tw_every *every, uint64_t now_ns)
{
    details->period_ns = every->period_ns;
    details->missed = (unsigned)every->missed;
    details->filed_ns = now_ns;
    details->left = every->times == 0 || every->times == TW_FOREVER ? TW_FOREVER : every->times - 1;
    details->missed_periods = 0;
}

int tw_sched_add_every(struct tw_sched *sched, const struct tw_every *every, tw_task_fn *fn, void *arg,
                       uint64_t *id)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(every != NULL && fn != NULL);
    int error = tw__sched_every_check(sched, every);
    if (error != 0)
        return error;
    uint64_t now_ns = tw__sched_clock_read(sched);
    return add_task(sched, &(struct addition){.now_ns = now_ns,
                                              .due_ns = tw__sched_every_first(every, now_ns),
                                              .fn = fn,
                                              .arg = arg,
                                              .every = every,
                                              .id = id});
}

/* The most tasks that can still be added, 2^25 for a shard that has not been made yet. */
static uint64_t most_tasks(struct tw_sched *sched)
{
    uint32_t made = tw__sched_made(sched);
    uint64_t most = (uint64_t)(sched->options.shards - made) << TW__SCHED_INDEX_BITS;
    for (uint32_t i = 0; i < made; i++) {
        tw__sched_lock(sched->shard[i]);
        most += tw__sched_tasks_most(sched->shard[i]);
        tw__sched_unlock(sched->shard[i]);
    }
    return most;
}

/* Makes room for n tasks, or for as many as the shard can have, and takes these off n. Returns false if there
 * is no memory. */
static bool reserve_in(struct tw__sched_shard *shard, uint64_t *n)
{
    tw__sched_lock(shard);
    uint64_t most = tw__sched_tasks_most(shard), share = *n < most ? *n : most;
    bool enough = tw__sched_tasks_reserve(shard, share) && tw__sched_details_reserve(shard, share);
    tw__sched_unlock(shard);
    *n -= share;
    return enough;
}

int tw_sched_reserve(struct tw_sched *sched, uint64_t n)
{
    TW_ASSERT(tw__sched_usable(sched));
    struct tw__sched_shard *home = tw__sched_home(sched);
    bool enough = n <= most_tasks(sched);
    for (uint32_t i = 0; enough && n > 0 && i <= sched->options.shards; i++) { /* home, and then the others */
        struct tw__sched_shard *shard = i == 0 ? home : tw__sched_shard_at(sched, i - 1);
        enough = shard != NULL && ((i > 0 && shard == home) || reserve_in(shard, &n));
    }
    return enough && n == 0 ? 0 : TW_ENOMEM;
}

/* ---- cancelling ----------------------------------------------------------------------------------------- */

/* The value of a call under way is released when the call ends. But a value that was set during the call is
 * not in use, so the caller of this function releases it. */
enum tw_cancel tw__sched_task_cancel(struct tw__sched_shard *shard, struct tw__sched_task *task,
                                     struct tw__sched_value *value)
{
    TW_ASSERT(tw__sched_locked(shard));
    *value = (struct tw__sched_value){NULL, NULL};
    if (task->state == TW__SCHED_RUNNING) {
        bool goes_on = tw__sched_task_goes_on(task);
        task->dead = 1;
        if (!goes_on)
            return TW_CANCEL_AT_WORK;
        shard->stats.again++; /* for S3: as if the task had been filed again before it was cancelled */
        shard->stats.cancelled++;
        if (!tw__sched_task_fresh(shard, task))
            return TW_CANCEL_AT_WORK;
        *value = tw__sched_task_value(task);
        return TW_CANCEL_CANCELLED;
    }
    *value = tw__sched_task_value(task);
    shard->stats.cancelled++;
    if (task->state == TW__SCHED_PENDING) {
        tw__sched_task_loosen(shard, task);
        return TW_CANCEL_CANCELLED;
    }
    tw__sched_task_unfile(shard, task);
    tw__sched_task_drop(shard, task);
    return TW_CANCEL_CANCELLED;
}

enum tw_cancel tw_sched_cancel(struct tw_sched *sched, uint64_t id)
{
    TW_ASSERT(tw__sched_usable(sched));
    struct tw__sched_shard *shard = tw__sched_shard_of(sched, id);
    if (shard == NULL)
        return TW_CANCEL_GONE;
    tw__sched_lock(shard);
    struct tw__sched_task *task = tw__sched_task_find(shard, id);
    struct tw__sched_value value = {NULL, NULL};
    enum tw_cancel found = task == NULL ? TW_CANCEL_GONE : tw__sched_task_cancel(shard, task, &value);
    tw__sched_unlock(shard);
    tw__sched_value_release(sched, &value);
    return found;
}

/* Waits until the callback under way has returned. The next call of the task has a `waited` of its own, so
 * the wait also ends if that call has begun meanwhile. */
static void wait_for(struct tw__sched_shard *shard, uint64_t id)
{
    struct tw__sched_call *call = tw__sched_call_of(shard, id);
    if (call != NULL)
        call->waited = true;
    for (; call != NULL && call->waited; call = tw__sched_call_of(shard, id))
        pthread_cond_wait(&shard->idle, &shard->lock);
}

/* Returns: 0, and the result of the cancel in *found, which stays as it is if there is no task; TW_EDEADLK.
 * The lock is released during the wait. */
static int cancel_and_wait(struct tw__sched_shard *shard, uint64_t id, enum tw_cancel *found,
                           struct tw__sched_value *value)
{
    struct tw__sched_task *task = tw__sched_task_find(shard, id);
    if (task == NULL)
        return 0;
    if (tw__sched_inside_task(shard, id))
        return TW_EDEADLK;
    *found = tw__sched_task_cancel(shard, task, value);
    wait_for(shard, id);
    return 0;
}

int tw_sched_cancel_wait(struct tw_sched *sched, uint64_t id, enum tw_cancel *found)
{
    TW_ASSERT(tw__sched_usable(sched));
    struct tw__sched_shard *shard = tw__sched_shard_of(sched, id);
    struct tw__sched_value value = {NULL, NULL};
    enum tw_cancel result = TW_CANCEL_GONE;
    int error = 0;
    if (shard != NULL) {
        tw__sched_guest_comes(sched);
        tw__sched_lock(shard);
        error = cancel_and_wait(shard, id, &result, &value);
        tw__sched_unlock(shard);
        tw__sched_value_release(sched, &value);
        tw__sched_guest_goes(sched);
    }
    if (found != NULL && error == 0)
        *found = result;
    return error;
}

/* ---- moving --------------------------------------------------------------------------------------------- */

int tw__sched_task_again(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    TW_ASSERT(tw__sched_locked(shard));
    int error = tw__sched_task_probe(shard, due_ns);
    if (error != 0)
        return error;
    if (!tw__sched_quota_take(shard, task))
        return TW_EFULL;
    task->again = 1;
    task->due_ns = due_ns;
    return 0;
}

/* Leaves a note that the callback's thread reads when the callback has returned. A task that runs once can be
 * moved by its own callback only. */
static int move_running(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    struct tw__sched_details *details = tw__sched_task_details(task);
    bool noted = task->again;
    if (task->dead ||
        (!tw__sched_task_goes_on(task) && !tw__sched_inside_task(shard, tw__sched_task_id(shard, task))))
        return TW_EGONE;
    int error = tw__sched_task_again(shard, task, due_ns);
    if (error == 0 && !noted && details != NULL && details->left > 0 && details->left != TW_FOREVER)
        details->left--; /* `left` does not count the call that is filed now */
    return error;
}

/* A task that repeats keeps its phase, so its due time may lie in the past. */
int tw__sched_task_move(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw__sched_details *details = tw__sched_task_details(task);
    if (shard->stopped)
        return TW_ESTOPPED;
    if (details == NULL)
        due_ns = tw__sched_due_once(shard, due_ns);
    int error = task->state == TW__SCHED_RUNNING ? move_running(shard, task, due_ns)
                                                 : tw__sched_task_refile(shard, task, due_ns);
    if (error != 0)
        return error;
    if (details != NULL)
        details->filed_ns = tw__sched_clock_read(shard->sched);
    shard->stats.moved++;
    return 0;
}

int tw_sched_move_at(struct tw_sched *sched, uint64_t id, uint64_t due_ns)
{
    TW_ASSERT(tw__sched_usable(sched));
    struct tw__sched_shard *shard = tw__sched_shard_of(sched, id);
    if (shard == NULL)
        return TW_EGONE;
    tw__sched_lock(shard);
    struct tw__sched_task *task = tw__sched_task_find(shard, id);
    int error = task == NULL ? TW_EGONE : tw__sched_task_move(shard, task, due_ns);
    tw__sched_unlock(shard);
    return error;
}

int tw_sched_move_in(struct tw_sched *sched, uint64_t id, uint64_t delay_ns)
{
    TW_ASSERT(tw__sched_usable(sched));
    return tw_sched_move_at(sched, id, tw__add_saturating(tw__sched_clock_read(sched), delay_ns));
}

/* ---- looking -------------------------------------------------------------------------------------------- */

int tw__sched_task_look(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                        struct tw_task *seen, size_t size)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct tw_task all;
    if (task == NULL || (task->state == TW__SCHED_RUNNING && !tw__sched_task_goes_on(task)))
        return TW_EGONE;
    tw__sched_task_describe(shard, task, &all);
    all.key = (struct tw_bytes){0}; /* the key may be freed as soon as the lock is released */
    tw__grow_fill(seen, size, &all, sizeof all);
    return 0;
}

int tw_sched_get(struct tw_sched *sched, uint64_t id, struct tw_task *seen, size_t size)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(seen != NULL);
    struct tw__sched_shard *shard = tw__sched_shard_of(sched, id);
    if (shard == NULL)
        return TW_EGONE;
    tw__sched_lock(shard);
    int error = tw__sched_task_look(shard, tw__sched_task_find(shard, id), seen, size);
    tw__sched_unlock(shard);
    return error;
}
