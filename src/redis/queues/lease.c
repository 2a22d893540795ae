/* SPDX-License-Identifier: MIT
 *
 * A verb takes three steps. Only the second one decides:
 *
 *     the stored task --numbers--> struct tw__task --tw__task_change()--> outcome
 *     outcome --settle--> the stored task, its place, and the log
 *
 * An outcome leads to one of these:
 *
 *     no task is left                  tw__redis_lease_remove()
 *     a new task, or the next period   file_as_new(): no attempt state
 *     given back without a time        offer_again(): the place that it had
 *     a new task behind an attempt     let_stand_behind(): the place of the lease
 *     any other one                    file_with(): an attempt state, and a time
 *
 * A period that dies becomes a task of its own before (leave_dead_period). A lease is a timer, and so is the
 * wait for the next attempt: the task's own timer, which it does not need for its due time any more.
 */
#include "lease.h"

#include <base/assert.h>
#include <base/saturate.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <task/periods.h>
#include <task/state.h>

#include "change.h"
#include "place.h"
#include "queue.h"
#include "route.h"

/* ---- numbers --------------------------------------------------------------------------------------------- */

struct tw__task tw__redis_lease_numbers(const struct tw__redis_queues *queues,
                                        const struct tw__redis_task *task)
{
    uint64_t time = tw__redis_place_due(queues, task);
    struct tw__task numbers = {.stage = tw__redis_task_stage(task),
                               .due_ms = time,
                               .next_ms = time,
                               .every_ms = tw__redis_task_every(task),
                               .times = tw__redis_task_times(task)};
    tw__redis_route_options(tw__redis_route_of(queues, task), &numbers);
    if (!task->has_attempt)
        return numbers;
    struct tw__redis_attempt attempt = tw__redis_task_attempt(task);
    if (attempt.has_missed_periods)
        attempt = tw__redis_task_whole_attempt(task);
    numbers.due_ms = attempt.due;
    numbers.lapses = attempt.lapses;
    numbers.missed_periods = attempt.missed_periods;
    numbers.token = attempt.token;
    if (numbers.stage == TW__TASK_REPLACED)
        numbers.old_attempt = attempt.number;
    else /* the call of a target has begun, and how often it was refused is no matter here */
        numbers.attempt = attempt.number > 0 ? attempt.number : attempt.has_missed_periods;
    if (tw__task_is_leased(&numbers)) {
        numbers.next_ms = attempt.due; /* see tw__redis_lease_change() */
        numbers.end_ms = time;
        numbers.lease_ms = attempt.lease_ms;
    }
    return numbers;
}

/* How many attempts of the task an attempt state counts. Of a target's tries the task and its route know. */
static uint32_t attempts_of(const struct tw__task *numbers)
{
    uint32_t attempts = numbers->attempt;
    if (numbers->stage == TW__TASK_REPLACED)
        attempts = numbers->old_attempt;
    else if (numbers->has_target && numbers->stage == TW__TASK_FILED)
        attempts = 0;
    return attempts < TW__REDIS_BEGUN_MAX ? attempts : TW__REDIS_BEGUN_MAX;
}

/* The attempt state of a task that has these numbers from now on, with the strings of its present one. */
static struct tw__redis_attempt attempt_with(const struct tw__redis_task *task, const struct tw__task *numbers)
{
    struct tw__redis_attempt attempt = tw__redis_task_any_attempt(task);
    if (numbers->stage != TW__TASK_TAKEN) {
        attempt.has_next = false;
    } else if (attempt.stage == TW__TASK_FILED) { /* its call may have become that of a later period */
        attempt.next = attempt.due == numbers->due_ms ? tw__redis_task_due(task) : numbers->next_ms;
        attempt.has_next = attempt.next != numbers->due_ms;
        attempt.has_missed_periods = false; /* a worker's call is told by their number alone */
    }
    attempt.missed_periods = numbers->missed_periods;
    attempt.has_missed_periods = (attempt.has_missed_periods || numbers->missed_periods > 0) &&
                                 numbers->attempt > 0 && numbers->stage != TW__TASK_BURIED;
    attempt.stage = numbers->stage;
    attempt.renewed = false;
    attempt.due = numbers->due_ms;
    attempt.token = numbers->token;
    attempt.lease_ms = numbers->lease_ms;
    attempt.number = attempts_of(numbers);
    attempt.lapses = numbers->lapses;
    return attempt;
}

/* The same after an outcome, with the strings that are new. */
static struct tw__redis_attempt attempt_after(const struct tw__redis_task *task,
                                              const struct tw__task_outcome *outcome,
                                              struct tw__redis_bytes said)
{
    struct tw__redis_attempt attempt = attempt_with(task, &outcome->task);
    bool begins = attempt.stage == TW__TASK_TAKEN && tw__redis_task_stage(task) == TW__TASK_FILED;
    if (begins || outcome->clears_worker)
        attempt.worker = begins ? said : (struct tw__redis_bytes){"", 0};
    if (outcome->clears_error)
        attempt.error = (struct tw__redis_bytes){"", 0};
    else if (outcome->fails)
        attempt.error = said;
    return attempt;
}

/* Whether a task that waits until `at_ms` has to remember more than that. */
static bool is_needed(const struct tw__redis_attempt *attempt, uint64_t at_ms)
{
    return attempt->stage != TW__TASK_FILED || attempt->number > 0 || attempt->has_missed_periods ||
           attempt->due != at_ms;
}

/* ---- doing as an outcome says ---------------------------------------------------------------------------- */

/* Gives the task this attempt state, or none if it is NULL, and files it for another time. */
static struct tw__redis_task *file_with(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                        const struct tw__redis_attempt *attempt, uint64_t at_ms,
                                        uint64_t now_ms)
{
    enum tw__task_stage before = tw__redis_task_stage(task),
                        stage = attempt == NULL ? TW__TASK_FILED : attempt->stage;
    if (before == TW__TASK_FILED && stage == TW__TASK_FILED) {
        if (task->has_attempt || attempt != NULL)
            task = tw__redis_queue_set_attempt(queue, task, attempt);
        tw__redis_place_refile(queue->queues, task, at_ms, now_ms);
        return task;
    }
    tw__redis_place_unfile(queue->queues, task);
    task = tw__redis_queue_set_attempt(queue, task, attempt);
    tw__redis_place_file(queue->queues, task, at_ms, now_ms);
    return task;
}

void tw__redis_lease_remove(struct tw__redis_queue *queue, struct tw__redis_task *task,
                            struct tw__redis_buffer *log)
{
    tw__redis_change_put_gone(log, queue->queues, task);
    tw__redis_queue_remove(queue, task, tw__redis_queue_hash(queue->queues, tw__redis_task_id(task)));
}

/* The task waits as if it had just been put, in this period or the next one. */
static struct tw__redis_task *file_as_new(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                          const struct tw__task *numbers, uint64_t now_ms,
                                          struct tw__redis_buffer *log)
{
    if (numbers->times != tw__redis_task_times(task)) {
        tw__redis_task_set_times(task, numbers->times);
        tw__redis_change_put_next(log, queue->queues, task, numbers->due_ms);
    } else {
        tw__redis_change_put_anew(log, queue->queues, task, numbers->due_ms);
    }
    task = file_with(queue, task, NULL, numbers->due_ms, now_ms);
    task->tries = 0; /* only now: the tries of a held task stand in its route too */
    return task;
}

/* Puts a task that is given back to the place that it had among the ready ones. */
static struct tw__redis_task *offer_again(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                          const struct tw__redis_attempt *attempt, uint64_t at_ms,
                                          uint64_t now_ms, struct tw__redis_buffer *log)
{
    bool needed = is_needed(attempt, at_ms);
    tw__redis_place_unfile(queue->queues, task);
    task = tw__redis_queue_set_attempt(queue, task, needed ? attempt : NULL);
    if (!needed)
        task->tries = 0;
    tw__redis_task_set_due(task, at_ms);
    tw__redis_place_offer_again(queue->queues, task, now_ms);
    tw__redis_change_put_back(log, queue->queues, task);
    return task;
}

static struct tw__redis_task *let_stand_behind(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                               const struct tw__task_outcome *outcome)
{
    struct tw__redis_attempt attempt = attempt_after(task, outcome, (struct tw__redis_bytes){"", 0});
    attempt.renewed = tw__redis_task_attempt(task).renewed;
    task = tw__redis_queue_set_attempt(queue, task, &attempt);
    if (!tw__redis_task_filed(task)) {
        tw__redis_place_unfile(queue->queues, task); /* so its delivery is over */
        tw__redis_place_file_late(queue->queues,
                                  task); /* its lease has run out, and that has to be seen again */
    }
    return task;
}

/* Lets a lease end so long from now. `renewed`: it had run out. */
static void extend_lease(struct tw__redis_queue *queue, struct tw__redis_task *task, uint32_t ms, bool renewed,
                         uint64_t now_ms)
{
    struct tw__redis_attempt attempt = tw__redis_task_attempt(task);
    TW_ASSERT(tw__task_stage_is_leased(attempt.stage));
    attempt.renewed = renewed;
    attempt.lease_ms = ms;
    tw__redis_task_set_attempt(task, &attempt);
    tw__redis_place_refile(queue->queues, task, tw__add_saturating(now_ms, ms), now_ms);
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

/* Makes a task of its own from a period that has died. Returns the series, whose address may have changed. */
static struct tw__redis_task *leave_dead_period(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                                const struct tw__task *dead, struct tw__redis_bytes error,
                                                uint64_t now_ms, struct tw__redis_buffer *log)
{
    const struct tw__redis_memory *memory = &queue->queues->memory;
    task = tw__redis_queue_share(queue, task); /* now, as the attempt state and the id lie in its block */
    struct tw__redis_attempt attempt = attempt_with(task, dead);
    struct tw__redis_bytes id = tw__redis_task_id(task);
    attempt.error = error;
    char *name = memory->alloc(id.size + TW__TASK_SUFFIX_MAX);
    memcpy(name, id.at, id.size);
    struct tw__redis_bytes own = {name, name_period(queue, name, id.size, dead->due_ms)};
    const struct tw__redis_task *copy = tw__redis_change_dead_copy(queue, task, own, &attempt, now_ms);
    tw__redis_change_put_dead_copy(log, queue->queues, id, copy);
    memory->free(name);
    return task;
}

void tw__redis_lease_count(struct tw__redis_queue *queue, const struct tw__task_tally *tally)
{
    uint64_t counts[TW__REDIS_TAKEN], any = 0, *of_queue = queue->counts, *of_all = queue->queues->counts;
#define SAME(count, member)                                                                                    \
    _Static_assert(offsetof(struct tw__task_tally, member) == (count) * sizeof *counts, #member);              \
    any |= tally->member /* a loop over the counts is slower */
    SAME(TW__REDIS_DELIVERED, delivered);
    SAME(TW__REDIS_DONE, done);
    SAME(TW__REDIS_FAILED, failed);
    SAME(TW__REDIS_LAPSED, lapsed);
    SAME(TW__REDIS_BACK, back);
    SAME(TW__REDIS_DIED, died);
    SAME(TW__REDIS_DROPPED, dropped);
    SAME(TW__REDIS_SKIPPED, skipped);
    SAME(TW__REDIS_COALESCED, coalesced);
    SAME(TW__REDIS_REPLACED, replaced);
#undef SAME
    _Static_assert(sizeof counts == sizeof *tally, "each count has its number");
    if (any == 0)
        return;
    memcpy(counts, tally, sizeof counts);
    for (size_t i = 0; i < TW__REDIS_TAKEN; i++) /* no branch */
        of_queue[i] += counts[i];
    for (size_t i = 0; i < TW__REDIS_TAKEN; i++)
        of_all[i] += counts[i];
}

struct tw__redis_task *tw__redis_lease_settle(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                              const struct tw__task_outcome *outcome,
                                              struct tw__redis_bytes said, uint64_t now_ms,
                                              struct tw__redis_buffer *log)
{
    const struct tw__task *numbers = &outcome->task;
    tw__redis_lease_count(queue, &outcome->tally);
    if (outcome->dead.stage == TW__TASK_BURIED)
        task = leave_dead_period(queue, task, &outcome->dead, said, now_ms, log);
    if (numbers->stage == TW__TASK_NONE) {
        tw__redis_lease_remove(queue, task, log);
        return NULL;
    }
    if (outcome->filed && outcome->clears_error && numbers->stage == TW__TASK_FILED)
        return file_as_new(queue, task, numbers, now_ms, log);
    if (numbers->stage == TW__TASK_REPLACED && outcome->clears_error) {
        task = let_stand_behind(queue, task, outcome);
    } else if (tw__task_is_leased(numbers) && tw__redis_task_is_leased(task)) {
        extend_lease(queue, task, numbers->lease_ms, false, now_ms);
    } else {
        struct tw__redis_attempt attempt = attempt_after(task, outcome, said);
        uint64_t at_ms = numbers->stage == TW__TASK_BURIED ? now_ms
                         : tw__task_is_leased(numbers)     ? tw__add_saturating(now_ms, numbers->lease_ms)
                                                           : numbers->next_ms;
        if (numbers->stage == TW__TASK_FILED && !outcome->filed)
            return offer_again(queue, task, &attempt, at_ms, now_ms, log);
        if (!is_needed(&attempt, at_ms))
            return file_as_new(queue, task, numbers, now_ms, log);
        task = file_with(queue, task, &attempt, at_ms, now_ms);
    }
    tw__redis_change_put(log, queue->queues, task);
    return task;
}

/* ---- verbs ----------------------------------------------------------------------------------------------- */

struct tw__redis_task *tw__redis_lease_change(struct tw__redis_queue *queue, struct tw__redis_task *task,
                                              const struct tw__redis_verb *verb, uint64_t now_ms,
                                              struct tw__redis_buffer *log, struct tw__task_outcome *outcome)
{
    struct tw__task numbers = tw__redis_lease_numbers(queue->queues, task);
    uint64_t as_of_ms = now_ms;
    bool takes = verb->call.verb == TW__TASK_TAKE;
    TW_ASSERT(!takes || (task->place == TW__REDIS_IN_READY && verb->call.token != 0));
    if (takes && numbers.next_ms > now_ms)
        as_of_ms = numbers.next_ms; /* it stays ready if the clock was set back */
    if (verb->call.verb == TW__TASK_BACK && numbers.stage == TW__TASK_TAKEN) {
        struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
        numbers.next_ms = tw__redis_attempt_before(&attempt); /* no other verb needs it, and it lies far away */
    }
    if (verb->retry != NULL)
        numbers.retry = *verb->retry;
    tw__task_change(&numbers, &verb->call, as_of_ms, outcome);
    if (outcome->reply == TW__TASK_NO || outcome->reply == TW__TASK_IS_DEAD)
        return task;
    return tw__redis_lease_settle(queue, task, outcome, verb->said, now_ms, log);
}

bool tw__redis_lease_has_token(const struct tw__redis_task *task, uint64_t token)
{
    return task->has_attempt && token != 0 && tw__redis_task_attempt(task).token == token;
}

void tw__redis_lease_renew(struct tw__redis_queue *queue, struct tw__redis_task *task, uint64_t now_ms,
                           struct tw__redis_buffer *log)
{
    extend_lease(queue, task, tw__redis_task_attempt(task).lease_ms, true, now_ms);
    tw__redis_change_put(log, queue->queues, task);
}

void tw__redis_lease_put(struct tw__redis_queue *queue, struct tw__redis_task *task,
                         struct tw__redis_route *route, uint64_t hash, struct tw__redis_task *old,
                         uint64_t now_ms)
{
    if (old == NULL || !tw__redis_task_is_leased(old)) {
        tw__redis_queue_put(queue, task, route, hash, old, now_ms);
        return;
    }
    /* First the old task moves, and stands behind its own attempt. */
    struct tw__task numbers = tw__redis_lease_numbers(queue->queues, old);
    struct tw__task_call move = {.verb = TW__TASK_MOVE, .at_ms = tw__redis_task_due(task)};
    struct tw__task_outcome outcome;
    tw__task_change(&numbers, &move, now_ms, &outcome);
    old = let_stand_behind(queue, old, &outcome);
    old->tries = task->tries;
    tw__redis_queue_renew(queue, old, task, route);
}

/* ---- copies ---------------------------------------------------------------------------------------------- */

/* A chunk does not tell in which order tasks became ready, or were filed when their time had passed. So a copy
 * asks the tasks from which its own were made. Example: a worker has taken a and b, which became ready in this
 * order, and gives back a, or b, or none. In a copy, a comes before b each time. */

/* A task whose attempts are forgotten, or that waits in the line of past tasks behind which they would go. */
struct begun {
    struct tw__redis_task *task;
    uint64_t at_ms;
    /* Of the task from which it was copied. The first two ranks are ready or leased (place.c). A task that
     * stands behind an attempt is filed by the copy, so last of its time. */
    enum { ELSEWHERE, READY, LATER, BEHIND } rank;
    uint64_t place_ms; /* its time in the order; of a ready task, at_ms */
    uint32_t order;
};

struct all_begun {
    struct begun *at;
    size_t count;
    const struct tw__redis_queue *from;
};

/* Finds the place of a task, from the task from which it was copied. */
static void find_place(struct begun *begun, const struct tw__redis_queues *queues,
                       const struct tw__redis_task *origin)
{
    begun->order = origin->order;
    begun->place_ms = begun->at_ms;
    if (origin->place != TW__REDIS_IN_READY && tw__redis_task_stage(origin) != TW__TASK_TAKEN) {
        begun->rank = tw__redis_task_stage(origin) == TW__TASK_REPLACED ? BEHIND : LATER;
        if (tw__redis_task_stage(origin) == TW__TASK_FILED && tw__redis_task_in_line(origin) &&
            origin->parked.since_ms > begun->at_ms)
            begun->place_ms = origin->parked.since_ms;
    } else {
        begun->rank = tw__redis_place_is_from_elsewhere(queues, origin) ? ELSEWHERE : READY;
    }
}

static void gather_begun(void *entry, void *arg)
{
    struct all_begun *all = arg;
    struct tw__redis_task *task = entry;
    enum tw__task_stage stage = tw__redis_task_stage(task);
    if (stage == TW__TASK_BURIED || task->place == TW__REDIS_IN_HELD ||
        (!task->has_attempt && task->place != TW__REDIS_IN_LINE))
        return;
    struct begun begun = {.task = task, .at_ms = tw__redis_task_due(task)};
    if (tw__task_stage_is_leased(stage)) {
        struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
        begun.at_ms = tw__redis_attempt_before(&attempt);
    }
    find_place(&begun, all->from->queues, tw__redis_queue_named(all->from, tw__redis_task_id(task)));
    all->at[all->count++] = begun;
}

static int compare_begun(const void *one, const void *other)
{
    const struct begun *a = one, *b = other;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->rank != READY && a->place_ms != b->place_ms)
        return a->place_ms < b->place_ms ? -1 : 1;
    return (int32_t)(a->order - b->order) < 0 ? -1 : 1;
}

/* Ends the lease of a task, if it has one, and makes its token void. A task that waits in a wheel stays
 * there, at its place among the tasks of its time. */
static void forget(struct tw__redis_queue *queue, const struct begun *begun, uint64_t now_ms)
{
    struct tw__redis_attempt attempt = tw__redis_task_any_attempt(begun->task);
    tw__redis_attempt_unbegin(&attempt);
    bool again = attempt.number > 0 || attempt.has_missed_periods ||
                 attempt.due != begun->at_ms; /* it is too late no more */
    if (begun->task->place == TW__REDIS_IN_WHEEL || begun->task->place == TW__REDIS_IN_BEHIND)
        tw__redis_queue_set_attempt(queue, begun->task, again ? &attempt : NULL);
    else
        file_with(queue, begun->task, again ? &attempt : NULL, begun->at_ms, now_ms);
}

void tw__redis_lease_forget_all(struct tw__redis_queue *queue, const struct tw__redis_queue *from,
                                uint64_t now_ms)
{
    const struct tw__redis_memory *memory = &queue->queues->memory;
    struct all_begun all = {.at = memory->alloc((tw__redis_table_count(&queue->tasks) + 1) * sizeof *all.at),
                            .from = from};
    tw__redis_table_each(&queue->tasks, gather_begun, &all);
    qsort(all.at, all.count, sizeof *all.at, compare_begun);
    for (size_t i = 0; i < all.count; i++)
        forget(queue, &all.at[i], now_ms);
    memory->free(all.at);
}
