/* SPDX-License-Identifier: MIT
 *
 * The model: comparing it with the schedules.
 */
#include "model.h"

#include "tests/support/cmocka.h"
#include "tests/support/run.h"

#include <base/list.h>
#include <src/redis/schedules/check.h>
#include <src/redis/schedules/grave.h>
#include <src/redis/schedules/look.h>
#include <src/redis/schedules/overview.h>
#include <src/redis/schedules/place.h>
#include <src/redis/schedules/route.h>
#include <src/redis/schedules/schedule.h>
#include <src/redis/schedules/sums.h>
#include <stdlib.h>

static void check_place(const struct ref *ref)
{
    static const uint8_t flags[] = {[NOWHERE] = 0,
                                    [WHEEL] = 0,
                                    [BEHIND] = TW__REDIS_TASK_BEHIND,
                                    [OVERDUE] = TW__REDIS_TASK_QUEUED,
                                    [PAST] = TW__REDIS_TASK_QUEUED,
                                    [HELD] = TW__REDIS_TASK_QUEUED | TW__REDIS_TASK_HELD};
    assert_int_equal(ref->task->flags & (TW__REDIS_TASK_QUEUED | TW__REDIS_TASK_HELD | TW__REDIS_TASK_BEHIND),
                     flags[ref->place]);
    assert_int_equal(tw__redis_task_filed(ref->task), ref->place != NOWHERE);
}

static void check_ref(const struct room *room, const struct ref *ref)
{
    unsigned i = (unsigned)(ref - room->ref);
    struct tw__redis_bytes id = id_of(i);
    assert_ptr_equal(tw__redis_schedule_find(room->schedule, tw__redis_schedule_foresee(all, id), id),
                     ref->task);
    if (ref->place == ABSENT)
        return;
    assert_bytes_equal(tw__redis_task_id(ref->task), id);
    assert_true(tw__redis_task_due(ref->task) == ref->due);
    assert_true(tw__redis_task_every(ref->task) == ref->every);
    assert_true(tw__redis_task_times(ref->task) == ref->times);
    assert_int_equal(ref->task->order, (uint32_t)ref->order);
    assert_int_equal(tw__redis_place_tries(all, ref->task), ref->tries & TW__REDIS_TRIES_MAX);
    assert_bytes_equal(tw__redis_task_packed(ref->task), text("\1\1p"));
    check_place(ref);
    const struct tw__redis_route *route = tw__redis_route_of(all, ref->task);
    struct tw__redis_plan plan = tw__redis_route_plan(route);
    const struct tw__redis_plan *wanted = &plan_of[ref->plan];
    assert_ptr_equal(route->schedule, room->schedule);
    assert_ptr_equal(tw__redis_route_at(all, route->index), route);
    assert_true(plan.kind == wanted->kind && plan.late == wanted->late && plan.maxlen == wanted->maxlen &&
                plan.late_ms == wanted->late_ms);
    assert_bytes_equal(plan.target, wanted->target);
}

/* P3, and the state of the line. */
static void check_line(const struct room *room, const struct ref *ref)
{
    const struct tw__redis_route *route = tw__redis_route_of(all, ref->task);
    const struct line *line = &room->line[ref->plan];
    assert_int_equal(tw_timer_pending(&route->retry), line->retry_ms != TW_NEVER);
    assert_int_equal(route->ready.next != NULL, line->ready > 0);
    if (line->retry_ms != TW_NEVER)
        assert_true(tw_timer_deadline(&route->retry) == line->retry_ms);
    bool held = held_of(room, ref->plan) > 0;
    assert_int_equal(route->queue.next != &route->queue, held);
    assert_int_equal(held, (line->ready > 0) + (line->retry_ms != TW_NEVER));
    assert_int_equal(tw__redis_place_is_blocked(all, ref->task), held);
}

/* The order of a queue. Tasks of buried schedules may stand in it too. */
void check_queue(const struct tw__link *queue, enum place place)
{
    int64_t before = INT64_MIN;
    uint64_t count = 0, wanted = 0;
    for (struct tw__link *link = queue->next; link != queue; link = link->next) {
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
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        wanted += ref->place == place;
    assert_int_equal(count, wanted);
}

struct sums {
    uint64_t schedules, pending, queued, held, bytes, too_large, reaping, filed, taken_up;
};

static void check_room(const struct room *room, struct sums *sums)
{
    uint64_t count = 0, queued = 0, held = 0, routes = 0;
    uint64_t tasks[PLANS] = {0};
    for (const struct ref *ref = room->ref; ref < room->ref + room->size; ref++) {
        count += ref->place != ABSENT;
        queued += ref->place == OVERDUE || ref->place == PAST;
        held += ref->place == HELD;
        sums->filed += is_filed(ref);
        if (ref->place != ABSENT)
            tasks[ref->plan]++;
    }
    for (unsigned i = 0; i < PLANS; i++)
        routes += tasks[i] > 0;
    assert_int_equal(tw__redis_table_count(&room->schedule->tasks), count);
    assert_int_equal(room->schedule->queued, queued);
    assert_int_equal(room->schedule->held, held);
    assert_int_equal(tw__redis_route_count(room->schedule), routes);
    assert_int_equal(room->schedule->attached, room->attached);
    sums->taken_up += tw__redis_schedule_bytes(room->schedule);
    if (!room->attached) {
        sums->reaping += count;
        return;
    }
    sums->schedules++;
    sums->pending += count;
    sums->queued += queued;
    sums->held += held;
    sums->bytes += room->schedule->bytes;
    sums->too_large += tw__redis_sums_dump_most(room->schedule) > all->dump_limit;
}

void check_sums(void)
{
    struct sums sums = {0};
    bool detached = model.graves > 0;
    for (const struct room *room = model.room; room < model.room + ROOMS; room++) {
        check_room(room, &sums);
        detached |= !room->attached;
    }
    assert_int_equal(all->count, sums.schedules);
    assert_int_equal(all->pending, sums.pending);
    assert_int_equal(all->queued, sums.queued);
    assert_int_equal(all->held, sums.held);
    assert_int_equal(all->bytes, sums.bytes);
    assert_int_equal(all->too_large, sums.too_large);
    assert_int_equal(all->reaping, sums.reaping + model.buried);
    assert_int_equal(tw__redis_grave_reaping(all), detached);
    if (model.graves > 0)
        return;
    uint64_t behind = all->behind == NULL ? 0 : tw_wheel_count(all->behind);
    assert_int_equal(tw_wheel_count(all->wheel) + behind, sums.filed);
    /* All memory belongs to a schedule, except for names of schedules, the state that all share, the list of
     * routes, and the strings of routes. */
    size_t more =
        (size_t)targets_out + (all->route == NULL ? 0 : counted_usable(all->route)) + counted_usable(all);
    assert_int_equal(bytes_out, sums.taken_up + more);
}

void check_wheels(void)
{
    assert_null(tw_wheel_check(all->wheel));
    assert_null(tw_wheel_check(all->retries));
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
            check_line(ref->room, ref);
    }
    check_queue(&all->overdue, OVERDUE);
    check_queue(&all->past, PAST);
}
