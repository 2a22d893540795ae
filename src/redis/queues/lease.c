/* SPDX-License-Identifier: MIT
 *
 * The ways of a task through its life. A lease is a timer in the wheel, and so is the wait for the next
 * attempt: the task's own timer, which it does not need for its due time any more.
 */
#include "lease.h"

#include <base/assert.h>
#include <base/saturate.h>
#include <stdlib.h>
#include <string.h>
#include <task/ends.h>

#include "change.h"
#include "place.h"
#include "queue.h"
#include "route.h"

/* Takes the task from its place, gives it this attempt state, and files it for another time. */
static struct tw__redis_task *file_with(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                        const struct tw__redis_attempt *attempt, uint64_t at_ms,
                                        uint64_t now_ms)
{
    tw__redis_place_unfile(queue->queues, task);
    task = tw__redis_queue_set_attempt(queue, task, attempt);
    tw__redis_place_file(queue->queues, task, at_ms, now_ms);
    return task;
}

/* ---- new tasks ------------------------------------------------------------------------------------------- */

/* Lets a task be a newer one from now on, which is due at `due_ms` and stands behind the attempt under way, at
 * its place. Returns the task. */
static struct tw__redis_task *let_stand_behind(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                               uint64_t due_ms)
{
    struct tw__redis_queues *queues = queue->queues;
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    TW_ASSERT(tw__task_stage_is_leased(attempt.stage));
    attempt.stage = TW__TASK_REPLACED;
    attempt.has_next = attempt.has_missed_periods = false;
    attempt.due = due_ms;
    attempt.lapses = 0;
    attempt.error.size = 0;
    task = tw__redis_queue_set_attempt(queue, task, &attempt);
    if (!tw__redis_task_filed(task)) {
        tw__redis_place_unfile(queues, task);    /* so its delivery is over */
        tw__redis_place_file_late(queues, task); /* its lease has run out, and that has to be seen again */
    }
    return task;
}

void tw__redis_lease_put(struct tw__redis_queue *queue, struct tw__redis_task *task,
                         struct tw__redis_route *route, uint64_t hash, struct tw__redis_task *old,
                         uint64_t now_ms)
{
    if (old == NULL || !tw__redis_task_is_leased(old)) {
        tw__redis_queue_put(queue, task, route, hash, old, now_ms);
        return;
    }
    old = let_stand_behind(queue, old, tw__redis_task_due(task));
    old->tries = task->tries;
    tw__redis_queue_renew(queue, old, task, route);
}

void tw__redis_lease_move(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t due_ms,
                          uint64_t now_ms, struct tw__redis_buffer *log)
{
    if (tw__redis_task_is_leased(task)) {
        tw__redis_change_put(log, queue->queues, let_stand_behind(queue, task, due_ms));
        return;
    }
    tw__redis_change_put_anew(log, queue->queues, task, due_ms);
    if (task->has_attempt) {
        tw__redis_queue_begin_anew(queue, task, due_ms, now_ms);
        return;
    }
    tw__redis_place_refile(queue->queues, task, due_ms, now_ms);
    task->tries = 0;
}

uint64_t tw__redis_lease_end_replaced(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                      uint64_t end_ms, uint64_t now_ms, struct tw__redis_buffer *log)
{
    struct tw__redis_attempt attempt = {
        .stage = TW__TASK_FILED, .due = tw__redis_task_first_due(task), .worker = {"", 0}, .error = {"", 0}};
    TW_ASSERT(tw__redis_task_stage(task) == TW__TASK_REPLACED);
    if (attempt.due >= end_ms) {
        tw__redis_change_put_anew(log, queue->queues, task, attempt.due);
        tw__redis_queue_begin_anew(queue, task, attempt.due, now_ms);
        return attempt.due;
    }
    task = file_with(queue, task, &attempt, end_ms, now_ms);
    tw__redis_change_put(log, queue->queues, task);
    return end_ms;
}

/* ---- leases ---------------------------------------------------------------------------------------------- */

/* Lets the call begin in the turn of its task: its due time may be that of a later period. */
static void begin_call(struct tw__redis_attempt *attempt, const struct tw__task_turn *turn)
{
    TW_ASSERT(turn->calls);
    if (attempt->due != turn->due)
        attempt->next = turn->due;
    attempt->due = turn->due;
    attempt->missed_periods = turn->missed_periods;
    attempt->has_missed_periods = turn->missed_periods > 0;
}

struct tw__redis_task *tw__redis_lease_begin(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                             const struct tw__task_turn *turn,
                                             const struct tw__redis_lease *lease, uint64_t now_ms,
                                             struct tw__redis_buffer *log)
{
    struct tw__redis_attempt attempt = tw__redis_task_any_attempt(task);
    TW_ASSERT(task->place == TW__REDIS_IN_READY && lease->token != 0);
    attempt.next = tw__redis_task_due(task);
    begin_call(&attempt, turn);
    attempt.has_next = attempt.next != attempt.due;
    attempt.stage = TW__TASK_TAKEN;
    attempt.renewed = false;
    attempt.token = lease->token;
    attempt.lease_ms = lease->ms;
    attempt.number += attempt.number < TW__REDIS_BEGUN_MAX;
    attempt.worker = lease->worker;
    task = file_with(queue, task, &attempt, tw__add_saturating(now_ms, lease->ms), now_ms);
    tw__redis_change_put(log, queue->queues, task);
    return task;
}

void tw__redis_lease_pass_over(struct tw__redis_queue *queue, struct tw__redis_task *task,
                               const struct tw__task_turn *turn, uint64_t now_ms, struct tw__redis_buffer *log)
{
    TW_ASSERT(!turn->calls);
    if (turn->ends) {
        tw__redis_lease_remove(queue, task, log);
        return;
    }
    tw__redis_change_put_anew(log, queue->queues, task, turn->due);
    tw__redis_queue_begin_anew(queue, task, turn->due, now_ms);
}

struct tw__redis_task *tw__redis_lease_make_due(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                                uint64_t now_ms, struct tw__redis_buffer *log)
{
    struct tw__redis_attempt attempt = tw__redis_task_any_attempt(task);
    TW_ASSERT(attempt.stage == TW__TASK_FILED);
    task = file_with(queue, task, &attempt, now_ms, now_ms);
    tw__redis_change_put(log, queue->queues, task);
    return task;
}

bool tw__redis_lease_has_token(const struct tw__redis_task *task, uint64_t token)
{
    return task->has_attempt && token != 0 && tw__redis_task_attempt(task).token == token;
}

void tw__redis_lease_extend(struct tw__redis_queue *queue, struct tw__redis_task *task, uint32_t ms,
                            bool renewed, uint64_t now_ms, struct tw__redis_buffer *log)
{
    struct tw__redis_attempt attempt = tw__redis_task_attempt(task);
    TW_ASSERT(tw__task_stage_is_leased(attempt.stage));
    attempt.renewed = renewed;
    attempt.lease_ms = ms;
    tw__redis_task_set_attempt(task, &attempt);
    tw__redis_place_refile(queue->queues, task, tw__add_saturating(now_ms, ms), now_ms);
    tw__redis_change_put(log, queue->queues, task);
}

/* ---- the end of an attempt ------------------------------------------------------------------------------- */

void tw__redis_lease_fail(struct tw__redis_queue *queue, struct tw__redis_task *task, bool lapsed,
                          struct tw__redis_bytes error, uint64_t at_ms, uint64_t now_ms,
                          struct tw__redis_buffer *log)
{
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    TW_ASSERT(attempt.stage == TW__TASK_TAKEN);
    attempt.stage = TW__TASK_FILED;
    attempt.has_next = false;
    attempt.token = lapsed ? attempt.token : 0;
    attempt.error = error;
    task = file_with(queue, task, &attempt, at_ms, now_ms);
    tw__redis_change_put(log, queue->queues, task);
}

void tw__redis_lease_count_lapse(struct tw__redis_task *task)
{
    struct tw__redis_attempt attempt = tw__redis_task_attempt(task);
    TW_ASSERT(attempt.stage == TW__TASK_TAKEN && attempt.lapses < TW__REDIS_LAPSES_LAST);
    attempt.lapses++;
    tw__redis_task_set_attempt(task, &attempt);
}

struct tw__redis_task *tw__redis_lease_give_back(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                                 uint64_t now_ms, struct tw__redis_buffer *log)
{
    struct tw__redis_queues *queues = queue->queues;
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    uint64_t before = tw__redis_attempt_before(&attempt), at_ms = before < now_ms ? before : now_ms;
    TW_ASSERT(attempt.stage == TW__TASK_TAKEN);
    task = tw__redis_queue_unbegin(queue, task, at_ms);
    tw__redis_task_set_due(task, at_ms);
    tw__redis_place_offer_again(queues, task, now_ms);
    tw__redis_change_put_back(log, queues, task);
    return task;
}

void tw__redis_lease_put_off(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t at_ms,
                             uint64_t now_ms, struct tw__redis_buffer *log)
{
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    TW_ASSERT(attempt.stage == TW__TASK_TAKEN);
    tw__redis_attempt_unbegin(&attempt);
    task = file_with(queue, task, &attempt, at_ms, now_ms);
    tw__redis_change_put(log, queue->queues, task);
}

void tw__redis_lease_remove(struct tw__redis_queue *queue, struct tw__redis_task *task,
                            struct tw__redis_buffer *log)
{
    tw__redis_change_put_gone(log, queue->queues, task);
    tw__redis_queue_remove(queue, task, tw__redis_queue_hash(queue->queues, tw__redis_task_id(task)));
}

void tw__redis_lease_done(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t now_ms,
                          struct tw__redis_buffer *log)
{
    uint64_t every = tw__redis_task_every(task), missed_periods = tw__redis_task_missed_periods(task);
    uint64_t left = tw__task_calls_left(every, tw__redis_task_times(task)),
             next = tw__task_next_call(tw__redis_task_first_due(task), missed_periods, every, left);
    if (next == TW__TASK_FOREVER) {
        tw__redis_lease_remove(queue, task, log);
        return;
    }
    tw__redis_task_set_times(task, left);
    task = file_with(queue, task, NULL, next, now_ms);
    task->tries = 0; /* only now: the tries of a held task stand in its route too */
    tw__redis_change_put_next(log, queue->queues, task);
}

/* ---- death ----------------------------------------------------------------------------------------------- */

static struct tw__redis_attempt death_of(const struct tw__redis_task *task, uint32_t attempts,
                                         struct tw__redis_bytes error)
{
    struct tw__redis_attempt attempt = tw__redis_task_any_attempt(task);
    TW_ASSERT(attempt.stage != TW__TASK_BURIED);
    attempt.stage = TW__TASK_BURIED;
    attempt.has_next = attempt.has_missed_periods = false;
    attempt.token = 0;
    attempt.number = attempts;
    attempt.error = error;
    return attempt;
}

void tw__redis_lease_kill_series(struct tw__redis_queue *queue, struct tw__redis_task *task, uint32_t attempts,
                                 struct tw__redis_bytes error, uint64_t now_ms, struct tw__redis_buffer *log)
{
    struct tw__redis_attempt attempt = death_of(task, attempts, error);
    task = file_with(queue, task, &attempt, now_ms, now_ms);
    tw__redis_change_put(log, queue->queues, task);
}

/* Appends to the id of a task, for which `name` has room, so that it is the id of a dead period of this task,
 * and not in use. Returns its size. */
static size_t name_period(const struct tw__redis_queue *queue, char *name, size_t size, uint64_t due)
{
    struct tw__redis_bytes id = {name, size + tw__task_suffix(due, 0, name + size)};
    for (uint32_t n = 1; tw__redis_queue_named(queue, id) != NULL; n++)
        id.size = size + tw__task_suffix(due, n, name + size);
    return id.size;
}

void tw__redis_lease_kill(struct tw__redis_queue *queue, struct tw__redis_task *task, uint32_t attempts,
                          struct tw__redis_bytes error, uint64_t now_ms, struct tw__redis_buffer *log)
{
    const struct tw__redis_memory *memory = &queue->queues->memory;
    if (tw__redis_task_every(task) == 0) {
        tw__redis_lease_kill_series(queue, task, attempts, error, now_ms, log);
        return;
    }
    task = tw__redis_queue_share(queue, task); /* now, as the attempt state and the id lie in its block */
    struct tw__redis_attempt attempt = death_of(task, attempts, error);
    struct tw__redis_bytes id = tw__redis_task_id(task);
    char *name = memory->alloc(id.size + TW__TASK_SUFFIX_MAX);
    memcpy(name, id.at, id.size);
    struct tw__redis_bytes own = {name, name_period(queue, name, id.size, attempt.due)};
    const struct tw__redis_task *dead = tw__redis_change_dead_copy(queue, task, own, &attempt, now_ms);
    tw__redis_change_put_dead_copy(log, queue->queues, id, dead);
    memory->free(name);
    tw__redis_lease_done(queue, task, now_ms, log);
}

/* ---- copies ---------------------------------------------------------------------------------------------- */

/* A task whose attempts are forgotten, or that waits in the line of past tasks behind which they would go. */
struct begun {
    struct tw__redis_task *task;
    uint64_t at_ms;
    uint32_t order;
};

struct all_begun {
    struct begun *at;
    size_t count;
};

static void gather_begun(void *entry, void *arg)
{
    struct all_begun *all = arg;
    struct tw__redis_task *task = entry;
    enum tw__task_stage stage = tw__redis_task_stage(task);
    if (stage == TW__TASK_BURIED || task->place == TW__REDIS_IN_HELD ||
        (!task->has_attempt && task->place != TW__REDIS_IN_LINE))
        return;
    uint64_t at_ms = tw__redis_task_due(task);
    if (tw__task_stage_is_leased(stage)) {
        struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
        at_ms = tw__redis_attempt_before(&attempt);
    }
    all->at[all->count++] = (struct begun){task, at_ms, task->order};
}

static int compare_begun(const void *one, const void *other)
{
    const struct begun *a = one, *b = other;
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms ? -1 : 1;
    return (int32_t)(a->order - b->order) < 0 ? -1 : 1;
}

/* Ends the lease of a task, if it has one, and makes its token void. */
static void forget(struct tw__redis_queue *queue, const struct begun *begun, uint64_t now_ms)
{
    struct tw__redis_attempt attempt = tw__redis_task_any_attempt(begun->task);
    tw__redis_attempt_unbegin(&attempt);
    bool again = attempt.number > 0 || attempt.has_missed_periods ||
                 attempt.due != begun->at_ms; /* it is too late no more */
    file_with(queue, begun->task, again ? &attempt : NULL, begun->at_ms, now_ms);
}

void tw__redis_lease_forget_all(struct tw__redis_queue *queue, uint64_t now_ms)
{
    const struct tw__redis_memory *memory = &queue->queues->memory;
    struct all_begun all = {memory->alloc((tw__redis_table_count(&queue->tasks) + 1) * sizeof *all.at), 0};
    tw__redis_table_each(&queue->tasks, gather_begun, &all);
    qsort(all.at, all.count, sizeof *all.at, compare_begun);
    for (size_t i = 0; i < all.count; i++)
        forget(queue, &all.at[i], now_ms);
    memory->free(all.at);
}
