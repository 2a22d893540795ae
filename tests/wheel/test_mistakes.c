/* SPDX-License-Identifier: MIT
 *
 * Mistakes of the caller: each "Requires" of wheel.h that an assertion can see ends the program. The wheel is
 * compiled with TW_DEBUG 2 here. docs/guide.md names the mistakes that no assertion can see, and why.
 */
#include "tests/support/cmocka.h"

#include "tests/support/dies.h"
#include "tests/support/level.h"
#include <wheel/private.h>

static struct tw_wheel *wheel, *other;
static struct tw_timer timer;

static int setup(void **state)
{
    (void)state;
    wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_SMALL, 0);
    other = wheel_of(NULL, 0);
    tw_timer_init(&timer);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tw_wheel_free(wheel);
    tw_wheel_free(other);
    return 0;
}

/* ---- timers that are pending ----------------------------------------------------------------------------- */

static void a_pending_timer_cannot_be_added(void **state)
{
    (void)state;
    tw_wheel_add_in(wheel, &timer, 5);
    assert_dies(tw_wheel_add_at(wheel, &timer, 7), "pending(timer)");
    assert_dies(tw_wheel_add_in(wheel, &timer, 7), "pending(timer)");
    assert_dies(tw_wheel_add_now(wheel, &timer), "pending(timer)");
}

/* The timer is on one of several levels, or filed for now. */
static void another_wheels_timer_cannot_be_moved_or_cancelled(void **state)
{
    static const uint64_t deadlines[] = {1, 70, 600, 40000, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof deadlines / sizeof *deadlines; i++) {
        tw_wheel_add_at(other, &timer, deadlines[i]);
        assert_dies(tw_wheel_cancel(wheel, &timer), "tw__wheel_has(w, timer)");
        assert_dies(tw_wheel_move_at(wheel, &timer, 7), "tw__wheel_has(w, timer)");
        assert_dies(tw_wheel_move_in(wheel, &timer, 7), "tw__wheel_has(w, timer)");
        assert_int_equal(tw_wheel_move_at(other, &timer, 9), 0);
        assert_true(tw_wheel_cancel(other, &timer));
    }
    tw_wheel_add_now(other, &timer);
    assert_dies(tw_wheel_cancel(wheel, &timer), "tw__wheel_has(w, timer)");
    assert_true(tw_wheel_cancel(other, &timer));
}

static void a_timer_that_is_not_pending_belongs_to_no_wheel(void **state)
{
    (void)state;
    assert_false(tw_wheel_cancel(wheel, &timer));
    assert_int_equal(tw_wheel_move_at(wheel, &timer, 7), 0);
    assert_ptr_equal(tw_wheel_poll(wheel, 7), &timer);
    assert_int_equal(tw_wheel_move_at(other, &timer, 7), 0);
    assert_ptr_equal(tw_wheel_drain(other), &timer);
}

/* The caller copies two timers and calls tw_timer_relocated() for neither before the next call: the wheel's
 * links lead to the old places. */
static void the_wheel_has_to_be_told_of_a_copied_timer(void **state)
{
    struct tw_timer old[2] = {0}, copied[2];
    (void)state;
    tw_wheel_add_at(wheel, &old[0], 5);
    tw_wheel_add_at(wheel, &old[1], 5);
    for (int i = 0; i < 2; i++) {
        copied[i] = old[i];
        memset(&old[i], 0, sizeof old[i]);
    }
    assert_dies(tw_wheel_add_at(wheel, &timer, 9), "tw_wheel_check(w)");
    old[0] = copied[0];
    old[1] = copied[1];
    while (tw_wheel_drain(wheel) != NULL)
        ;
}

/* ---- the end of a wheel ---------------------------------------------------------------------------------- */

static void a_wheel_ends_the_way_it_was_made(void **state)
{
    static char memory[32768];
    struct tw_geometry geometry = TW_GEOMETRY_SMALL;
    struct tw_wheel *own;
    (void)state;
    assert_dies(tw_wheel_fini(wheel), "!w->on_heap");
    assert_int_equal(tw_wheel_init(&own, memory, sizeof memory, &geometry, 0), 0);
    assert_dies(tw_wheel_free(own), "wheel->on_heap");
    tw_wheel_fini(own);
}

/* ---- inside a visit -------------------------------------------------------------------------------------- */

enum change { ADD, ADD_NOW, MOVE, CANCEL, POLL, POLL_BUDGET, EXACT, DRAIN, ON_GROW, FREE, CHANGES };

static void change_it(enum change change)
{
    static struct tw_timer fresh;
    struct tw_timer *due;
    uint32_t budget = 1;
    switch (change) {
    case ADD:
        tw_wheel_add_in(wheel, &fresh, 1);
        break;
    case ADD_NOW:
        tw_wheel_add_now(wheel, &fresh);
        break;
    case MOVE:
        tw_wheel_move_in(wheel, &timer, 1);
        break;
    case CANCEL:
        tw_wheel_cancel(wheel, &timer);
        break;
    case POLL:
        tw_wheel_poll(wheel, 1);
        break;
    case POLL_BUDGET:
        tw_wheel_poll_budget(wheel, 1, &budget, &due);
        break;
    case EXACT:
        tw_wheel_next_exact(wheel);
        break;
    case DRAIN:
        tw_wheel_drain(wheel);
        break;
    case ON_GROW:
        tw__wheel_on_grow(wheel, NULL, NULL);
        break;
    default:
        tw_wheel_free(wheel);
    }
}

static int visit_and_change(void *arg, struct tw_timer *visited)
{
    (void)visited;
    change_it(*(enum change *)arg);
    return 0;
}

static void a_visit_must_not_change_the_wheel(void **state)
{
    (void)state;
    tw_wheel_add_in(wheel, &timer, 5);
    for (enum change change = 0; change < CHANGES; change++) {
        uint32_t budget = 10;
        assert_dies(tw_wheel_visit(wheel, visit_and_change, &change), "w->visiting == 0");
        assert_dies(tw_wheel_visit_until(wheel, 5, visit_and_change, &change), "w->visiting == 0");
        assert_dies(tw__wheel_visit_budget(wheel, 5, &budget, visit_and_change, &change), "w->visiting == 0");
    }
}

/* Looks at this wheel and changes another wheel. */
static int visit_and_look(void *arg, struct tw_timer *visited)
{
    uint64_t *seen = arg;
    assert_int_equal(tw_wheel_next_bound(wheel), 5);
    assert_null(tw_wheel_check(wheel));
    struct tw_timer elsewhere = {0};
    tw_wheel_add_in(other, &elsewhere, tw_timer_deadline(visited));
    tw_wheel_cancel(other, &elsewhere);
    if (++*seen == 1)
        tw_wheel_visit(wheel, visit_and_look, seen);
    return 1;
}

static void a_visit_may_look_at_the_wheel_and_visit_it_again(void **state)
{
    uint64_t seen = 0;
    (void)state;
    tw_wheel_add_in(wheel, &timer, 5);
    assert_int_equal(tw_wheel_visit(wheel, visit_and_look, &seen), 1);
    assert_int_equal(seen, 2);
    assert_true(tw_wheel_cancel(wheel, &timer)); /* the visits are over, though each was ended early */
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

static void a_level_and_a_slot_have_to_be_there(void **state)
{
    uint32_t levels = tw_wheel_levels(wheel);
    (void)state;
    assert_dies(level_info(wheel, levels), "level < w->levels");
    assert_dies(tw_wheel_slot_count(wheel, levels, 0), "level < w->levels");
    assert_dies(tw_wheel_slot_count(wheel, 0, level_info(wheel, 0).slots), "slot < w->ring[level].count");
}

static int visit_nothing(void *arg, struct tw_timer *visited)
{
    (void)arg;
    (void)visited;
    return 0;
}

static void emit_nothing(void *arg, const char *text, size_t length)
{
    (void)arg;
    (void)text;
    (void)length;
}

static void null_is_no_wheel(void **state)
{
    struct tw_timer *due;
    uint32_t budget = 1;
    (void)state;
    assert_dies(tw_wheel_fini(NULL), "w != ");
    assert_dies(tw__wheel_on_grow(NULL, NULL, NULL), "w != ");
    assert_dies(tw_wheel_add_at(NULL, &timer, 1), "w != ");
    assert_dies(tw_wheel_add_in(NULL, &timer, 1), "w != ");
    assert_dies(tw_wheel_add_now(NULL, &timer), "w != ");
    assert_dies(tw_wheel_move_at(NULL, &timer, 1), "w != ");
    assert_dies(tw_wheel_move_in(NULL, &timer, 1), "w != ");
    assert_dies(tw_wheel_cancel(NULL, &timer), "w != ");
    assert_dies(tw_wheel_poll(NULL, 1), "w != ");
    assert_dies(tw_wheel_poll_budget(NULL, 1, &budget, &due), "w != ");
    assert_dies(tw_wheel_next_bound(NULL), "w != ");
    assert_dies(tw_wheel_next_exact(NULL), "w != ");
    assert_dies(tw_wheel_drain(NULL), "w != ");
}

static void null_is_no_wheel_to_look_at(void **state)
{
    uint32_t budget = 1;
    (void)state;
    assert_dies(tw_wheel_count(NULL), "w != ");
    assert_dies(tw_wheel_now(NULL), "w != ");
    assert_dies(tw_wheel_range(NULL), "w != ");
    assert_dies(tw_wheel_refiled(NULL), "w != ");
    assert_dies(tw_wheel_visit(NULL, visit_nothing, NULL), "tour->wheel != ");
    assert_dies(tw_wheel_visit_until(NULL, 1, visit_nothing, NULL), "tour->wheel != ");
    assert_dies(tw__wheel_visit_budget(NULL, 1, &budget, visit_nothing, NULL), "tour->wheel != ");
    assert_dies(tw_wheel_levels(NULL), "w != ");
    assert_dies(level_info(NULL, 0), "w != ");
    assert_dies(tw_wheel_level(wheel, 0, NULL, 0), "info != ");
    assert_dies(tw_wheel_slot_count(NULL, 0, 0), "w != ");
    assert_dies(tw_wheel_check(NULL), "w != ");
    assert_dies(tw_wheel_dump(NULL, emit_nothing, NULL), "w != ");
}

static void null_is_no_timer_and_no_answer(void **state)
{
    struct tw_timer *due;
    uint32_t budget = 1;
    (void)state;
    assert_dies(tw_wheel_add_at(wheel, NULL, 1), "timer != ");
    assert_dies(tw_wheel_add_in(wheel, NULL, 1), "timer != ");
    assert_dies(tw_wheel_add_now(wheel, NULL), "timer != ");
    assert_dies(tw_wheel_move_at(wheel, NULL, 1), "timer != ");
    assert_dies(tw_wheel_move_in(wheel, NULL, 1), "timer != ");
    assert_dies(tw_wheel_cancel(wheel, NULL), "timer != ");
    assert_dies(tw_wheel_poll_budget(wheel, 1, NULL, &due), "budget != ");
    assert_dies(tw_wheel_poll_budget(wheel, 1, &budget, NULL), "timer != ");
    assert_dies(tw_wheel_visit(wheel, NULL, NULL), "tour->visit != ");
    assert_dies(tw_wheel_visit_until(wheel, 1, NULL, NULL), "tour->visit != ");
    assert_dies(tw__wheel_visit_budget(wheel, 1, NULL, visit_nothing, NULL), "budget != ");
    assert_dies(tw_wheel_dump(wheel, NULL, NULL), "emit != ");
}

static void null_is_no_wheel_and_no_memory(void **state)
{
    static char memory[32768];
    struct tw_geometry geometry = TW_GEOMETRY_SMALL;
    struct tw_wheel *made;
    (void)state;
    assert_dies(tw_geometry_check(&geometry, NULL, 9), "message != ");
    assert_dies(tw_wheel_init(NULL, memory, sizeof memory, &geometry, 0), "wheel != ");
    assert_dies(tw_wheel_init(&made, NULL, sizeof memory, &geometry, 0), "memory != ");
    assert_dies(tw_wheel_new(NULL, &geometry, 0), "wheel != ");
}

/* A bug: the checker asked for the tick of each marked slot, also while no event is remembered. The slot that
 * the cancel has emptied is behind by then, so its next turn is after the end of time. */
static void a_check_near_the_end_of_time_makes_no_mistake(void **state)
{
    struct tw_wheel *last = wheel_of(&(struct tw_geometry)TW_GEOMETRY_SMALL, UINT64_MAX - 3688);
    struct tw_timer *due;
    uint32_t budget = 0;
    (void)state;
    assert_int_equal(tw_wheel_add_at(last, &timer, UINT64_MAX - 902), 0);
    assert_null(tw_wheel_poll(last, UINT64_MAX - 2910));
    assert_true(tw_wheel_cancel(last, &timer));
    assert_int_equal(tw_wheel_poll_budget(last, UINT64_MAX - 1197, &budget, &due), TW_POLL_MORE);
    assert_null(tw_wheel_check(last));
    tw_wheel_free(last);
}

#define ON_WHEELS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_WHEELS(a_pending_timer_cannot_be_added),
        ON_WHEELS(another_wheels_timer_cannot_be_moved_or_cancelled),
        ON_WHEELS(a_timer_that_is_not_pending_belongs_to_no_wheel),
        ON_WHEELS(the_wheel_has_to_be_told_of_a_copied_timer),
        ON_WHEELS(a_wheel_ends_the_way_it_was_made),
        ON_WHEELS(a_visit_must_not_change_the_wheel),
        ON_WHEELS(a_visit_may_look_at_the_wheel_and_visit_it_again),
        ON_WHEELS(a_level_and_a_slot_have_to_be_there),
        ON_WHEELS(null_is_no_wheel),
        ON_WHEELS(null_is_no_wheel_to_look_at),
        ON_WHEELS(null_is_no_timer_and_no_answer),
        ON_WHEELS(null_is_no_wheel_and_no_memory),
        ON_WHEELS(a_check_near_the_end_of_time_makes_no_mistake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
