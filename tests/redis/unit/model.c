/* SPDX-License-Identifier: MIT
 *
 * The model: where tasks are.
 */
#include "model.h"

#include "tests/support/cmocka.h"
#include "tests/support/run.h"

#include <base/list.h>

/* Looking for tasks works in another way in small queues than in large ones. */
static const unsigned room_size[ROOMS] = {3, 20, 90, 600};

struct model model;

uint64_t below(uint64_t limit)
{
    return rng_below(&model.rng, limit);
}

bool is_filed(const struct ref *ref)
{
    return ref->place == WHEEL || ref->place == BEHIND || ref->place == LEASE;
}

bool is_leased(const struct ref *ref)
{
    return ref->has_attempt &&
           (ref->attempt.stage == TW__TASK_TAKEN || ref->attempt.stage == TW__TASK_REPLACED);
}

bool waits(const struct ref *ref)
{
    return ref->place != ABSENT && ref->place != READY && ref->place != DEAD && !is_leased(ref);
}

struct ref *ref_of(const struct tw__redis_task *task, struct room **room)
{
    struct tw__redis_bytes id = tw__redis_task_id(task);
    unsigned long i = id.size == 0 ? 0 : strtoul(id.at, NULL, 10);
    for (*room = model.room; *room < model.room + ROOMS; ++*room)
        if ((*room)->queue == tw__redis_queue_of(all, task)) {
            assert_true(i < (*room)->size);
            assert_ptr_equal((*room)->ref[i].task, task);
            return &(*room)->ref[i];
        }
    return NULL; /* a task of a queue that the reaper has */
}

uint64_t hash_of_ref(const struct room *room, const struct ref *ref)
{
    struct tw__redis_bytes id = id_of((unsigned)(ref - room->ref));
    return tw__redis_queue_hash(all, id);
}

void open_room(struct room *room)
{
    memset(room->ref, 0, room->size * sizeof *room->ref);
    for (unsigned i = 0; i < room->size; i++)
        room->ref[i].room = room;
    room->attached = room->paused = false;
    room->queue = tw__redis_queue_new(all);
    room->queue->name = new_target();
    for (unsigned i = 0; i < PLANS; i++)
        room->line[i] = (struct line){.retry_ms = TW_NEVER};
}

void open_model(void)
{
    memset(&model, 0, sizeof model);
    rng_init(&model.rng, run_seed());
    open_all();
    all->order = UINT32_MAX - 5000; /* so that it wraps soon */
    model.order = all->order;
    model.now = START;
    model.monotonic = 5000;
    struct ref *next = model.ref;
    for (unsigned i = 0; i < ROOMS; i++) {
        model.room[i].ref = next;
        model.room[i].size = room_size[i];
        next += room_size[i];
        open_room(&model.room[i]);
    }
}

unsigned held_of(const struct room *room, unsigned plan)
{
    unsigned count = 0;
    for (const struct ref *ref = room->ref; ref < room->ref + room->size; ref++)
        count += ref->place == HELD && ref->plan == plan;
    return count;
}

void model_leave(struct room *room, struct ref *ref)
{
    enum place place = ref->place;
    ref->place = NOWHERE;
    if (place == HELD && held_of(room, ref->plan) == 0)
        room->line[ref->plan].retry_ms = TW_NEVER, room->line[ref->plan].ready = 0;
}

/* Whether the clock was set back so far that filing makes the second wheel. */
static bool clock_is_back(void)
{
    return model.now + 10 < tw_wheel_now(all->wheel);
}

/* The time for which a task is filed: no lease is longer than its length from now on. */
static uint64_t time_of(const struct ref *ref, uint64_t due)
{
    uint64_t end = model.now + ref->attempt.lease_ms;
    return is_leased(ref) && due > end + TW__REDIS_LEASE_MORE_MS ? end : due;
}

/* A lease that ends is filed by the steady clock. It lasts longer if the wheel of leases has passed the present
 * time. */
static void model_file_lease(struct ref *ref)
{
    uint64_t set = (uint64_t)model.set, stands = tw_wheel_now(all->leases);
    ref->place = LEASE;
    ref->steady = ref->due - set;
    if (model.now - set < stands)
        ref->steady += stands - (model.now - set);
    ref->due = ref->steady + set;
}

/* The wall clock was set: the ends of the leases move. */
void set_clock(int64_t by)
{
    model.set_amid |= tw_wheel_next_bound(all->wheel) <= tw_wheel_now(all->wheel) ||
                      tw_wheel_next_bound(all->leases) <= tw_wheel_now(all->leases);
    model.set += by;
    model.steps++;
    tw__redis_place_clock_set(all, by);
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        if (ref->place == LEASE)
            ref->due = ref->steady + (uint64_t)model.set;
}

void model_file(struct ref *ref, uint64_t due)
{
    ref->due = due = time_of(ref, due);
    ref->turn = ++model.turns;
    if (!is_leased(ref))
        ref->order = model.order++;
    ref->moved = false;
    if (ref->has_attempt && ref->attempt.stage == TW__TASK_BURIED) {
        model_line_up(ref, DEAD, false);
    } else if (due > model.now && is_leased(ref)) {
        model_file_lease(ref);
    } else if (due > model.now && due > tw_wheel_now(all->wheel)) {
        ref->place = WHEEL;
    } else if (due > model.now && (all->behind != NULL ? due > tw_wheel_now(all->behind) : clock_is_back())) {
        ref->place = BEHIND;
    } else {
        ref->place = PAST;
        ref->filed_ms = model.now;
        ref->position = ++model.back;
    }
}

void model_line_up(struct ref *ref, enum place place, bool first)
{
    ref->place = place;
    ref->position = first ? --model.front : ++model.back;
}

/* The first task of a line according to the model; with `due`, the first task that is due. A lease that has
 * ended stays so. */
struct ref *first_of(enum place place, bool due)
{
    struct ref *first = NULL;
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        if (ref->room->attached && ref->place == place && (!due || ref->due <= model.now || is_leased(ref)) &&
            (first == NULL || ref->position < first->position))
            first = ref;
    return first;
}

/* The first task of a line of a room, according to the model. */
struct ref *first_in(const struct room *room, enum place place)
{
    struct ref *first = NULL;
    for (struct ref *ref = room->ref; ref < room->ref + room->size; ref++)
        if (ref->place == place && (first == NULL || ref->position < first->position))
            first = ref;
    return first;
}

/* Whether no task can be taken from a line now. It is empty; or the clock was set back a little, so that its
 * first task is no longer due, and all wheels have passed that task's time. */
bool is_stuck(const struct tw__link *line)
{
    if (line->next == line)
        return true;
    const struct tw__redis_task *task = tw__redis_task_of_link(line->next);
    uint64_t due = tw__redis_task_due(task);
    return !tw__redis_task_is_leased(task) && due > model.now && due <= tw_wheel_now(all->wheel) &&
           (all->behind == NULL || due <= tw_wheel_now(all->behind));
}

/* Whether the task is the first of its line. Otherwise a task of a detached queue may stand before it,
 * which takes its turn and is passed over. */
bool is_next(const struct tw__link *line, const struct ref *ref)
{
    return ref != NULL && line->next == &ref->task->parked.link;
}

/* The time that the queues tell for a task: no later than the latest one that a file may have. */
uint64_t due_of(const struct ref *ref)
{
    return ref->place == LEASE && ref->due > TW__TASK_TIME_MAX ? TW__TASK_TIME_MAX : ref->due;
}

/* The time up to which tasks are due in the place of `ref`. A task is due if the wheel has passed its time,
 * even if the clock was set back since. */
uint64_t reach(const struct ref *ref)
{
    uint64_t now = model.now;
    if (ref->place == LEASE) {
        now = tw_wheel_now(all->leases) + (uint64_t)model.set;
    } else if (is_filed(ref)) {
        const struct tw_wheel *wheel = ref->place == BEHIND && all->behind != NULL ? all->behind : all->wheel;
        now = tw_wheel_now(wheel);
    }
    return now > model.now ? now : model.now;
}

/* The task of a line that was filed again in the last take as the first after `order`, or NULL. */
static struct ref *filed_again_after(uint64_t order)
{
    struct ref *first = NULL;
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        if ((ref->place == LATE || ref->place == PAST) && tw__redis_task_filed(ref->task) &&
            !tw__redis_task_in_line(ref->task) && ref->task->order - (uint32_t)order < INT32_MAX &&
            (first == NULL || (int32_t)(ref->task->order - first->task->order) < 0))
            first = ref;
    return first;
}

/* A take files tasks again which are first in a line, and are not due any more. Tasks of removed queues have
 * a place in the order too. */
void see_what_was_filed_again(void)
{
    struct ref *ref;
    int64_t late = INT64_MIN, past = INT64_MIN;
    while ((ref = filed_again_after(model.order)) != NULL) {
        int64_t *before = ref->place == LATE ? &late : &past;
        assert_true(ref->position > *before && ref->due > model.now && !is_leased(ref));
        *before = ref->position;
        ref->place = ref->task->place == TW__REDIS_IN_BEHIND ? BEHIND : WHEEL;
        ref->order = model.order += ref->task->order - (uint32_t)model.order;
        ref->turn = ++model.turns;
        ref->moved = false;
        model.order++;
    }
    model.order += all->order - (uint32_t)model.order;
}

/* A take may move tasks from the wheel to the front of the line of late tasks. */
void see_what_was_moved_to_the_front(void)
{
    struct ref *moved[REFS];
    unsigned count = 0, due = 0;
    struct room *room;
    for (struct tw__link *link = all->late.next; link != &all->late; link = link->next) {
        struct ref *ref = ref_of(tw__redis_task_of_link(link), &room);
        if (ref == NULL)
            continue;
        if (!is_filed(ref))
            break;
        due += ref->due <= model.now;
        assert_true(ref->due <= reach(ref));
        moved[count++] = ref;
    }
    assert_true(due <= 1);
    while (count > 0)
        model_line_up(moved[--count], LATE, true);
}

/* A take passes over tasks of detached queues. */
void see_what_was_passed_over(void)
{
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        if (ref->place > NOWHERE && !ref->room->attached && !tw__redis_task_filed(ref->task)) {
            assert_true(ref->place == HELD || ref->due <= reach(ref) || (is_leased(ref) && !is_filed(ref)));
            model_leave(ref->room, ref);
            model.passed++;
        }
}
