/* SPDX-License-Identifier: MIT
 *
 * The model: judging which task is taken.
 */
#include "model.h"

#include "tests/support/cmocka.h"
#include "tests/support/run.h"

#include <base/list.h>

static void judge_ready(const struct room *its_room, const struct ref *taken)
{
    int64_t ready = its_room->line[taken->plan].ready;
    assert_true(ready > 0);
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        if (ref->room->attached && ref->place == HELD && ref != taken) {
            int64_t other = ref->room->line[ref->plan].ready;
            if (ref->room == its_room && ref->plan == taken->plan)
                assert_true(ref->position > taken->position);
            else
                assert_true(other == 0 || other > ready);
        }
}

/* The earliest task in the wheels that is due. Tasks of the second wheel are taken first. In the main wheel
 * only tasks can be due that nobody had taken yet when the clock was set back. */
static const struct ref *first_filed(void)
{
    const struct ref *first = NULL;
    for (const struct ref *ref = model.ref; ref < model.ref + REFS; ref++) {
        if (!ref->room->attached || !is_filed(ref) || ref->due > model.now)
            continue;
        bool behind = ref->place == BEHIND;
        if (first == NULL || ((first->place == BEHIND) == behind ? ref->due < first->due : behind))
            first = ref;
    }
    return first;
}

/* Whether no order is promised between the tasks of the main wheel and those of the wheel of leases. A wheel
 * stands ahead of the clock, which was set back; or the clock was set while a wheel had due tasks. */
static bool is_mixed(void)
{
    return model.set_amid || tw_wheel_now(all->wheel) > model.now ||
           tw_wheel_now(all->leases) + (uint64_t)model.set > model.now;
}

static void judge_filed(const struct ref *taken)
{
    const struct ref *first = first_filed();
    if (first == NULL || first == taken)
        return;
    assert_int_equal(first->place == BEHIND, taken->place == BEHIND);
    if (first->place == taken->place || !is_mixed())
        assert_true(first->due >= taken->due);
    for (const struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        if (ref->room->attached && ref->place == taken->place && ref->due == taken->due && !ref->moved)
            assert_true(ref->turn >= taken->turn || taken->moved);
}

/* A past task takes its turn when no task is left that was due before the past task was filed. */
static void judge_in_line(const struct ref *taken)
{
    const struct ref *past = first_of(PAST, true), *late = first_of(LATE, true);
    if (taken->place == PAST) {
        assert_ptr_equal(past, taken);
        if (is_next(&all->late, late))
            assert_true(late->due > taken->filed_ms);
        const struct ref *filed = first_filed();
        if (filed != NULL && all->late.next == &all->late)
            assert_true(filed->due > taken->filed_ms);
        return;
    }
    if (is_next(&all->past, past))
        assert_true(taken->due <= past->filed_ms);
    if (taken->place == LATE)
        assert_ptr_equal(late, taken);
    else
        assert_true(late == NULL || is_stuck(&all->late));
}

static void judge(const struct room *room, const struct ref *taken, bool in_line, bool probe)
{
    assert_true(room->attached);
    assert_false(tw__redis_task_filed(taken->task));
    assert_int_equal(probe, taken->place == HELD);
    if (probe) {
        assert_true(in_line);
        judge_ready(room, taken);
        return;
    }
    assert_true(taken->due <= reach(taken) || (is_leased(taken) && !is_filed(taken)));
    if (is_filed(taken))
        judge_filed(taken);
    else
        assert_true(in_line);
    if (!in_line)
        return;
    judge_in_line(taken);
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++)
        assert_false(ref->room->attached && ref->place == HELD && ref->room->line[ref->plan].ready > 0);
}

static void judge_none(bool in_line)
{
    model.set_amid = false;
    for (struct ref *ref = model.ref; ref < model.ref + REFS; ref++) {
        if (!ref->room->attached)
            continue;
        assert_false(is_filed(ref) && ref->due <= model.now);
        if (in_line)
            assert_false(ref->place == HELD && ref->room->line[ref->plan].ready > 0);
    }
    if (in_line)
        assert_true(is_stuck(&all->late) && is_stuck(&all->past));
    if (model.now >= tw_wheel_now(all->wheel)) {
        assert_null(all->behind);
        assert_true(tw__redis_place_next_work(all) > model.now);
    }
}

struct ref *take(bool in_line, uint32_t budget, struct room **room)
{
    uint32_t left = budget;
    struct tw__redis_task *task = NULL;
    enum tw__redis_taken taken = tw__redis_place_take(
        all, model.now, in_line ? TW__REDIS_FROM_ALL : TW__REDIS_FROM_WHEELS, &left, &task);
    see_what_was_filed_again();
    see_what_was_moved_to_the_front();
    see_what_was_passed_over();
    if (taken == TW__REDIS_TAKEN_NONE)
        judge_none(in_line);
    else if (taken == TW__REDIS_TAKEN_MORE)
        assert_int_equal(left, 0);
    model.probe = NULL;
    if (taken == TW__REDIS_TAKEN_NONE || taken == TW__REDIS_TAKEN_MORE)
        return NULL;
    struct ref *ref = ref_of(task, room);
    assert_non_null(ref);
    assert_true(left < budget);
    judge(*room, ref, in_line, taken == TW__REDIS_TAKEN_PROBE);
    model.probe = taken == TW__REDIS_TAKEN_PROBE ? ref : NULL;
    model_leave(*room, ref);
    model.taken++;
    return ref;
}
