/* SPDX-License-Identifier: MIT
 *
 * Random operations on queues, against the model.
 */
#include "model.h"

#include "tests/support/cmocka.h"
#include "tests/support/extent.h"
#include "tests/support/run.h"

#include <base/list.h>

/* Gives a task that is about to be put the attempt state that a chunk may give it. */
static void put_attempt(struct ref *ref, struct tw__redis_task_plan *plan)
{
    bool for_workers = ref->plan >= FIRST_OF_WORKERS;
    ref->has_attempt = below(for_workers ? 3 : 9) == 0;
    if (!ref->has_attempt)
        return;
    enum tw__task_stage stage =
        (for_workers ? TW__TASK_FILED + (unsigned)below(4) : TW__TASK_BURIED + (unsigned)below(2));
    ref->attempt = some_attempt(plan->due, stage, plan->every);
    plan->attempt = &ref->attempt;
}

static void put(struct room *room, struct ref *ref)
{
    struct tw__redis_task_plan plan = {.id = id_of((unsigned)(ref - room->ref)), .packed = text("\1\1p")};
    struct ref before = *ref;
    if (ref->place != ABSENT)
        model_leave(room, ref);
    plan.due = some_due();
    plan.every = below(3) == 0 ? 1 + below(1000) : 0;
    plan.times = plan.every == 0 ? 1 : below(2) == 0 ? TW_FOREVER : 1 + below(9);
    plan.tries = (uint32_t)below(4);
    *ref = (struct ref){.room = room, .every = plan.every, .times = plan.times, .tries = plan.tries};
    ref->plan = (unsigned)(below(3) == 0 ? FIRST_OF_WORKERS + below(2) : below(below(4) == 0 ? PLANS : 2));
    bool behind = before.place != ABSENT && is_leased(&before) && below(3) > 0;
    if (!behind)
        put_attempt(ref, &plan);
    ref->task = tw__redis_task_new(&plan, &all->memory);
    put_task(room, ref, &before, plan.due, behind);
}

static void take_away(struct room *room, struct ref *ref)
{
    model_leave(room, ref);
    tw__redis_queue_remove(room->queue, ref->task, hash_of_ref(room, ref));
    *ref = (struct ref){.room = room};
}

static void give_other_time(struct room *room, struct ref *ref)
{
    uint64_t due = below(3) == 0 ? ref->due + below(3) : some_due();
    if (due > TW__TASK_TIME_MAX)
        due = TW__TASK_TIME_MAX;
    enum place before = ref->place;
    model_leave(room, ref);
    model_file(ref, due);
    ref->moved = ref->place == before && (before == WHEEL || before == LEASE);
    tw__redis_place_refile(all, ref->task, due, model.now);
}

static void move_block(struct room *room, struct ref *ref)
{
    struct tw__redis_task *old = ref->task;
    size_t size = counted_usable(old);
    ref->task = counted_alloc(size);
    memcpy(ref->task, old, size);
    memset(old, 0xEE, size);
    tw__redis_queue_moved(room->queue, old, ref->task);
    counted_free(old);
}

/* Changes a task in some way, perhaps while it is being delivered. */
static void change(struct room *room, struct ref *ref)
{
    bool delivering = ref->place == NOWHERE && below(2) == 0, gone = true;
    struct tw__redis_task *task = delivering ? ref->task : NULL;
    uint64_t what = below(10);
    if (ref->place != ABSENT && below(3) == 0 && live(room, ref))
        return;
    all->delivering = task;
    if (ref->place == ABSENT && what == 9)
        keep_due(room, ref);
    else if (ref->place == ABSENT || what < 4)
        put(room, ref);
    else if (what < 7)
        give_other_time(room, ref);
    else if (what < 8)
        take_away(room, ref);
    else {
        gone = delivering;
        all->delivering = NULL;
        move_block(room, ref);
    }
    assert_true(!gone || all->delivering == NULL);
    all->delivering = NULL;
}

static void hold(struct room *room, struct ref *ref)
{
    struct line *line = &room->line[ref->plan];
    if (model.probe != ref && tw__redis_place_is_blocked(all, ref->task)) {
        tw__redis_place_hold(all, ref->task);
        model_line_up(ref, HELD, false);
        return;
    }
    uint64_t retry = model.monotonic + below(200);
    bool counts = below(2) == 0;
    tw__redis_place_hold_first(all, ref->task, retry, model.now + (retry - model.monotonic));
    model_line_up(ref, HELD, true);
    *line = (struct line){retry > model.monotonic ? retry : model.monotonic + 1,
                          model.now + (retry - model.monotonic) - (uint64_t)model.set, 0};
    if (!counts)
        return;
    tw__redis_route_of(all, ref->task)->waits++;
    for (struct ref *other = room->ref; other < room->ref + room->size; other++)
        other->tries += other->place == HELD && other->plan == ref->plan;
}

static void put_back(struct room *room, struct ref *ref)
{
    bool probe = model.probe == ref;
    tw__redis_place_put_back(all, ref->task, probe ? TW__REDIS_TAKEN_PROBE : TW__REDIS_TAKEN_TASK);
    model_line_up(ref, probe ? HELD : LATE, true);
    if (probe && room->line[ref->plan].ready == 0 && room->line[ref->plan].retry_ms == TW_NEVER)
        room->line[ref->plan].ready = ++model.made_ready;
}

/* Does one of several things with a task that was taken. */
static void deal_with(struct room *room, struct ref *ref)
{
    uint64_t what = below(20);
    if (is_leased(ref) && below(8) > 0) {
        lapse(room, ref);
    } else if (room->paused && below(8) > 0) {
        stop(ref);
    } else if (ref->plan >= FIRST_OF_WORKERS && !is_leased(ref) && below(8) > 0) {
        offer(ref);
    } else if (what < 8) {
        take_away(room, ref);
    } else if (what < 11) {
        file_again(ref);
    } else if (what < 14 && !is_leased(ref)) {
        hold(room, ref);
    } else if (what < 16) {
        put_back(room, ref);
    } else if (what < 18) {
        tw__redis_place_file_late(all, ref->task);
        model_line_up(ref, LATE, false);
    } /* else the task stays nowhere for a while */
}

static void take_some(void)
{
    uint32_t budget = 1 + (uint32_t)below(below(3) == 0 ? 200 : 6);
    bool in_line = below(4) > 0;
    for (uint64_t most = 1 + below(12); most > 0; most--) {
        struct room *room;
        struct ref *ref = take(in_line, budget, &room);
        if (ref == NULL)
            return;
        deal_with(room, ref);
    }
}

static void end_waits(uint64_t ms)
{
    struct tw_timer *timer;
    model.monotonic += ms;
    while ((timer = tw_wheel_poll(all->retries, model.monotonic)) != NULL) {
        struct tw__redis_route *route = TW_CONTAINER(timer, struct tw__redis_route, retry);
        struct room *room = model.room;
        while (room < model.room + ROOMS && room->queue != route->queue)
            room++;
        if (room < model.room + ROOMS) {
            struct room *its = NULL;
            struct ref *ref = ref_of(tw__redis_task_of_link(route->line.next), &its);
            struct line *line = &room->line[ref->plan];
            assert_true(line->retry_ms <= model.monotonic);
            line->retry_ms = TW_NEVER;
            line->ready = ++model.made_ready;
        }
        tw__redis_place_make_ready(route);
    }
    for (struct room *room = model.room; room < model.room + ROOMS; room++)
        for (unsigned i = 0; i < PLANS; i++)
            assert_true(room->line[i].retry_ms > model.monotonic);
}

/* Lets the clock go on, or sets it. */
static void step_forward(uint64_t ms)
{
    model.now += ms;
    if (below(2) == 0)
        set_clock((int64_t)ms);
}

static void clock_forward(void)
{
    uint64_t what = below(300);
    if (what == 0)
        step_forward(below(20000000));
    else if (what < 20)
        model.now += below(3000);
    else if (what < 60 && tw__redis_place_next_work(all) < model.now + 10000)
        model.now = tw__redis_place_next_work(all) > model.now ? tw__redis_place_next_work(all) : model.now;
    else
        model.now += below(12);
    end_waits(below(60));
}

/* Whether a task of the second wheel is due by `now`. When the clock is set back twice, such a task goes to a
 * line; that case has a test of its own. */
static bool is_due_behind(uint64_t now)
{
    bool due = false;
    for (const struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        due |= ref->place == BEHIND && ref->due <= now;
    return due;
}

/* Sets the clock back as tick.c does: after a step of a few milliseconds it waits until the clock has caught
 * up. It does not notice each step, so that leases keep their ends. */
static void clock_back(void)
{
    static const uint64_t scale[] = {9, 40, 3000, 1000000};
    uint64_t now = model.now - below(scale[below(4)]);
    if (is_due_behind(now))
        return;
    if (below(2) == 0)
        set_clock((int64_t)(now - model.now));
    model.now = now;
    if (now + 10 >= tw__redis_place_now(all))
        return;
    tw__redis_place_clock_back(all, now);
    assert_non_null(all->behind);
    assert_int_equal(tw_wheel_now(all->behind), now);
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        ref->moved |= ref->place == BEHIND; /* filed once more in a new second wheel, in any order */
}

static int compare_positions(const void *a, const void *b)
{
    const struct ref *one = *(const struct ref *const *)a, *two = *(const struct ref *const *)b;
    if (one->due != two->due)
        return one->due < two->due ? -1 : 1;
    if (is_leased(one) != is_leased(two))
        return is_leased(one) ? 1 : -1;
    if (!is_leased(one))
        return one->order < two->order ? -1 : 1;
    if (one->place != two->place)
        return one->place == LATE ? -1 : 1;
    return one->position < two->position ? -1 : 1;
}

/* Sorts the model's tasks of two places by their due times, into the second place. */
static void model_sort(enum place place, enum place into)
{
    struct ref *sorted[REFS];
    size_t count = 0;
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        if (ref->place == place || ref->place == into)
            sorted[count++] = ref;
    qsort(sorted, count, sizeof sorted[0], compare_positions);
    for (size_t i = 0; i < count; i++)
        model_line_up(sorted[i], into, false);
}

static void check_sorted(void)
{
    check_line(&all->late, LATE);
    check_line(&all->past, PAST);
}

static void sort_late(void)
{
    struct room *room;
    for (struct ref *ref; (ref = take(false, UINT32_MAX, &room)) != NULL;) {
        tw__redis_place_file_late(all, ref->task);
        model_line_up(ref, LATE, false);
    }
    model_sort(PAST, LATE);
    tw__redis_place_sort_late(all, model.now);
    check_sorted();
}

static void sort_past(void)
{
    model_sort(PAST, PAST);
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        if (ref->place == PAST)
            ref->filed_ms = ref->due;
    tw__redis_place_sort_past(all);
    check_sorted();
}

static void hand_over(struct room *room)
{
    tw__redis_queue_detach(room->queue);
    for (struct ref *ref = room->ref; ref < room->ref + room->size; ref++)
        model.reapable += ref->place != ABSENT;
    model.removed++;
    tw__redis_reaper_add(room->queue);
    all->recent = below(2) == 0 ? room->queue : NULL;
    open_room(room);
}

static void reap(uint64_t limit)
{
    uint64_t before = all->reaping, answer = tw__redis_reaper_run(all, limit), freed = before - all->reaping;
    uint64_t most = limit < model.reapable ? limit : model.reapable;
    assert_true(freed <= most);
    assert_true(freed + model.removed >= most);
    assert_true(answer >= freed);
    model.reapable -= freed;
    if (answer < limit)
        assert_int_equal(model.reapable, 0);
    if (model.reapable > 0)
        return;
    tw__redis_reaper_run_all(all);
    model.removed = 0;
}

static struct room *room_of(const struct tw__redis_queue *queue)
{
    for (struct room *room = model.room; room < model.room + ROOMS; room++)
        if (room->queue == queue)
            return room;
    return NULL; /* a removed queue */
}

/* Deals with a stale queue as the tick does. */
static void purge_from(struct tw__redis_queue *queue, uint64_t by)
{
    struct room *room = room_of(queue);
    struct ref *first = room == NULL || !room->attached ? NULL : first_in(room, DEAD);
    bool too_many = all->dead_limit > 0 && queue->dead_count > all->dead_limit;
    if (first == NULL || (!too_many && first->due > by))
        tw__redis_place_let_stay(queue);
    else if (below(4) == 0)
        tw__redis_place_let_wait(queue);
    else
        take_away(room, first);
}

/* Removes some dead tasks that died by a time, or that are too many. */
static void purge_some(void)
{
    uint64_t by = below(4) == 0 ? 0 : model.now - below(3000), most = 1 + below(12);
    uint32_t budget = 1 + (uint32_t)below(below(2) == 0 ? 4 : 100);
    bool further = by > model.died;
    struct tw__redis_queue *queue = NULL;
    if (further)
        model.died = by;
    while (most-- > 0 && (queue = tw__redis_place_first_stale(all, by, &budget)) != NULL)
        purge_from(queue, by);
    if (queue != NULL || budget == 0 || !further)
        return;
    for (const struct room *room = model.room; room < model.room + ROOMS; room++) {
        const struct ref *first = first_in(room, DEAD);
        assert_true(first == NULL || first->due > by || !room->attached);
    }
    assert_false(tw__redis_place_any_stale(all, by));
}

static void attach_or_detach(struct room *room)
{
    if (room->attached)
        tw__redis_queue_detach(room->queue);
    else
        tw__redis_queue_attach(room->queue);
    room->attached = !room->attached;
}

static void rare_operation(struct room *room)
{
    uint64_t what = below(32);
    if (what >= 30)
        tw__redis_sums_limit_dead(all, below(3) == 0 ? 0 : below(20));
    else if (what >= 24)
        pause_or_go_on(&model.room[below(ROOMS)]);
    else if (what < 4)
        hand_over(room);
    else if (what < 10)
        attach_or_detach(room);
    else if (what < 14)
        clock_back();
    else if (what < 16)
        below(2) == 0 ? sort_late() : sort_past();
    else
        reap(below(4) == 0 ? UINT64_MAX : 1 + below(40));
}

static void operate(void)
{
    uint64_t what = below(100);
    struct room *room = &model.room[below(3) > 0 ? ROOMS - 1 : below(ROOMS)];
    struct ref *ref = &room->ref[below(room->size)];
    if (!room->attached && below(20) == 0)
        attach_or_detach(room);
    if (room->paused && below(200) == 0)
        pause_or_go_on(room);
    if (below(8) == 0) {
        below(4) == 0 ? give_some_back(room) : take_as_a_worker(room);
        return;
    }
    if (below(100) == 0)
        purge_some();
    if (below(200) == 0)
        promote_some(room);
    if (what < 55)
        change(room, ref);
    else if (what < 75)
        take_some();
    else if (what < 95)
        clock_forward();
    else if (what < 98)
        ref->place == NOWHERE ? deal_with(room, ref) : look(room);
    else if (below(4) == 0)
        rare_operation(room);
}

/* Lets all remaining tasks become due: none is lost. */
static void drain(void)
{
    struct room *room;
    struct ref *taken;
    uint64_t left = 0;
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++) {
        if (!ref->room->attached)
            attach_or_detach(ref->room);
        if (ref->room->paused)
            pause_or_go_on(ref->room);
        if (ref->place == READY || ref->place == DEAD)
            take_away(ref->room, ref); /* they wait for workers and users alone */
        if (ref->place == NOWHERE)
            file_again(ref);
        left += ref->place != ABSENT;
    }
    for (int round = 0; round < 3; round++) {
        end_waits(1000);
        while (tw__redis_place_next_work(all) != TW_NEVER || tw__redis_place_any_waiting(all)) {
            while ((taken = take(true, 100, &room)) != NULL) {
                take_away(room, taken);
                left--;
            }
            if (tw__redis_place_next_work(all) != TW_NEVER && tw__redis_place_next_work(all) > model.now)
                model.now = tw__redis_place_next_work(all);
            else
                model.now += 100;
        }
    }
    assert_int_equal(left, 0);
    assert_int_equal(all->tasks, 0);
}

static void every_task_is_where_the_model_says_and_none_is_lost(void **state)
{
    unsigned operations = (unsigned)extent(20000, 100000, 300000);
    (void)state;
    open_model();
    for (unsigned i = 0; i < operations; i++) {
        operate();
        check_invariants();
        if (i % 32 == 0)
            check_all();
        if (i % 4096 == 0)
            check_wheels();
    }
    assert_true(model.taken > operations / 20);
    assert_true(model.passed > 0);
    assert_true(model.leases > operations / 50 && model.deaths > operations / 100);
    assert_true(model.returns > operations / 500 && model.replaced > operations / 1000 &&
                model.promoted > operations / 500);
    for (size_t how = 0; how < sizeof model.kept / sizeof *model.kept; how++)
        assert_true(model.kept[how] > operations / 20000);
    assert_true(model.stopped > 0 && model.copies > 0 && model.steps > 0 && model.merged > 0 && model.late > 0);
    assert_true(all->routes < 20 * ROOMS * PLANS); /* unused numbers are used again */
    drain();
    check_all();
    for (struct room *room = model.room; room < model.room + ROOMS; room++)
        close_queue(room->queue);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_is_where_the_model_says_and_none_is_lost),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
