/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of a queue, and of all queues; the tasks that come and go. state.h has the
 * overview.
 *
 * The server may free a value on a background thread (UNLINK, FLUSHALL ASYNC). That thread must not touch the
 * tasks, as they are linked into the wheel together with tasks of other queues. So the background thread
 * puts the queue on the list of the reaper, which alone has a lock here. The server's own thread then takes
 * the tasks out, a few at a time.
 */
#include "queue.h"

#include <base/assert.h>
#include <base/list.h>
#include <string.h>

#include "check.h"
#include "place.h"
#include "route.h"
#include "share.h"
#include "sums.h"

/* ---- attached and detached ------------------------------------------------------------------------------- */

struct tw__redis_queue *tw__redis_queue_new(struct tw__redis_queues *queues)
{
    struct tw__redis_queue *queue = queues->memory.alloc(sizeof *queue);
    memset(queue, 0, sizeof *queue);
    queue->queues = queues;
    tw__redis_table_init(&queue->tasks, &queues->of_tasks);
    tw__redis_table_init(&queue->routes, &queues->of_routes);
    tw__list_init(&queue->stopped);
    tw__list_init(&queue->ready);
    tw__list_init(&queue->dead);
    queue->bytes = queues->memory.usable(queue);
    tw__list_append(&queues->detached, &queue->all);
    return queue;
}

void tw__redis_queue_free(struct tw__redis_queue *queue)
{
    struct tw__redis_queues *queues = queue->queues;
    TW_ASSERT(!queue->attached);
    tw__redis_route_free_all(queue);
    tw__redis_table_fini(&queue->tasks);
    tw__redis_table_fini(&queue->routes);
    tw__list_remove(&queue->all);
    if (tw__link_listed(&queue->awake))
        tw__list_remove(&queue->awake);
    TW_ASSERT(!tw__link_listed(&queue->stale) && !tw_timer_pending(&queue->death));
    if (queues->recent == queue)
        queues->recent = NULL;
    if (queue->name != NULL)
        queues->forget(queue->name);
    queues->memory.free(queue);
}

void tw__redis_queue_attach(struct tw__redis_queue *queue)
{
    if (queue->attached)
        return;
    tw__list_remove(&queue->all);
    tw__redis_sums_list(queue);
    queue->attached = true;
    tw__redis_sums_queue(queue, 1);
    tw__redis_check_changed(queue->queues, tw__redis_check_sums);
}

void tw__redis_queue_detach(struct tw__redis_queue *queue)
{
    if (!queue->attached)
        return;
    tw__list_remove(&queue->all);
    tw__list_append(&queue->queues->detached, &queue->all);
    queue->attached = false;
    tw__redis_sums_queue(queue, -1);
    tw__redis_check_changed(queue->queues, tw__redis_check_sums);
}

/* ---- tasks ----------------------------------------------------------------------------------------------- */

uint64_t tw__redis_queue_hash(const struct tw__redis_queues *queues, struct tw__redis_bytes id)
{
    return tw__redis_table_hash(&queues->of_tasks, id.at, id.size);
}

uint64_t tw__redis_queue_foresee(const struct tw__redis_queues *queues, struct tw__redis_bytes id)
{
    uint64_t hash = tw__redis_queue_hash(queues, id);
    if (queues->recent != NULL)
        tw__redis_table_prefetch_directory(&queues->recent->tasks, hash);
    return hash;
}

void tw__redis_queue_foresee_cells(const struct tw__redis_queues *queues, uint64_t hash)
{
    if (queues->recent != NULL)
        tw__redis_table_prefetch(&queues->recent->tasks, hash);
}

void tw__redis_queue_foresee_removal(const struct tw__redis_queue *queue, uint64_t hash)
{
    void *task = tw__redis_table_prefetch_entry(&queue->tasks, hash);
    if (task != NULL)
        (void)queue->queues->memory.usable(task); /* reads the allocator's entry while the task arrives */
}

struct tw__redis_task *tw__redis_queue_find(const struct tw__redis_queue *queue, uint64_t hash,
                                            struct tw__redis_bytes id)
{
    return tw__redis_table_find(&queue->tasks, hash, id.at, id.size);
}

struct tw__redis_task *tw__redis_queue_named(const struct tw__redis_queue *queue, struct tw__redis_bytes id)
{
    return tw__redis_queue_find(queue, tw__redis_queue_hash(queue->queues, id), id);
}

/* Takes a task from its place and from the payload that it shares. */
static void unfile(struct tw__redis_queue *queue, struct tw__redis_task *task)
{
    tw__redis_place_unfile(queue->queues, task);
    tw__redis_sums_leased(queue, task, -1);
    if (task->shares)
        tw__redis_share_leave(queue, task);
}

/* The same, and from its route and from the memory of the queue. */
static void leave(struct tw__redis_queue *queue, struct tw__redis_task *task)
{
    unfile(queue, task);
    tw__redis_sums_block(queue, task, -1);
    tw__redis_route_release(tw__redis_route_of(queue->queues, task));
}

static void set_route(struct tw__redis_task *task, struct tw__redis_route *route)
{
    task->route = route->index & (TW__REDIS_ROUTES_MAX - 1);
    tw__redis_route_keep(route);
}

/* Lets the queue and the route count a task that joins them. */
static void join(struct tw__redis_queue *queue, struct tw__redis_task *task, struct tw__redis_route *route)
{
    TW_ASSERT(route->queue == queue && !tw__redis_task_filed(task));
    set_route(task, route);
    tw__redis_sums_block(queue, task, 1);
    tw__redis_sums_leased(queue, task, 1);
    if (task->shares)
        tw__redis_share_join(queue, task);
}

/* Lets a task take the place of `old` in the table, and frees `old`. */
static void replace(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t hash,
                    struct tw__redis_task *old)
{
    leave(queue, old);
    tw__redis_table_replace(&queue->tasks, hash, old, task);
    queue->queues->memory.free(old);
}

void tw__redis_queue_put(struct tw__redis_queue *queue, struct tw__redis_task *task,
                         struct tw__redis_route *route, uint64_t hash, struct tw__redis_task *old,
                         uint64_t now_ms)
{
    TW_ASSERT(tw__redis_queue_find(queue, hash, tw__redis_task_id(task)) == old);
    join(queue, task, route);
    if (tw__redis_task_is_leased(task))
        task->order = queue->queues->order++; /* a lease that is filed keeps the order of its task */
    if (old != NULL) {
        replace(queue, task, hash, old);
    } else {
        size_t before = tw__redis_sums_table_bytes(queue);
        tw__redis_sums_task(queue, 1);
        tw__redis_table_add(&queue->tasks, hash, task);
        tw__redis_sums_tables(queue, before);
    }
    tw__redis_place_file(queue->queues, task, tw__redis_task_due(task), now_ms);
    tw__redis_check_changed(queue->queues, tw__redis_check_sums);
}

void tw__redis_queue_remove(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t hash)
{
    size_t before = tw__redis_sums_table_bytes(queue);
    TW_ASSERT(tw__redis_queue_find(queue, hash, tw__redis_task_id(task)) == task);
    tw__redis_table_remove(&queue->tasks, hash, task);
    tw__redis_sums_tables(queue, before);
    tw__redis_sums_task(queue, -1);
    leave(queue, task);
    queue->queues->memory.free(task);
    tw__redis_check_changed(queue->queues, tw__redis_check_sums);
}

/* Whether an attempt state has the strings, the `next` and the `missed_periods` of the task's own attempt
 * state, so that it fits in the task's block. */
static bool fits_in_place(const struct tw__redis_task *task, const struct tw__redis_attempt *attempt)
{
    if (!task->has_attempt || attempt == NULL)
        return false;
    struct tw__redis_attempt own = tw__redis_task_whole_attempt(task);
    bool same_next = own.has_next == attempt->has_next &&
                     (!own.has_next || tw__redis_attempt_away(&own) == tw__redis_attempt_away(attempt));
    bool same_missed_periods = own.has_missed_periods == attempt->has_missed_periods &&
                               (!own.has_missed_periods || own.missed_periods == attempt->missed_periods);
    return same_next && same_missed_periods && tw__redis_bytes_equal(own.worker, attempt->worker) &&
           tw__redis_bytes_equal(own.error, attempt->error);
}

/* Lets a copy take the place of a task, which it frees. */
static void replace_block(struct tw__redis_queue *queue, struct tw__redis_task *task,
                          struct tw__redis_task *copy)
{
    struct tw__redis_queues *queues = queue->queues;
    tw__redis_queue_moved(queue, task, copy);
    tw__redis_sums_block(queue, copy, 1);
    tw__redis_sums_block(queue, task, -1);
    if (queues->delivering == task)
        queues->delivering = copy;
    queues->memory.free(task);
}

struct tw__redis_task *tw__redis_queue_set_attempt(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                                   const struct tw__redis_attempt *attempt)
{
    struct tw__redis_queues *queues = queue->queues;
    TW_ASSERT(tw__redis_task_stage(task) != TW__TASK_BURIED || !tw__redis_task_filed(task));
    tw__redis_sums_leased(queue, task, -1);
    if (task->shares)
        tw__redis_share_dead(queue, task, -1);
    if (fits_in_place(task, attempt)) {
        tw__redis_task_set_attempt(task, attempt);
    } else if (task->has_attempt || attempt != NULL) {
        struct tw__redis_task *copy = tw__redis_task_with_attempt(task, attempt, &queues->memory);
        replace_block(queue, task, copy);
        task = copy;
    }
    tw__redis_sums_leased(queue, task, 1);
    if (task->shares)
        tw__redis_share_dead(queue, task, 1);
    tw__redis_check_changed(queues, tw__redis_check_sums);
    return task;
}

struct tw__redis_task *tw__redis_queue_share(struct tw__redis_queue *queue, struct tw__redis_task *task)
{
    struct tw__redis_queues *queues = queue->queues;
    if (task->shares && tw__redis_task_share(task)->users < TW__REDIS_USERS_MAX)
        return task;
    bool dead = tw__redis_task_stage(task) == TW__TASK_BURIED;
    struct tw__redis_share *share = tw__redis_share_new(queue, task);
    struct tw__redis_task *copy = tw__redis_task_sharing(task, share, &queues->memory);
    if (dead) {
        tw__redis_sums_dead_block(queue, task, -1);
        tw__redis_sums_dead_block(queue, copy, 1);
    }
    replace_block(queue, task, copy);
    tw__redis_check_changed(queues, tw__redis_check_sums);
    return copy;
}

struct tw__redis_task *tw__redis_queue_renew(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                             struct tw__redis_task *fresh, struct tw__redis_route *route)
{
    struct tw__redis_queues *queues = queue->queues;
    struct tw__redis_route *before = tw__redis_route_of(queues, task);
    TW_ASSERT(tw__redis_task_stage(task) != TW__TASK_BURIED && !tw__redis_task_filed(fresh));
    TW_ASSERT(route == before || task->place != TW__REDIS_IN_HELD);
    struct tw__redis_task *copy = tw__redis_task_renewed(task, fresh, &queues->memory);
    if (task->shares)
        tw__redis_share_leave(queue, task);
    replace_block(queue, task, copy);
    set_route(copy, route);
    tw__redis_route_release(before);
    queues->memory.free(fresh);
    tw__redis_check_changed(queues, tw__redis_check_sums);
    return copy;
}

void tw__redis_queue_begin_anew(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t due_ms,
                                uint64_t now_ms)
{
    tw__redis_place_unfile(queue->queues, task);
    task = tw__redis_queue_set_attempt(queue, task, NULL);
    task->tries = 0;
    tw__redis_place_file(queue->queues, task, due_ms, now_ms);
}

struct tw__redis_task *tw__redis_queue_unbegin(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                               uint64_t at_ms)
{
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    tw__redis_attempt_unbegin(&attempt);
    bool again = attempt.number > 0 || attempt.due != at_ms;
    tw__redis_place_unfile(queue->queues, task);
    task = tw__redis_queue_set_attempt(queue, task, again ? &attempt : NULL);
    if (!again)
        task->tries = 0;
    return task;
}

void tw__redis_queue_moved(struct tw__redis_queue *queue, const struct tw__redis_task *old,
                           struct tw__redis_task *task)
{
    tw__redis_place_moved(queue, old, task);
    if (task->shares)
        tw__redis_share_moved(old, task);
    tw__redis_table_replace(&queue->tasks, tw__redis_queue_hash(queue->queues, tw__redis_task_id(task)), old,
                            task);
}

bool tw__redis_queue_relocate(struct tw__redis_queue *queue, uint64_t *segment, void *(*move)(void *old))
{
    size_t before = tw__redis_sums_table_bytes(queue);
    bool there = tw__redis_table_relocate(&queue->tasks, segment, move);
    tw__redis_sums_tables(queue, before);
    return there;
}

/* ---- removed queues -------------------------------------------------------------------------------------- */

void tw__redis_reaper_add(struct tw__redis_queue *queue)
{
    struct tw__redis_queues *queues = queue->queues;
    TW_ASSERT(!queue->attached);
    pthread_mutex_lock(&queues->to_reap_lock);
    queue->reaped = queues->to_reap;
    queues->to_reap = queue;
    pthread_mutex_unlock(&queues->to_reap_lock);
}

bool tw__redis_reaper_busy(const struct tw__redis_queues *queues)
{
    return !tw__list_empty(&queues->detached);
}

static struct tw__redis_queue *first_to_reap(struct tw__redis_queues *queues)
{
    pthread_mutex_lock(&queues->to_reap_lock);
    struct tw__redis_queue *queue = queues->to_reap;
    pthread_mutex_unlock(&queues->to_reap_lock);
    return queue;
}

/* Takes a queue off the list. Another thread may have put a newer one before it meanwhile. */
static void take_off(struct tw__redis_queue *queue)
{
    struct tw__redis_queues *queues = queue->queues;
    pthread_mutex_lock(&queues->to_reap_lock);
    struct tw__redis_queue **link = &queues->to_reap;
    while (*link != queue)
        link = &(*link)->reaped;
    *link = queue->reaped;
    pthread_mutex_unlock(&queues->to_reap_lock);
}

/* Takes out and frees up to `limit` tasks. Returns how many. The counts of the queue are not kept. */
static uint64_t drop(struct tw__redis_queue *queue, uint64_t limit)
{
    struct tw__redis_queues *queues = queue->queues;
    uint64_t dropped = 0;
    TW_ASSERT(!queue->attached);
    struct tw__redis_task *task;
    while (dropped < limit && (task = tw__redis_table_pop(&queue->tasks)) != NULL) {
        unfile(queue, task);
        queues->memory.free(task);
        queues->reaping--;
        dropped++;
    }
    return dropped;
}

/* Frees up to `limit` tasks of one queue, and the queue too if it then has no tasks. */
static uint64_t reap_one(struct tw__redis_queue *queue, uint64_t limit)
{
    uint64_t freed = drop(queue, limit);
    if (freed < limit && tw__redis_table_count(&queue->tasks) == 0) {
        take_off(queue);
        tw__redis_queue_free(queue);
    }
    return freed;
}

uint64_t tw__redis_reaper_run(struct tw__redis_queues *queues, uint64_t limit)
{
    uint64_t freed = 0;
    struct tw__redis_queue *queue;
    while (freed < limit && (queue = first_to_reap(queues)) != NULL)
        freed += reap_one(queue, limit - freed) + 1;
    return freed;
}

void tw__redis_reaper_run_all(struct tw__redis_queues *queues)
{
    while (tw__redis_reaper_run(queues, UINT64_MAX) > 0)
        ;
}

/* ---- all queues ------------------------------------------------------------------------------------------ */

static void task_key(const void *entry, const char **bytes, size_t *size)
{
    struct tw__redis_bytes id = tw__redis_task_id(entry);
    *bytes = id.at;
    *size = id.size;
}

struct tw__redis_queues *tw__redis_queues_new(const struct tw__redis_memory *memory,
                                              void (*forget)(void *string), uint64_t now_ms,
                                              uint64_t monotonic_ms)
{
    struct tw__redis_queues *queues = memory->alloc(sizeof *queues);
    memset(queues, 0, sizeof *queues);
    queues->memory = *memory;
    queues->forget = forget;
    tw__redis_table_type_init(&queues->of_tasks, task_key, &queues->memory);
    tw__redis_table_type_init(&queues->of_routes, tw__redis_route_key, &queues->memory);
    tw__list_init(&queues->attached);
    tw__list_init(&queues->detached);
    tw__list_init(&queues->awake);
    tw__list_init(&queues->stale);
    if (tw__redis_place_init(queues, now_ms, monotonic_ms) != 0) {
        memory->free(queues);
        return NULL;
    }
    pthread_mutex_init(&queues->to_reap_lock, NULL);
    return queues;
}

void tw__redis_queues_free(struct tw__redis_queues *queues)
{
    tw__redis_reaper_run_all(queues);
    TW_ASSERT(tw__list_empty(&queues->attached) && tw__list_empty(&queues->detached));
    tw__redis_place_fini(queues);
    pthread_mutex_destroy(&queues->to_reap_lock);
    if (queues->route != NULL)
        queues->memory.free(queues->route);
    queues->memory.free(queues);
}
