/* SPDX-License-Identifier: MIT
 *
 * The model: looking for tasks.
 */
#include "model.h"

#include "tests/support/cmocka.h"
#include "tests/support/run.h"

#include <base/list.h>

/* The `next` of a task that waits for a time: that of a held task is the next try of its target. */
uint64_t next_look(const struct ref *ref)
{
    const struct line *line = &ref->room->line[ref->plan];
    if (ref->place != HELD)
        return due_of(ref);
    uint64_t next = line->next_steady + (uint64_t)model.set;
    return line->retry_ms != TW_NEVER || next < model.now ? next : model.now;
}

static int compare_nexts(const void *a, const void *b)
{
    const struct ref *one = *(const struct ref *const *)a, *two = *(const struct ref *const *)b;
    if (next_look(one) != next_look(two))
        return next_look(one) < next_look(two) ? -1 : 1;
    return one->order < two->order ? -1 : 1;
}

static int compare_refs(const void *a, const void *b)
{
    const struct ref *one = *(const struct ref *const *)a, *two = *(const struct ref *const *)b;
    if (due_of(one) != due_of(two))
        return due_of(one) < due_of(two) ? -1 : 1;
    return one->order < two->order ? -1 : 1;
}

/* Sorts the tasks of a room in the order of their times, or only the tasks that wait for a time, by `next`. */
static size_t sort_refs(struct room *room, const struct ref **sorted, bool waiting)
{
    size_t count = 0;
    for (struct ref *ref = room->ref; ref < room->ref + room->size; ref++)
        if (waiting ? waits(ref) : ref->place != ABSENT)
            sorted[count++] = ref;
    qsort(sorted, count, sizeof *sorted, waiting ? compare_nexts : compare_refs);
    return count;
}

/* A time near the other times, or one of the two ends of the range. */
uint64_t some_time(void)
{
    static const uint64_t scale[] = {1, 50, 2000, 100000, 10000000};
    uint64_t off = below(scale[below(5)]);
    uint64_t ends = below(20);
    if (ends < 2)
        return ends == 0 ? 0 : UINT64_MAX;
    return below(2) == 0 ? model.now + off : model.now - off;
}

uint64_t some_due(void)
{
    uint64_t time = some_time();
    return time < TW__TASK_TIME_MAX ? time : TW__TASK_TIME_MAX;
}

static void look_for_earliest(struct room *room)
{
    const struct ref *sorted[ROOM_MAX];
    struct tw__redis_task *found[ROOM_MAX];
    size_t count = sort_refs(room, sorted, true), first = 0;
    uint64_t from = below(2) == 0 ? model.now + 1 : some_time(), to = some_time(),
             limit = 1 + below(below(4) == 0 ? 600 : 5);
    size_t got = tw__redis_look_earliest(room->queue, from, to, model.now, limit, found);
    while (first < count && next_look(sorted[first]) < from)
        first++;
    for (size_t i = 0; i < got; i++) {
        assert_true(first + i < count);
        assert_ptr_equal(found[i], sorted[first + i]->task);
        assert_true(next_look(sorted[first + i]) <= to);
    }
    assert_true(got <= limit);
    assert_true(got == limit || first + got == count || next_look(sorted[first + got]) > to);
}

/* The same for the tasks after a given task. */
static void look_for_wanted(struct room *room)
{
    const struct ref *sorted[ROOM_MAX];
    struct tw__redis_task *found[ROOM_MAX];
    size_t count = sort_refs(room, sorted, true), at = count == 0 ? 0 : below(count), first = 0;
    struct tw__redis_wanted wanted = {.to = UINT64_MAX};
    uint64_t limit = 1 + below(600);
    if (count > 0 && below(2) == 0) {
        wanted.after = sorted[at]->task;
        first = at + 1;
    }
    size_t got = tw__redis_look_wanted(room->queue, &wanted, model.now, limit, found);
    assert_int_equal(got, limit < count - first ? limit : count - first);
    for (size_t i = 0; i < got; i++)
        assert_ptr_equal(found[i], sorted[first + i]->task);
}

static void look_ahead(struct room *room)
{
    uint64_t counts[20], wanted[20] = {0}, step = 1 + below(below(2) == 0 ? 30 : 100000);
    size_t many = 1 + below(20);
    if (below(30) == 0)
        step = UINT64_MAX / 2;
    memset(counts, 0xEE, sizeof counts);
    tw__redis_look_forecast(room->queue, model.now, step, many, counts);
    for (struct ref *ref = room->ref; ref < room->ref + room->size; ref++) {
        if (!waits(ref) || next_look(ref) <= model.now)
            continue;
        uint64_t at = (next_look(ref) - model.now - 1) / step;
        if (at < many)
            wanted[at]++;
    }
    assert_memory_equal(counts, wanted, many * sizeof wanted[0]);
}

static void count_states(const struct room *room)
{
    struct tw__redis_states states, wanted = {0};
    tw__redis_look_states(room->queue, model.now, &states);
    for (const struct ref *ref = room->ref; ref < room->ref + room->size; ref++) {
        bool is_ready = ref->place == READY || (waits(ref) && next_look(ref) <= model.now);
        wanted.ready += is_ready;
        wanted.waiting += waits(ref) && !is_ready;
    }
    assert_int_equal(states.waiting, wanted.waiting);
    assert_int_equal(states.ready, wanted.ready);
}

static void look_at_all(struct room *room)
{
    const struct ref *sorted[ROOM_MAX];
    size_t count = sort_refs(room, sorted, false);
    struct tw__redis_task **task = tw__redis_look_sorted(room->queue);
    assert_int_equal(task == NULL, count == 0);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(task[i], sorted[i]->task);
    all->memory.free(task);
}

/* The time that the wheel has to give as the next work because of a task: its due time, or now if that time
 * is past. */
static uint64_t next_of(const struct ref *ref)
{
    uint64_t now = ref->place == LEASE ? tw_wheel_now(all->leases) + (uint64_t)model.set
                                       : tw_wheel_now(ref->place == BEHIND ? all->behind : all->wheel);
    return ref->due > now ? ref->due : now;
}

/* Whether a task counts as ready in the overview: it is in a line, it is due in a wheel, or its target can be
 * tried again. */
static bool is_ready(const struct ref *ref)
{
    if (!ref->room->attached || ref->place <= NOWHERE || ref->place == DEAD || is_leased(ref))
        return false;
    if (ref->place == HELD)
        return ref->room->line[ref->plan].ready > 0;
    return !is_filed(ref) || ref->due <= model.now;
}

/* Whether the overview looks at the time since which a ready task has been so. In some lines it looks at the
 * first task alone. */
static bool tells_time(const struct ref *ref)
{
    const struct tw__redis_queue *queue = ref->room->queue;
    const struct tw__link *line = ref->place == HELD      ? &tw__redis_route_of(all, ref->task)->line
                                  : ref->place == READY   ? &queue->ready
                                  : ref->place == STOPPED ? &queue->stopped
                                                          : NULL;
    return line == NULL || line->next == &ref->task->parked.link;
}

static uint64_t ready_since(const struct ref *ref)
{
    if (ref->place == HELD)
        return next_look(ref);
    if (is_filed(ref))
        return ref->due;
    uint64_t since = ref->task->parked.since_ms;
    return ref->place == READY || (since > ref->due && ref->every == 0) ? since : ref->due;
}

/* Adds a ready task. Of a queue that is not paused, it is late unless workers can take it. */
static void count_ready(struct tw__redis_ready *ready, const struct ref *ref)
{
    bool late = !ref->room->paused && ref->place != READY;
    uint64_t since = tells_time(ref) ? ready_since(ref) : TW_NEVER;
    ready->count++;
    ready->late += late;
    if (since < ready->since)
        ready->since = since;
    if (late && since < ready->late_since)
        ready->late_since = since;
}

static void look_for_ready_in(const struct room *room)
{
    struct tw__redis_ready wanted = {.since = TW_NEVER};
    for (const struct ref *ref = room->ref; ref < room->ref + room->size; ref++)
        if (is_ready(ref) && !is_filed(ref))
            count_ready(&wanted, ref);
    if (room->attached)
        assert_true(tw__redis_overview_ready_since(room->queue, model.now) == wanted.since);
}

static void look_for_ready(void)
{
    struct tw__redis_ready found, wanted = {.since = TW_NEVER, .late_since = TW_NEVER};
    uint64_t next = TW_NEVER;
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++) {
        if (is_filed(ref) && next_of(ref) < next)
            next = next_of(ref);
        if (is_ready(ref))
            count_ready(&wanted, ref);
    }
    assert_true(tw__redis_place_next_work(all) <= next);
    if (model.removed > 0)
        return;
    tw__redis_overview_all_ready(all, model.now, &found);
    assert_int_equal(found.count, wanted.count);
    assert_int_equal(found.late, wanted.late);
    assert_true(found.since == wanted.since);
    assert_true(found.late_since == wanted.late_since);
    for (const struct room *room = model.room; room < model.room + ROOMS; room++)
        look_for_ready_in(room);
    assert_int_equal(tw__redis_place_next_work(all) == TW_NEVER, next == TW_NEVER);
    bool waiting = false;
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        waiting |= ref->place == LATE || ref->place == PAST;
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        waiting |= ref->place == HELD && ref->room->line[ref->plan].ready > 0;
    assert_int_equal(tw__redis_place_any_waiting(all), waiting);
}

void file_again(struct ref *ref)
{
    uint64_t due = ref->due + (ref->every > 0 ? ref->every : below(100));
    if (ref->every > 0) {
        ref->times = 1 + below(5);
        tw__redis_task_set_times(ref->task, ref->times);
        ref->tries = 0;
        ref->task->tries = 0;
    }
    model_file(ref, due);
    tw__redis_place_file(all, ref->task, due, model.now);
}

/* The limit is near the size of this queue's dump, so that a change of the queue often leads past the
 * limit. */
static void limit_dumps(const struct room *room)
{
    tw__redis_sums_limit_dump(all, tw__redis_sums_dump_most(room->queue) + below(3) - 1);
    check_sums();
}

void look(struct room *room)
{
    limit_dumps(room);
    look_at_all(room);
    look_for_ready();
    for (struct ref *ref = room->ref; ref < room->ref + room->size; ref++)
        if (ref->place == NOWHERE)
            file_again(ref); /* a task that is nowhere may be found or not */
    look_for_earliest(room);
    look_for_wanted(room);
    look_ahead(room);
    count_states(room);
}
