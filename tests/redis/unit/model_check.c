/* SPDX-License-Identifier: MIT
 *
 * The model: comparing it with the queues.
 */
#include "model.h"

#include "tests/support/cmocka.h"
#include "tests/support/run.h"

#include <base/list.h>

static void check_place(const struct ref *ref)
{
    static const enum tw__redis_place places[] = {
        [NOWHERE] = TW__REDIS_NOWHERE, [WHEEL] = TW__REDIS_IN_WHEEL,  [BEHIND] = TW__REDIS_IN_BEHIND,
        [LEASE] = TW__REDIS_IN_LEASES, [LATE] = TW__REDIS_IN_LINE,    [PAST] = TW__REDIS_IN_LINE,
        [HELD] = TW__REDIS_IN_HELD,    [STOPPED] = TW__REDIS_IN_LINE, [READY] = TW__REDIS_IN_READY,
        [DEAD] = TW__REDIS_IN_DEAD};
    assert_int_equal(ref->task->place, places[ref->place]);
    assert_int_equal(tw__redis_task_waits(ref->task), waits(ref));
    if (ref->place == READY || ref->place == PAST)
        assert_true(ref->task->parked.since_ms == ref->filed_ms);
}

static void check_attempt(const struct ref *ref)
{
    assert_int_equal(ref->task->has_attempt, ref->has_attempt);
    assert_true(tw__redis_task_first_due(ref->task) == (ref->has_attempt ? ref->attempt.due : ref->due));
    assert_int_equal(tw__redis_task_stage(ref->task), ref->has_attempt ? ref->attempt.stage : TW__TASK_FILED);
    if (!ref->has_attempt)
        return;
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(ref->task);
    assert_attempts_equal(&attempt, &ref->attempt);
}

static void check_ref(const struct room *room, const struct ref *ref)
{
    unsigned i = (unsigned)(ref - room->ref);
    struct tw__redis_bytes id = id_of(i);
    assert_ptr_equal(tw__redis_queue_find(room->queue, tw__redis_queue_foresee(all, id), id), ref->task);
    if (ref->place == ABSENT)
        return;
    assert_bytes_equal(tw__redis_task_id(ref->task), id);
    assert_true(tw__redis_place_due(all, ref->task) == due_of(ref));
    assert_true(tw__redis_task_every(ref->task) == ref->every);
    assert_true(tw__redis_task_times(ref->task) == ref->times);
    assert_int_equal(ref->task->order, (uint32_t)ref->order);
    assert_int_equal(tw__redis_place_tries(all, ref->task), ref->tries & TW__REDIS_TRIES_MAX);
    assert_bytes_equal(tw__redis_task_packed(ref->task), text("\1\1p"));
    check_place(ref);
    check_attempt(ref);
    const struct tw__redis_route *route = tw__redis_route_of(all, ref->task);
    struct tw__redis_plan plan = tw__redis_route_plan(route);
    const struct tw__redis_plan *wanted = &plan_of[ref->plan];
    assert_ptr_equal(route->queue, room->queue);
    assert_ptr_equal(tw__redis_route_at(all, route->index), route);
    assert_plans_equal(&plan, wanted);
}

/* P3, and the state of the line. */
static void check_route_line(const struct room *room, const struct ref *ref)
{
    const struct tw__redis_route *route = tw__redis_route_of(all, ref->task);
    const struct line *line = &room->line[ref->plan];
    assert_int_equal(tw_timer_pending(&route->retry), line->retry_ms != TW_NEVER);
    assert_int_equal(route->ready.next != NULL, line->ready > 0);
    if (line->retry_ms != TW_NEVER)
        assert_true(tw_timer_deadline(&route->retry) == line->retry_ms);
    bool held = held_of(room, ref->plan) > 0;
    assert_int_equal(route->line.next != &route->line, held);
    assert_int_equal(held, (line->ready > 0) + (line->retry_ms != TW_NEVER));
    assert_int_equal(tw__redis_place_is_blocked(all, ref->task), held);
}

/* Counts the tasks in a line, which have to be in order, and all in this place. Passes over the tasks of
 * removed queues. */
static uint64_t count_in_order(const struct tw__link *line, enum place place)
{
    int64_t before = INT64_MIN;
    uint64_t count = 0;
    for (struct tw__link *link = line->next; link != line; link = link->next) {
        struct room *room;
        const struct ref *ref = ref_of(tw__redis_task_of_link(link), &room);
        assert_ptr_equal(link->next->prev, link);
        if (ref == NULL)
            continue;
        assert_int_equal(ref->place, place);
        assert_true(ref->position > before);
        before = ref->position;
        count++;
    }
    return count;
}

/* A line of all queues. */
void check_line(const struct tw__link *line, enum place place)
{
    uint64_t wanted = 0;
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        wanted += ref->place == place;
    assert_int_equal(count_in_order(line, place), wanted);
}

/* A line of one queue. */
static uint64_t check_own_line(const struct room *room, const struct tw__link *line, enum place place)
{
    uint64_t wanted = 0;
    for (const struct ref *ref = room->ref; ref < room->ref + room->size; ref++)
        wanted += ref->place == place;
    assert_int_equal(count_in_order(line, place), wanted);
    return wanted;
}

struct sums {
    uint64_t queues, tasks, in_line, held, bytes, too_large, reaping, filed, taken_up;
    uint64_t paused, stopped, ready, leased, dead, empty;
};

/* The lines and the counts of tasks for workers, of stopped and of dead tasks. */
static void check_attempts(const struct room *room, struct sums *sums)
{
    const struct tw__redis_queue *queue = room->queue;
    const struct ref *ready = first_in(room, READY), *dead = first_in(room, DEAD);
    uint64_t leased = 0, dead_count = check_own_line(room, &queue->dead, DEAD);
    for (const struct ref *ref = room->ref; ref < room->ref + room->size; ref++)
        leased += ref->place != ABSENT && is_leased(ref);
    check_own_line(room, &queue->stopped, STOPPED);
    assert_int_equal(queue->ready_count, check_own_line(room, &queue->ready, READY));
    assert_int_equal(queue->leased_count, leased);
    assert_int_equal(queue->dead_count, dead_count);
    assert_int_equal(queue->paused, room->paused);
    assert_int_equal(tw_timer_pending(&queue->death) || queue->stale.next != NULL, dead_count > 0);
    assert_ptr_equal(tw__redis_place_first_ready(queue), ready == NULL ? NULL : ready->task);
    assert_ptr_equal(tw__redis_place_first_dead(queue), dead == NULL ? NULL : dead->task);
    if (!room->attached)
        return;
    sums->ready += queue->ready_count;
    sums->leased += leased;
    sums->dead += dead_count;
    sums->paused += room->paused;
    sums->stopped += room->paused ? queue->in_line : 0;
    sums->empty += !room->paused && tw__redis_table_count(&queue->tasks) == 0;
}

static void check_room(const struct room *room, struct sums *sums)
{
    uint64_t count = 0, in_line = 0, held = 0, routes = 0;
    uint64_t tasks[PLANS] = {0};
    for (const struct ref *ref = room->ref; ref < room->ref + room->size; ref++) {
        count += ref->place != ABSENT;
        in_line += !is_leased(ref) && (ref->place == LATE || ref->place == PAST || ref->place == STOPPED);
        held += ref->place == HELD;
        sums->filed += is_filed(ref);
        if (ref->place != ABSENT)
            tasks[ref->plan]++;
    }
    for (unsigned i = 0; i < PLANS; i++)
        routes += tasks[i] > 0;
    assert_int_equal(tw__redis_table_count(&room->queue->tasks), count);
    assert_int_equal(room->queue->in_line, in_line);
    assert_int_equal(room->queue->held, held);
    assert_int_equal(tw__redis_route_count(room->queue), routes);
    assert_int_equal(room->queue->attached, room->attached);
    sums->taken_up += room->queue->bytes;
    check_attempts(room, sums);
    if (!room->attached) {
        sums->reaping += count;
        return;
    }
    sums->queues++;
    sums->tasks += count;
    sums->in_line += in_line;
    sums->held += held;
    sums->bytes += room->queue->bytes;
    sums->too_large += tw__redis_sums_dump_most(room->queue) > all->dump_limit;
}

void check_sums(void)
{
    struct sums sums = {0};
    bool detached = model.removed > 0;
    for (const struct room *room = model.room; room < model.room + ROOMS; room++) {
        check_room(room, &sums);
        detached |= !room->attached;
    }
    assert_int_equal(all->count, sums.queues);
    assert_int_equal(all->tasks, sums.tasks);
    assert_int_equal(all->in_line, sums.in_line);
    assert_int_equal(all->held, sums.held);
    assert_int_equal(all->paused, sums.paused);
    assert_int_equal(all->stopped, sums.stopped);
    assert_int_equal(all->ready_count, sums.ready);
    assert_int_equal(all->leased_count, sums.leased);
    assert_int_equal(all->dead_count, sums.dead);
    assert_int_equal(all->empty, sums.empty);
    assert_int_equal(all->bytes, sums.bytes);
    assert_int_equal(all->too_large, sums.too_large);
    assert_int_equal(all->reaping, sums.reaping + model.reapable);
    assert_int_equal(tw__redis_reaper_busy(all), detached);
    if (model.removed > 0)
        return;
    uint64_t behind = all->behind == NULL ? 0 : tw_wheel_count(all->behind);
    assert_int_equal(tw_wheel_count(all->wheel) + behind + tw_wheel_count(all->leases), sums.filed);
    /* All memory belongs to a queue, except for names of queues, the state that all share, the list of
     * routes, and the strings of routes. */
    size_t more =
        (size_t)targets_out + (all->route == NULL ? 0 : counted_usable(all->route)) + counted_usable(all);
    assert_int_equal(bytes_out, sums.taken_up + more);
}

void check_wheels(void)
{
    assert_null(tw_wheel_check(all->wheel));
    assert_null(tw_wheel_check(all->leases));
    assert_null(tw_wheel_check(all->retries));
    assert_null(tw_wheel_check(all->deaths));
    if (all->behind != NULL)
        assert_null(tw_wheel_check(all->behind));
}

void check_invariants(void)
{
    const char *fault = tw__redis_check_all(all);
    if (fault != NULL)
        fail_msg("%s", fault);
}

void check_all(void)
{
    check_sums();
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++) {
        check_ref(ref->room, ref);
        if (ref->place != ABSENT && (ref->place == HELD || below(16) == 0))
            check_route_line(ref->room, ref);
    }
    check_line(&all->late, LATE);
    check_line(&all->past, PAST);
}
