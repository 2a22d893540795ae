/* SPDX-License-Identifier: MIT
 *
 * A test for each call of wheel.h, and of private.h of the wheel.
 */
#include "tests/support/cmocka.h"
#include "tests/support/level.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <wheel/private.h>

static void a_timer_takes_32_bytes_and_the_presets_their_share(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_DEFAULT;
    if (sizeof(void *) == 8)
        assert_int_equal(sizeof(struct tw_timer), 32);
    assert_true(tw_wheel_size(&g) <= 256 * 1024);
    g = (struct tw_geometry)TW_GEOMETRY_SMALL;
    assert_true(tw_wheel_size(&g) <= 16 * 1024);
}

static void init_works_in_memory_of_any_alignment(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_SMALL;
    size_t size = tw_wheel_size(&g);
    for (size_t offset = 0; offset < 70; offset++) {
        char *memory = malloc(size + offset);
        struct tw_wheel *wheel;
        assert_int_equal(tw_wheel_init(&wheel, memory + offset, size, &g, 7), 0);
        struct tw_timer timer = {0};
        tw_wheel_add_in(wheel, &timer, 70000);
        assert_null(tw_wheel_check(wheel));
        assert_null(tw_wheel_poll(wheel, 70006));
        assert_ptr_equal(tw_wheel_poll(wheel, 70007), &timer);
        tw_wheel_fini(wheel);
        free(memory);
    }
}

static void init_refuses_too_little_memory_and_bad_geometry(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_SMALL;
    size_t size = tw_wheel_size(&g);
    char *memory = malloc(size);
    struct tw_wheel *wheel = NULL;
    assert_int_equal(tw_wheel_init(&wheel, memory, size - 1, &g, 0), TW_ESIZE);
    assert_null(wheel);
    g.levels = 0;
    assert_int_equal(tw_wheel_size(&g), 0);
    assert_int_equal(tw_wheel_init(&wheel, memory, size, &g, 0), TW_EGEOMETRY);
    assert_int_equal(tw_wheel_new(&wheel, &g, 0), TW_EGEOMETRY);
    assert_null(wheel);
    free(memory);
}

/* The linker sends heap.c's aligned_alloc here (--wrap). */
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
static bool no_memory;

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return no_memory ? NULL : __real_aligned_alloc(alignment, size);
}

static void new_says_when_there_is_no_memory_and_free_takes_null(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_DEFAULT;
    struct tw_wheel *wheel = NULL;
    no_memory = true;
    assert_int_equal(tw_wheel_new(&wheel, &g, 0), TW_ENOMEM);
    no_memory = false;
    assert_null(wheel);
    tw_wheel_free(NULL);
}

static void sums_saturate(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(NULL, 1000);
    struct tw_timer far = {0}, farther = {0};
    assert_int_equal(tw_wheel_add_in(wheel, &far, UINT64_MAX), 0);
    assert_int_equal(tw_timer_deadline(&far), UINT64_MAX);
    assert_int_equal(tw_wheel_add_in(wheel, &farther, UINT64_MAX - 1001), 0);
    assert_int_equal(tw_wheel_move_in(wheel, &far, UINT64_MAX - 5), 0);
    assert_int_equal(tw_timer_deadline(&far), UINT64_MAX);
    assert_null(tw_wheel_poll(wheel, UINT64_MAX - 2));
    assert_ptr_equal(tw_wheel_poll(wheel, UINT64_MAX - 1), &farther);
    assert_null(tw_wheel_poll(wheel, UINT64_MAX - 1));
    assert_ptr_equal(tw_wheel_poll(wheel, UINT64_MAX), &far);
    tw_wheel_free(wheel);
}

static void a_clock_that_goes_back_is_held(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 1000)
    {
        struct tw_timer timer = {0};
        assert_null(tw_wheel_poll(wheel, 2000));
        assert_null(tw_wheel_poll(wheel, 500));
        assert_int_equal(tw_wheel_now(wheel), 2000);
        tw_wheel_add_in(wheel, &timer, 10);
        assert_int_equal(tw_timer_deadline(&timer), 2010);
        assert_null(tw_wheel_poll(wheel, 0));
        assert_null(tw_wheel_poll(wheel, 2009));
        assert_ptr_equal(tw_wheel_poll(wheel, 2010), &timer);
    }
}

static void moving_files_what_is_not_pending(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer timer;
        tw_timer_init(&timer);
        assert_int_equal(tw_wheel_move_at(wheel, &timer, 30), 0);
        assert_true(tw_timer_pending(&timer));
        assert_int_equal(tw_wheel_count(wheel), 1);
        assert_ptr_equal(tw_wheel_poll(wheel, 30), &timer);
    }
}

static void moving_later_again_and_again_refiles_once(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    struct tw_timer timer = {0};
    tw_wheel_add_in(wheel, &timer, 30000);
    for (uint64_t now = 1; now < 29000; now++) {
        assert_null(tw_wheel_poll(wheel, now));
        tw_wheel_move_in(wheel, &timer, 30000);
    }
    assert_int_equal(tw_wheel_refiled(wheel), 0);
    assert_null(tw_wheel_poll(wheel, 30000));
    assert_int_equal(tw_wheel_refiled(wheel), 1);
    assert_null(tw_wheel_poll(wheel, 58998));
    assert_ptr_equal(tw_wheel_poll(wheel, 58999), &timer);
    tw_wheel_free(wheel);
}

static void moving_later_near_the_end_leaves_its_tick_no_work(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    struct tw_timer timer = {0};
    tw_wheel_add_in(wheel, &timer, 100);
    for (uint64_t now = 1; now < 1000; now++) {
        assert_null(tw_wheel_poll(wheel, now));
        tw_wheel_move_in(wheel, &timer, 100);
    }
    assert_null(tw_wheel_poll(wheel, 1098));
    assert_true(tw_wheel_refiled(wheel) <= 3); /* once, when a window moves over it, and not at each move */
    assert_ptr_equal(tw_wheel_poll(wheel, 1099), &timer);
    tw_wheel_free(wheel);
}

/* On a one-level wheel a moved timer waits until its old place comes up. Then it goes behind the timers that
 * were there. */
static void a_timer_pushed_back_takes_its_turn_when_its_old_place_comes_up(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_HASHED(64), 0);
    struct tw_timer first = {0}, pushed = {0}, there = {0};
    tw_wheel_add_at(wheel, &first, 10);
    tw_wheel_add_at(wheel, &pushed, 10);
    assert_ptr_equal(tw_wheel_poll(wheel, 10), &first);
    tw_wheel_move_at(wheel, &pushed, 20); /* the timer is due, and waits in the batch */
    tw_wheel_add_at(wheel, &there, 20);
    assert_null(tw_wheel_poll(wheel, 19));
    assert_ptr_equal(tw_wheel_poll(wheel, 20), &there);
    assert_ptr_equal(tw_wheel_poll(wheel, 20), &pushed);
    tw_wheel_free(wheel);
}

/* A move of a timer that is not pending files it behind the others too. */
static void timers_of_one_delay_fire_in_the_order_of_filing(void **state)
{
    (void)state;
    const uint64_t delay[] = {5, 400, 70000};
    for (int i = 0; i < 3; i++) {
        struct tw_wheel *wheel = wheel_of(NULL, 1000);
        struct tw_timer timers[3] = {0};
        assert_int_equal(tw_wheel_add_in(wheel, &timers[0], delay[i]), 0);
        assert_int_equal(tw_wheel_add_in(wheel, &timers[1], delay[i]), 0);
        assert_int_equal(tw_wheel_move_in(wheel, &timers[2], delay[i]), 0);
        assert_null(tw_wheel_poll(wheel, 999 + delay[i]));
        for (int k = 0; k < 3; k++)
            assert_ptr_equal(tw_wheel_poll(wheel, 1000 + delay[i]), &timers[k]);
        tw_wheel_free(wheel);
    }
}

static void a_timer_moved_earlier_goes_behind_those_filed_before(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer first = {0}, moved = {0}, last = {0};
        tw_wheel_add_at(wheel, &first, 40);
        tw_wheel_add_at(wheel, &moved, 4000);
        tw_wheel_move_at(wheel, &moved, 40);
        tw_wheel_add_at(wheel, &last, 40);
        assert_ptr_equal(tw_wheel_poll(wheel, 40), &first);
        assert_ptr_equal(tw_wheel_poll(wheel, 40), &moved);
        assert_ptr_equal(tw_wheel_poll(wheel, 40), &last);
    }
}

static void a_move_inside_its_slot_leaves_the_timer_where_it_is(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    struct tw_timer before = {0}, timer = {0}, after = {0};
    tw_wheel_add_at(wheel, &before, 512 * 20 + 300);
    tw_wheel_add_at(wheel, &timer, 512 * 20 + 300);
    tw_wheel_add_at(wheel, &after, 512 * 20 + 300);
    tw_wheel_move_at(wheel, &timer, 512 * 20 + 7); /* level 1 has slots of 512 */
    assert_ptr_equal(timer.link.prev, &before.link);
    assert_ptr_equal(timer.link.next, &after.link);
    assert_int_equal(tw_timer_deadline(&timer), 512 * 20 + 7);
    assert_ptr_equal(tw_wheel_poll(wheel, 512 * 20 + 299), &timer);
    assert_null(tw_wheel_poll(wheel, 512 * 20 + 299));
    tw_wheel_free(wheel);
}

static void handing_out_a_timer_costs_a_unit_of_the_budget(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer timers[10] = {0}, *timer;
        uint32_t budget = 4;
        for (int i = 0; i < 10; i++)
            tw_wheel_add_at(wheel, &timers[i], 5);
        assert_null(tw_wheel_poll(wheel, 4));
        while (tw_wheel_poll_budget(wheel, 5, &budget, &timer) == TW_POLL_DUE)
            ;
        assert_int_equal(budget, 0);
        assert_true(tw_wheel_count(wheel) >= 6);
        while (tw_wheel_drain(wheel) != NULL)
            ;
    }
}

static void moving_earlier_works_inside_a_slot_and_beyond(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer timer = {0};
        tw_wheel_add_at(wheel, &timer, 4999);
        tw_wheel_move_at(wheel, &timer, 4998);
        tw_wheel_move_at(wheel, &timer, 4998);
        assert_int_equal(tw_timer_deadline(&timer), 4998);
        tw_wheel_move_at(wheel, &timer, 4999);
        tw_wheel_move_at(wheel, &timer, 4997);
        tw_wheel_move_at(wheel, &timer, 3);
        assert_null(tw_wheel_poll(wheel, 2));
        assert_ptr_equal(tw_wheel_poll(wheel, 3), &timer);
    }
}

static void simple_refuses_what_lies_beyond_its_ring_and_changes_nothing(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_SIMPLE(60), 100);
    struct tw_timer timer = {0};
    assert_int_equal(tw_wheel_range(wheel), 60);
    assert_int_equal(tw_wheel_add_in(wheel, &timer, 61), TW_ERANGE);
    assert_int_equal(tw_wheel_move_in(wheel, &timer, 61), TW_ERANGE);
    assert_false(tw_timer_pending(&timer));
    assert_int_equal(tw_wheel_count(wheel), 0);
    assert_int_equal(tw_wheel_add_in(wheel, &timer, 60), 0);
    assert_int_equal(tw_wheel_move_in(wheel, &timer, 61), TW_ERANGE);
    assert_int_equal(tw_timer_deadline(&timer), 160);
    assert_null(tw_wheel_poll(wheel, 159));
    assert_ptr_equal(tw_wheel_poll(wheel, 160), &timer);
    tw_wheel_free(wheel);
}

static void hashed_keeps_far_timers_for_several_turns(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_HASHED(8), 0);
    struct tw_timer far = {0}, near = {0};
    tw_wheel_add_in(wheel, &far, 80);
    tw_wheel_add_in(wheel, &near, 8);
    for (uint64_t now = 1; now < 80; now++)
        assert_ptr_equal(tw_wheel_poll(wheel, now), now == 8 ? &near : NULL);
    assert_ptr_equal(tw_wheel_poll(wheel, 80), &far);
    tw_wheel_free(wheel);
}

static void a_jump_over_many_turns_costs_one_turn(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_HASHED(8), 0);
    struct tw_timer far = {0}, cancelled = {0}, pushed = {0};
    tw_wheel_add_at(wheel, &far, 1ull << 60);
    tw_wheel_add_at(wheel, &cancelled, 1ull << 50);
    tw_wheel_add_at(wheel, &pushed, 1ull << 40);
    tw_wheel_move_at(wheel, &pushed, (1ull << 60) + 1);
    tw_wheel_cancel(wheel, &cancelled);
    assert_null(tw_wheel_poll(wheel, (1ull << 60) - 1));
    assert_ptr_equal(tw_wheel_poll(wheel, 1ull << 60), &far);
    assert_ptr_equal(tw_wheel_poll(wheel, (1ull << 60) + 1), &pushed);
    assert_true(tw_wheel_refiled(wheel) < 100);
    tw_wheel_free(wheel);
}

static void a_sleeper_is_not_woken_for_turn_after_turn(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_SMALL, 0);
    struct tw_timer timer = {0};
    uint32_t wakes = 0;
    tw_wheel_add_at(wheel, &timer, 1ull << 62);
    for (; tw_timer_pending(&timer); wakes++)
        tw_wheel_poll(wheel, tw_wheel_next_bound(wheel));
    assert_int_equal(tw_wheel_now(wheel), 1ull << 62);
    assert_true(wakes < 10);
    tw_wheel_free(wheel);
}

/* A grow hook that gives `left` blocks and counts the blocks that are in use. */
struct lender {
    int left, out;
};

static void *lend(void *arg, void *old, size_t size)
{
    struct lender *lender = arg;
    if (old != NULL) {
        lender->out--;
        free(old);
        return NULL;
    }
    if (lender->left == 0)
        return NULL;
    lender->left--;
    lender->out++;
    return malloc(size);
}

static void growing_asks_the_hook_and_gives_back(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_GROWING(8);
    char *memory = malloc(tw_wheel_size(&g));
    struct tw_wheel *wheel;
    struct lender lender = {.left = 2};
    struct tw_timer near = {0}, far = {0};
    assert_int_equal(tw_wheel_init(&wheel, memory, tw_wheel_size(&g), &g, 0), 0);
    assert_int_equal(tw_wheel_add_in(wheel, &near, 3), 0);
    assert_int_equal(tw_wheel_add_in(wheel, &far, 100), TW_ENOMEM); /* no hook yet */
    assert_int_equal(tw_wheel_levels(wheel), 1);
    tw__wheel_on_grow(wheel, lend, &lender);
    assert_int_equal(tw_wheel_add_in(wheel, &far, 1000), TW_ENOMEM); /* two levels are not enough */
    assert_false(tw_timer_pending(&far));
    assert_int_equal(tw_wheel_levels(wheel), 1);
    assert_int_equal(lender.out, 0);
    lender.left = 2;
    assert_int_equal(tw_wheel_add_in(wheel, &far, 60), 0);
    assert_int_equal(tw_wheel_levels(wheel), 3);
    assert_int_equal(tw_wheel_move_in(wheel, &near, 1000), TW_ENOMEM);
    assert_int_equal(tw_timer_deadline(&near), 3);
    assert_null(tw_wheel_check(wheel));
    assert_null(tw_wheel_poll(wheel, 2));
    assert_ptr_equal(tw_wheel_poll(wheel, 59), &near);
    assert_ptr_equal(tw_wheel_poll(wheel, 60), &far);
    tw_wheel_fini(wheel);
    assert_int_equal(lender.out, 0);
    free(memory);
}

static void growing_reaches_the_end_of_time(void **state)
{
    (void)state;
    for (uint32_t slots = 2; slots < 20; slots++) {
        struct tw_wheel *wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_GROWING(slots), 0);
        struct tw_timer timer = {0}, near = {0};
        assert_int_equal(tw_wheel_add_in(wheel, &timer, UINT64_MAX), 0);
        assert_int_equal(tw_wheel_add_in(wheel, &near, 5), 0);
        assert_null(tw_wheel_check(wheel));
        assert_ptr_equal(tw_wheel_poll(wheel, UINT64_MAX - 1), &near);
        assert_null(tw_wheel_poll(wheel, UINT64_MAX - 1));
        assert_ptr_equal(tw_wheel_poll(wheel, UINT64_MAX), &timer);
        tw_wheel_free(wheel);
    }
}

static void a_geometry_of_64_levels_has_no_room_to_grow_and_needs_none(void **state)
{
    (void)state;
    struct tw_geometry g = {.levels = 64, .overflow = TW_OVERFLOW_GROW};
    for (uint32_t l = 0; l < 64; l++)
        g.level[l] = (struct tw_level){.slots = 2, .span = 1ull << l};
    struct tw_wheel *wheel = wheel_of(&g, 0);
    struct tw_timer timer = {0};
    assert_int_equal(tw_wheel_add_at(wheel, &timer, UINT64_MAX - 3), 0);
    assert_null(tw_wheel_poll(wheel, UINT64_MAX - 4));
    assert_ptr_equal(tw_wheel_poll(wheel, UINT64_MAX - 3), &timer);
    tw_wheel_free(wheel);
}

static void next_bound_is_never_after_next_exact_and_is_now_when_due(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer one = {0}, two = {0};
        assert_int_equal(tw_wheel_next_bound(wheel), TW_NEVER);
        assert_int_equal(tw_wheel_next_exact(wheel), TW_NEVER);
        tw_wheel_add_at(wheel, &one, 4000);
        tw_wheel_add_at(wheel, &two, 4000);
        for (uint64_t bound; (bound = tw_wheel_next_bound(wheel)) < 4000;) {
            assert_int_equal(tw_wheel_next_exact(wheel), 4000);
            assert_null(tw_wheel_poll(wheel, bound));
        }
        assert_ptr_equal(tw_wheel_poll(wheel, 4010), &one);
        assert_int_equal(tw_wheel_next_bound(wheel), 4010);
        assert_int_equal(tw_wheel_next_exact(wheel), 4000);
        assert_ptr_equal(tw_wheel_poll(wheel, 4010), &two);
        assert_int_equal(tw_wheel_next_bound(wheel), TW_NEVER);
    }
}

static void next_bound_is_now_while_a_budget_leaves_work(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_CLOCK, 0);
    struct tw_timer timers[50] = {0}, *timer;
    for (int i = 0; i < 50; i++)
        tw_wheel_add_at(wheel, &timers[i], 3600);
    uint32_t budget = 10;
    assert_int_equal(tw_wheel_poll_budget(wheel, 3600, &budget, &timer), TW_POLL_MORE);
    assert_int_equal(budget, 0);
    assert_int_equal(tw_wheel_next_bound(wheel), 3600);
    assert_int_equal(tw_wheel_next_exact(wheel), 3600);
    assert_null(tw_wheel_check(wheel));
    for (int i = 0; i < 50; i++)
        assert_ptr_equal(tw_wheel_poll(wheel, 3600), &timers[i]);
    tw_wheel_free(wheel);
}

static void next_exact_sees_timers_that_were_pushed_back_when_due(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_HASHED(64), 0);
    struct tw_timer timers[4] = {0};
    for (int i = 0; i < 4; i++)
        tw_wheel_add_at(wheel, &timers[i], 10);
    assert_ptr_equal(tw_wheel_poll(wheel, 10), &timers[0]);
    tw_wheel_move_at(wheel, &timers[1], 30);
    tw_wheel_move_at(wheel, &timers[2], 40);
    tw_wheel_move_at(wheel, &timers[3], 20);
    assert_int_equal(tw_wheel_next_exact(wheel), 20);
    tw_wheel_cancel(wheel, &timers[3]);
    assert_int_equal(tw_wheel_next_exact(wheel), 30);
    assert_null(tw_wheel_poll(wheel, 29));
    assert_ptr_equal(tw_wheel_poll(wheel, 40), &timers[1]);
    assert_int_equal(tw_wheel_next_exact(wheel), 40);
    tw_wheel_free(wheel);
}

/* A poll whose budget ended leaves a tick half done. If all timers are cancelled then, the wheel is empty and
 * has no work. */
static void next_bound_of_an_empty_wheel_is_never_although_a_budget_ended(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        for (uint64_t delay = 1; delay < 4096; delay += 1 + delay / 8) {
            struct tw_timer first = {0}, second = {0}, *fired;
            uint64_t due = tw_wheel_now(wheel) + delay;
            uint32_t budget = 1;
            assert_int_equal(tw_wheel_add_at(wheel, &first, due), 0);
            assert_int_equal(tw_wheel_add_at(wheel, &second, due), 0);
            tw_wheel_poll_budget(wheel, due, &budget, &fired);
            tw_wheel_cancel(wheel, &first);
            tw_wheel_cancel(wheel, &second);
            assert_int_equal(tw_wheel_count(wheel), 0);
            assert_int_equal(tw_wheel_next_bound(wheel), TW_NEVER);
            assert_null(tw_wheel_poll(wheel, due));
        }
    }
}

/* The budget ends at a slot that a cancel has emptied, before the wheel comes to the slots after it. A poll
 * with an earlier tick means the latest tick, and returns their timers. */
static void a_poll_with_an_earlier_tick_goes_on_where_a_budget_ended(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer first = {0}, second = {0}, *fired;
        uint64_t now = tw_wheel_now(wheel);
        uint32_t budget = 0;
        assert_int_equal(tw_wheel_add_at(wheel, &first, now + 2), 0);
        assert_int_equal(tw_wheel_add_at(wheel, &second, now + 3), 0);
        assert_null(tw_wheel_poll(wheel, now)); /* nothing to do before now + 2 */
        assert_true(tw_wheel_cancel(wheel, &first));
        assert_int_equal(tw_wheel_poll_budget(wheel, now + 3, &budget, &fired), TW_POLL_MORE);
        assert_ptr_equal(tw_wheel_poll(wheel, now + 1), &second);
        assert_null(tw_wheel_poll(wheel, now + 1));
    }
}

static void a_budget_of_0_moves_the_clock_and_takes_nothing_out(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer first = {0}, second = {0}, *timer = &first;
        uint32_t none = 0;
        assert_int_equal(tw_wheel_poll_budget(wheel, 100, &none, &timer), TW_POLL_IDLE);
        assert_null(timer);
        assert_int_equal(tw_wheel_now(wheel), 100);
        tw_wheel_add_in(wheel, &first, 5);
        assert_int_equal(tw_timer_deadline(&first), 105);
        assert_int_equal(tw_wheel_poll_budget(wheel, 4000, &none, &timer), TW_POLL_MORE);
        assert_null(timer);
        assert_int_equal(tw_wheel_now(wheel), 4000);
        assert_int_equal(tw_wheel_count(wheel), 1);
        tw_wheel_add_in(wheel, &second, 1);
        assert_int_equal(tw_timer_deadline(&second), 4001);
        assert_ptr_equal(tw_wheel_poll(wheel, 4001), &first);
        assert_ptr_equal(tw_wheel_poll(wheel, 4001), &second);
    }
}

static void never_is_also_a_deadline(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(NULL, 7);
    struct tw_timer last = {0};
    assert_int_equal(tw_wheel_add_at(wheel, &last, TW_NEVER), 0);
    assert_int_equal(tw_wheel_next_exact(wheel), TW_NEVER);
    assert_true(tw_wheel_next_bound(wheel) <= TW_NEVER);
    assert_int_equal(tw_wheel_count(wheel), 1);
    assert_null(tw_wheel_poll(wheel, TW_NEVER - 1));
    assert_int_equal(tw_wheel_next_bound(wheel), TW_NEVER);
    assert_ptr_equal(tw_wheel_poll(wheel, TW_NEVER), &last);
    tw_wheel_free(wheel);
}

struct visited {
    struct tw_timer timer;
    int calls;
};

static int count_in_object(void *arg, struct tw_timer *timer)
{
    (void)arg;
    TW_CONTAINER(timer, struct visited, timer)->calls++;
    return 0;
}

static void a_visit_may_change_the_objects_it_meets(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct visited objects[10] = {0};
        for (int i = 0; i < 10; i++)
            tw_wheel_add_in(wheel, &objects[i].timer, 1 + (uint64_t)i * 300);
        assert_int_equal(tw_wheel_visit(wheel, count_in_object, NULL), 0);
        for (int i = 0; i < 10; i++) {
            assert_int_equal(objects[i].calls, 1);
            tw_wheel_cancel(wheel, &objects[i].timer);
        }
    }
}

static void next_exact_sees_through_pushed_back_timers(void **state)
{
    (void)state;
    enum { ALL = 400 }; /* in a slot are more than the wheel passes over at its front */
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer timers[ALL] = {0};
        for (int i = 0; i < ALL; i++)
            tw_wheel_add_at(wheel, &timers[i], 10 + (uint64_t)i % 4 * 200);
        for (int i = 0; i < ALL - 1; i++)
            tw_wheel_move_at(wheel, &timers[i], 3600 + (uint64_t)i);
        assert_int_equal(tw_wheel_next_exact(wheel), 610);
        tw_wheel_move_at(wheel, &timers[ALL - 1], 4050);
        assert_int_equal(tw_wheel_next_exact(wheel), 3600);
        assert_true(tw_wheel_next_bound(wheel) <= 3600);
        assert_null(tw_wheel_poll(wheel, 3599));
        for (int i = 0; i < ALL; i++)
            assert_ptr_equal(tw_wheel_poll(wheel, 4050), &timers[i]);
    }
}

/* A list is out of order because of one timer. Pushing that timer back does not put the list in order: it may
 * still be due before a timer ahead of it. */
static void next_exact_sees_a_timer_that_was_pushed_back_out_of_order(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    const uint64_t slot = 40 * 65536;
    struct tw_timer near = {0}, first = {0}, second = {0}, pushed = {0}, last = {0};
    tw_wheel_add_at(wheel, &near, 1000);
    tw_wheel_add_at(wheel, &first, slot + 7000);
    tw_wheel_add_at(wheel, &second, slot + 10000);
    tw_wheel_add_at(wheel, &pushed, slot + 5000);
    tw_wheel_add_at(wheel, &last, slot + 12000);
    assert_int_equal(tw_wheel_next_exact(wheel), 1000);
    tw_wheel_move_at(wheel, &pushed, slot + 8000);
    tw_wheel_cancel(wheel, &near);
    assert_int_equal(tw_wheel_next_exact(wheel), slot + 7000);
    tw_wheel_cancel(wheel, &first);
    assert_int_equal(tw_wheel_next_exact(wheel), slot + 8000);
    assert_null(tw_wheel_check(wheel));
    tw_wheel_free(wheel);
}

static void a_far_timer_costs_at_most_one_wake_up_per_level(void **state)
{
    (void)state;
    for (int bits = 1; bits < 64; bits++) {
        struct tw_wheel *wheel = wheel_of(NULL, 12345);
        struct tw_timer timer = {0};
        tw_wheel_add_in(wheel, &timer, (1ull << bits) + 77);
        uint32_t wakes = 0;
        while (tw_timer_pending(&timer)) {
            tw_wheel_poll(wheel, tw_wheel_next_bound(wheel));
            wakes++;
        }
        assert_true(wakes <= tw_wheel_levels(wheel));
        assert_int_equal(tw_wheel_now(wheel), 12345 + (1ull << bits) + 77);
        tw_wheel_free(wheel);
    }
}

static void a_sleeper_is_woken_for_a_big_slot_in_chunks(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    struct tw_timer *timers = calloc(COUNT, sizeof *timers);
    for (int i = 0; i < COUNT; i++)
        tw_wheel_add_at(wheel, &timers[i], 200000);
    uint64_t worst = 0, fired = 0, wakes = 0;
    for (; fired == 0; wakes++) {
        uint64_t before = tw_wheel_refiled(wheel);
        fired = tw_wheel_poll(wheel, tw_wheel_next_bound(wheel)) != NULL;
        uint64_t refiled = tw_wheel_refiled(wheel) - before;
        worst = refiled > worst ? refiled : worst;
    }
    assert_true(worst <= 128);
    assert_true(wakes <=
                COUNT / 40 + COUNT / 64 + 20); /* one tick's share on level 1, chunks of 64 on level 2 */
    free(timers);
    tw_wheel_free(wheel);
}

static void empty_time_costs_nothing(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        assert_null(tw_wheel_poll(wheel, 40000000));
        assert_null(tw_wheel_poll(wheel, UINT64_MAX / 2));
        assert_int_equal(tw_wheel_refiled(wheel), 0);
    }
}

/* The firing sequence of a fixed load, polled in steps. Each call gets a budget; 0: no budget. */
static uint32_t sequence(const struct tw_geometry *g, uint32_t budget_each, uint32_t *order)
{
    enum { COUNT = 500 };
    struct tw_wheel *wheel = wheel_of(g, 0);
    struct tw_timer timers[COUNT] = {0}, *timer;
    uint32_t count = 0;
    for (uint64_t i = 0; i < COUNT; i++)
        tw_wheel_add_at(wheel, &timers[i], 1 + i * i * 2654435761u % 4900);
    for (uint64_t now = 0; now < 5200; now += 137) {
        if (budget_each == 0) {
            while ((timer = tw_wheel_poll(wheel, now)) != NULL)
                order[count++] = (uint32_t)(timer - timers);
            continue;
        }
        enum tw_poll polled;
        do {
            uint32_t budget = budget_each;
            polled = tw_wheel_poll_budget(wheel, now, &budget, &timer);
            if (polled == TW_POLL_DUE)
                order[count++] = (uint32_t)(timer - timers);
        } while (polled != TW_POLL_IDLE);
    }
    tw_wheel_free(wheel);
    return count;
}

static void any_budget_gives_the_same_firings(void **state)
{
    (void)state;
    struct tw_geometry shapes[SHAPES_MAX];
    uint32_t count = all_shapes(shapes), whole[500], cut[500];
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(sequence(&shapes[i], 0, whole), 500);
        for (uint32_t budget = 1; budget < 40; budget += 3) {
            assert_int_equal(sequence(&shapes[i], budget, cut), 500);
            assert_memory_equal(whole, cut, sizeof whole);
        }
    }
}

static void no_budget_does_no_work(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer timer = {0}, *due;
        uint32_t budget = 0;
        assert_int_equal(tw_wheel_poll_budget(wheel, 10, &budget, &due), TW_POLL_IDLE);
        tw_wheel_add_in(wheel, &timer, 5);
        assert_int_equal(tw_wheel_poll_budget(wheel, 20, &budget, &due), TW_POLL_MORE);
        assert_null(due);
        assert_int_equal(tw_wheel_poll_budget(wheel, 20, &budget, &due), TW_POLL_MORE);
        assert_ptr_equal(tw_wheel_poll(wheel, 20), &timer);
    }
}

/* Empties the wheel, because the timers go out of scope before the wheel does. */
static void empty(struct tw_wheel *wheel)
{
    while (tw_wheel_drain(wheel) != NULL)
        ;
}

static int count_until(void *arg, struct tw_timer *timer)
{
    int *left = arg;
    assert_true(tw_timer_pending(timer));
    return --*left == 0 ? 42 : 0;
}

static void visit_meets_every_pending_timer_and_stops_when_told(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer timers[100] = {0}, *timer;
        for (int i = 0; i < 100; i++)
            tw_wheel_add_at(wheel, &timers[i], 1 + (uint64_t)i * 31 % 4000);
        uint32_t budget = 45; /* leaves timers in the due list, being refiled, and on the rings */
        while (tw_wheel_poll_budget(wheel, 2000, &budget, &timer) == TW_POLL_DUE)
            ;
        int pending = (int)tw_wheel_count(wheel), left = -1;
        assert_int_equal(tw_wheel_visit(wheel, count_until, &left), 0);
        assert_int_equal(-1 - left, pending);
        for (int stop = 1; stop <= pending; stop++) {
            left = stop;
            assert_int_equal(tw_wheel_visit(wheel, count_until, &left), 42);
        }
        empty(wheel);
    }
}

struct seen {
    uint64_t until;
    int due, stop;
};

static int count_due(void *arg, struct tw_timer *timer)
{
    struct seen *seen = arg;
    assert_true(tw_timer_pending(timer));
    assert_true(tw_timer_deadline(timer) <= seen->until);
    return ++seen->due == seen->stop ? 42 : 0;
}

static void visit_until_meets_what_is_due_by_then_and_nothing_else(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer timers[100] = {0}, *timer;
        for (int i = 0; i < 100; i++)
            tw_wheel_add_at(wheel, &timers[i], 1 + (uint64_t)i * 31 % 4000);
        for (int i = 0; i < 100; i += 7)
            tw_wheel_move_at(wheel, &timers[i], 4000 + (uint64_t)i * 2);
        uint32_t budget = 45; /* leaves timers in the due list, being refiled, and on the rings */
        while (tw_wheel_poll_budget(wheel, 2000, &budget, &timer) == TW_POLL_DUE)
            ;
        for (uint64_t until = 0; until < 4300; until++) {
            struct seen seen = {.until = until};
            int due = 0;
            for (int i = 0; i < 100; i++)
                due += tw_timer_pending(&timers[i]) && tw_timer_deadline(&timers[i]) <= until;
            assert_int_equal(tw_wheel_visit_until(wheel, until, count_due, &seen), 0);
            assert_int_equal(seen.due, due);
            for (seen.stop = 1; seen.stop <= due; seen.stop += 13) {
                seen.due = 0;
                assert_int_equal(tw_wheel_visit_until(wheel, until, count_due, &seen), 42);
                assert_int_equal(seen.due, seen.stop);
            }
        }
        empty(wheel);
    }
}

static void visit_budget_looks_at_no_more_than_it_may(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer timers[100] = {0};
        for (int i = 0; i < 100; i++)
            tw_wheel_add_at(wheel, &timers[i], 1 + (uint64_t)i * 31 % 4000);
        for (uint64_t until = 0; until < 4300; until += 7) {
            struct seen all = {.until = until}, seen = {.until = until};
            uint32_t budget = 100, needed;
            assert_true(tw__wheel_visit_budget(wheel, until, &budget, count_due, &all));
            needed = 100 - budget;
            assert_true(needed >= (uint32_t)all.due);
            budget = needed;
            assert_true(tw__wheel_visit_budget(wheel, until, &budget, count_due, &seen));
            assert_int_equal(budget, 0);
            assert_int_equal(seen.due, all.due);
            for (uint32_t less = 0; less < needed; less += 13) {
                budget = less;
                seen.due = 0;
                assert_false(tw__wheel_visit_budget(wheel, until, &budget, count_due, &seen));
                assert_int_equal(budget, 0);
                assert_true((uint32_t)seen.due <= less);
            }
            seen = (struct seen){.until = until, .stop = 1};
            budget = 100;
            assert_int_equal(tw__wheel_visit_budget(wheel, until, &budget, count_due, &seen), all.due == 0);
        }
        empty(wheel);
    }
}

static int visited_until(struct tw_wheel *wheel, uint64_t until)
{
    struct seen seen = {.until = until};
    assert_int_equal(tw_wheel_visit_until(wheel, until, count_due, &seen), 0);
    return seen.due;
}

static void visit_until_reaches_the_end_of_time(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, UINT64_MAX - 3)
    {
        struct tw_timer last = {0}, before = {0};
        tw_wheel_add_at(wheel, &last, UINT64_MAX);
        tw_wheel_add_at(wheel, &before, UINT64_MAX - 1);
        assert_int_equal(visited_until(wheel, UINT64_MAX - 2), 0);
        assert_int_equal(visited_until(wheel, UINT64_MAX - 1), 1);
        assert_int_equal(visited_until(wheel, UINT64_MAX), 2);
        assert_ptr_equal(tw_wheel_poll(wheel, UINT64_MAX), &before);
        assert_ptr_equal(tw_wheel_poll(wheel, UINT64_MAX), &last);
        tw_wheel_add_at(wheel, &last, 0); /* waits for ever */
        assert_int_equal(visited_until(wheel, UINT64_MAX - 1), 0);
        assert_int_equal(visited_until(wheel, UINT64_MAX), 1);
        empty(wheel);
    }
}

/* Timers on a page that can be closed: code that reads a timer then gets a fault. */
enum { PAGE_TIMERS = 100, PAGE_SIZE = 4096 };

static struct tw_timer *open_page(void)
{
    void *page = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    return page;
}

static int visited_with_page_closed(struct tw_wheel *wheel, uint64_t until, struct tw_timer *page)
{
    assert_int_equal(mprotect(page, PAGE_SIZE, PROT_NONE), 0);
    int visited = visited_until(wheel, until);
    assert_int_equal(mprotect(page, PAGE_SIZE, PROT_READ | PROT_WRITE), 0);
    return visited;
}

static void visit_until_does_not_look_at_slots_that_start_later(void **state)
{
    (void)state;
    struct tw_timer *page = open_page();
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer near[2] = {0};
        tw_wheel_add_at(wheel, &near[0], 1);
        tw_wheel_add_at(wheel, &near[1], 2);
        bool turns = shapes_[shape_].overflow != TW_OVERFLOW_GROW && shapes_[shape_].levels < 10;
        for (int i = 0; i < PAGE_TIMERS; i++)
            tw_wheel_add_at(wheel, &page[i], turns ? 4 + (uint64_t)i % 3 : 4ull << i % 62);
        assert_int_equal(visited_with_page_closed(wheel, 0, page), 0);
        assert_int_equal(visited_with_page_closed(wheel, 1, page), 1);
        assert_int_equal(visited_with_page_closed(wheel, 2, page), 2);
        empty(wheel);
    }
    munmap(page, PAGE_SIZE);
}

static void visit_until_does_not_look_at_a_slot_being_refiled_that_starts_later(void **state)
{
    (void)state;
    struct tw_timer *page = open_page();
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    for (int i = 0; i < PAGE_TIMERS; i++)
        tw_wheel_add_at(wheel, &page[i], 5120);
    assert_null(tw_wheel_poll(wheel, 4700));
    assert_in_range(level_info(wheel, 1).draining, 1, PAGE_TIMERS - 1);
    assert_int_equal(visited_with_page_closed(wheel, 5119, page), 0);
    assert_int_equal(visited_until(wheel, 5120), PAGE_TIMERS);
    empty(wheel);
    tw_wheel_free(wheel);
    munmap(page, PAGE_SIZE);
}

static void a_timer_may_be_made_with_a_deadline(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_SMALL, 0);
    struct tw_timer timer;
    memset(&timer, 0xFF, sizeof timer);
    tw_timer_init_at(&timer, 77);
    assert_false(tw_timer_pending(&timer));
    assert_int_equal(tw_timer_deadline(&timer), 77);
    assert_int_equal(tw_wheel_add_at(wheel, &timer, 50), 0);
    assert_int_equal(tw_timer_deadline(&timer), 50);
    assert_ptr_equal(tw_wheel_poll(wheel, 50), &timer);
    tw_timer_init(&timer);
    assert_int_equal(tw_timer_deadline(&timer), 0);
    tw_wheel_free(wheel);
}

static void a_prefetch_changes_nothing(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_SMALL, 0);
    struct tw_timer timer = {.deadline = 0}, before;
    tw__timer_prefetch(&timer);
    assert_false(tw_timer_pending(&timer));
    assert_int_equal(tw_wheel_add_at(wheel, &timer, 50), 0);
    before = timer;
    tw__timer_prefetch(&timer);
    assert_memory_equal(&timer, &before, sizeof timer);
    assert_null(tw_wheel_check(wheel));
    assert_true(tw_wheel_cancel(wheel, &timer));
    tw_wheel_free(wheel);
}

/* Copies a timer to memory of its own, spoils the old place and calls tw_timer_relocated(). */
static void relocate(struct tw_timer **timer)
{
    struct tw_timer *copy = malloc(sizeof *copy), *old = *timer;
    *copy = *old;
    memset(old, 0xA5, sizeof *old);
    free(old);
    tw_timer_relocated(copy);
    *timer = copy;
}

/* Adds timers for one tick, each in memory of its own. */
static void add_all(struct tw_wheel *wheel, struct tw_timer **timers, int count, uint64_t deadline)
{
    for (int i = 0; i < count; i++) {
        timers[i] = calloc(1, sizeof *timers[i]);
        assert_int_equal(tw_wheel_add_at(wheel, timers[i], deadline), 0);
    }
}

static void fire_all(struct tw_wheel *wheel, struct tw_timer **timers, int count, uint64_t now)
{
    for (int i = 0; i < count; i++) {
        assert_ptr_equal(tw_wheel_poll(wheel, now), timers[i]);
        free(timers[i]);
    }
    assert_null(tw_wheel_poll(wheel, now));
}

static void a_timer_may_be_copied_on_every_level_first_between_or_last(void **state)
{
    (void)state;
    const struct tw_geometry shapes[] = {TW_GEOMETRY_DEFAULT, TW_GEOMETRY_SMALL, TW_GEOMETRY_CLOCK};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (uint32_t l = 0; l < shapes[s].levels; l++) {
            for (int which = 0; which < 4; which++) {
                struct tw_wheel *wheel = wheel_of(&shapes[s], 0);
                struct tw_timer *timers[3];
                int count = which == 3 ? 1 : 3; /* at the fourth time the timer is alone in its slot */
                uint64_t deadline = shapes[s].level[l].span * 2 + 5;
                add_all(wheel, timers, count, deadline);
                assert_int_equal(level_info(wheel, l).filed, count);
                relocate(&timers[which % 3]);
                assert_null(tw_wheel_check(wheel));
                assert_null(tw_wheel_poll(wheel, deadline - 1));
                fire_all(wheel, timers, count, deadline);
                tw_wheel_free(wheel);
            }
        }
    }
}

static void timers_may_be_copied_while_their_slot_is_refiled(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    struct tw_timer *timers[100];
    add_all(wheel, timers, 100, 5120);
    for (uint64_t now = 4600; now < 4740; now += 20) {
        assert_null(tw_wheel_poll(wheel, now));
        assert_int_equal(level_info(wheel, 1).draining > 0, now > 4608 && now < 4708);
        for (int i = 99; i >= 0; i--)
            relocate(&timers[i]);
        assert_null(tw_wheel_check(wheel));
    }
    fire_all(wheel, timers, 100, 5120);
    tw_wheel_free(wheel);
}

static void timers_that_are_due_may_be_copied_between_two_polls(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer *timers[5];
        add_all(wheel, timers, 5, 3);
        for (int next = 0; next < 5;
             next++) { /* four timers wait, and one at the end; relocating a fired timer does nothing */
            assert_ptr_equal(tw_wheel_poll(wheel, 3), timers[next]);
            for (int i = 0; i < 5; i++)
                relocate(&timers[i]);
            assert_int_equal(tw_timer_pending(timers[next]), false);
        }
        for (int i = 0; i < 5; i++)
            free(timers[i]);
    }
}

static void a_copied_timer_can_be_cancelled_and_moved(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer *timers[3];
        add_all(wheel, timers, 3, 900);
        for (int i = 0; i < 3; i++)
            relocate(&timers[i]);
        assert_true(tw_wheel_cancel(wheel, timers[1]));
        assert_int_equal(tw_wheel_move_at(wheel, timers[0], 800), 0);
        assert_int_equal(tw_wheel_move_at(wheel, timers[2], 1000), 0);
        relocate(&timers[2]); /* pushed back, and still in its old place */
        assert_null(tw_wheel_check(wheel));
        assert_ptr_equal(tw_wheel_poll(wheel, 999), timers[0]);
        assert_null(tw_wheel_poll(wheel, 999));
        assert_ptr_equal(tw_wheel_poll(wheel, 1000), timers[2]);
        for (int i = 0; i < 3; i++)
            free(timers[i]);
    }
}

static void timers_may_be_copied_at_any_time(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer *timers[100], *timer;
        for (int i = 0; i < 100; i++) {
            timers[i] = calloc(1, sizeof *timers[i]);
            tw_wheel_add_at(wheel, timers[i], 1 + (uint64_t)i * 31 % 4000 / 9);
        }
        for (uint64_t now = 0; tw_wheel_count(wheel) > 0; now += 17) {
            uint32_t budget = 5;
            while (tw_wheel_poll_budget(wheel, now, &budget, &timer) == TW_POLL_DUE)
                assert_true(tw_timer_deadline(timer) <= now);
            for (int i = 0; i < 100; i++) {
                relocate(&timers[i]);
                assert_null(tw_wheel_check(wheel));
            }
        }
        for (int i = 0; i < 100; i++)
            free(timers[i]);
    }
}

static void levels_tell_where_the_timers_are(void **state)
{
    (void)state;
    FOR_ALL_SHAPES(wheel, 0)
    {
        struct tw_timer timers[100] = {0};
        for (int i = 0; i < 100; i++)
            tw_wheel_add_at(wheel, &timers[i], 3900 + (uint64_t)i % 3);
        for (uint64_t now = 0; now < 3800; now += 250) {
            assert_null(tw_wheel_poll(wheel, now));
            uint64_t found = 0;
            for (uint32_t l = 0; l < tw_wheel_levels(wheel); l++) {
                struct tw_level_info info = level_info(wheel, l);
                uint64_t in_slots = 0, occupied = 0;
                for (uint32_t s = 0; s < info.slots; s++) {
                    in_slots += tw_wheel_slot_count(wheel, l, s);
                    occupied += tw_wheel_slot_count(wheel, l, s) > 0;
                }
                assert_int_equal(in_slots, info.filed);
                assert_int_equal(occupied, info.occupied);
                assert_int_equal(info.current, now / info.span % info.slots);
                found += info.filed + info.draining;
            }
            assert_int_equal(found, 100);
        }
        empty(wheel);
    }
}

static void append(void *arg, const char *text, size_t length)
{
    strncat(arg, text, length);
}

static void dump_shows_clock_counts_and_levels(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_CLOCK, 0);
    struct tw_timer timers[3] = {0};
    char text[4096] = "";
    tw_wheel_poll(wheel, 61);
    for (uint64_t i = 0; i < 3; i++)
        tw_wheel_add_in(wheel, &timers[i], 5000);
    tw_wheel_dump(wheel, append, text);
    assert_non_null(strstr(text, "wheel at tick 61: 3 timers, 0 of them due"));
    assert_non_null(strstr(text, "level 1: 60 slots of 60 ticks, at slot 1; 0 timers in 0 slots"));
    assert_non_null(
        strstr(text, "level 2: 24 slots of 3600 ticks, at slot 0; 3 timers in 1 slots, 0 being refiled"));
    tw_wheel_free(wheel);
}

static void every_error_has_a_text(void **state)
{
    (void)state;
    assert_string_equal(tw_strerror(0), "no error");
    assert_string_equal(tw_strerror(1), "unknown error");
    assert_string_equal(tw_strerror(-1000), "unknown error");
#define HAS_TEXT(name, value, text) assert_string_equal(tw_strerror(name), text);
    TW_ERROR_TABLE(HAS_TEXT)
#undef HAS_TEXT
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_takes_32_bytes_and_the_presets_their_share),
        cmocka_unit_test(init_works_in_memory_of_any_alignment),
        cmocka_unit_test(init_refuses_too_little_memory_and_bad_geometry),
        cmocka_unit_test(new_says_when_there_is_no_memory_and_free_takes_null),
        cmocka_unit_test(sums_saturate),
        cmocka_unit_test(a_clock_that_goes_back_is_held),
        cmocka_unit_test(moving_files_what_is_not_pending),
        cmocka_unit_test(moving_later_near_the_end_leaves_its_tick_no_work),
        cmocka_unit_test(a_timer_pushed_back_takes_its_turn_when_its_old_place_comes_up),
        cmocka_unit_test(timers_of_one_delay_fire_in_the_order_of_filing),
        cmocka_unit_test(a_timer_moved_earlier_goes_behind_those_filed_before),
        cmocka_unit_test(a_move_inside_its_slot_leaves_the_timer_where_it_is),
        cmocka_unit_test(handing_out_a_timer_costs_a_unit_of_the_budget),
        cmocka_unit_test(moving_later_again_and_again_refiles_once),
        cmocka_unit_test(moving_earlier_works_inside_a_slot_and_beyond),
        cmocka_unit_test(simple_refuses_what_lies_beyond_its_ring_and_changes_nothing),
        cmocka_unit_test(hashed_keeps_far_timers_for_several_turns),
        cmocka_unit_test(a_jump_over_many_turns_costs_one_turn),
        cmocka_unit_test(a_sleeper_is_not_woken_for_turn_after_turn),
        cmocka_unit_test(growing_asks_the_hook_and_gives_back),
        cmocka_unit_test(growing_reaches_the_end_of_time),
        cmocka_unit_test(a_geometry_of_64_levels_has_no_room_to_grow_and_needs_none),
        cmocka_unit_test(next_bound_is_never_after_next_exact_and_is_now_when_due),
        cmocka_unit_test(next_bound_is_now_while_a_budget_leaves_work),
        cmocka_unit_test(next_exact_sees_timers_that_were_pushed_back_when_due),
        cmocka_unit_test(next_bound_of_an_empty_wheel_is_never_although_a_budget_ended),
        cmocka_unit_test(a_poll_with_an_earlier_tick_goes_on_where_a_budget_ended),
        cmocka_unit_test(a_budget_of_0_moves_the_clock_and_takes_nothing_out),
        cmocka_unit_test(never_is_also_a_deadline),
        cmocka_unit_test(a_visit_may_change_the_objects_it_meets),
        cmocka_unit_test(next_exact_sees_through_pushed_back_timers),
        cmocka_unit_test(next_exact_sees_a_timer_that_was_pushed_back_out_of_order),
        cmocka_unit_test(a_far_timer_costs_at_most_one_wake_up_per_level),
        cmocka_unit_test(a_sleeper_is_woken_for_a_big_slot_in_chunks),
        cmocka_unit_test(empty_time_costs_nothing),
        cmocka_unit_test(any_budget_gives_the_same_firings),
        cmocka_unit_test(no_budget_does_no_work),
        cmocka_unit_test(visit_meets_every_pending_timer_and_stops_when_told),
        cmocka_unit_test(visit_until_meets_what_is_due_by_then_and_nothing_else),
        cmocka_unit_test(visit_budget_looks_at_no_more_than_it_may),
        cmocka_unit_test(visit_until_reaches_the_end_of_time),
        cmocka_unit_test(visit_until_does_not_look_at_slots_that_start_later),
        cmocka_unit_test(visit_until_does_not_look_at_a_slot_being_refiled_that_starts_later),
        cmocka_unit_test(a_timer_may_be_made_with_a_deadline),
        cmocka_unit_test(a_prefetch_changes_nothing),
        cmocka_unit_test(a_timer_may_be_copied_on_every_level_first_between_or_last),
        cmocka_unit_test(timers_may_be_copied_while_their_slot_is_refiled),
        cmocka_unit_test(timers_that_are_due_may_be_copied_between_two_polls),
        cmocka_unit_test(a_copied_timer_can_be_cancelled_and_moved),
        cmocka_unit_test(timers_may_be_copied_at_any_time),
        cmocka_unit_test(levels_tell_where_the_timers_are),
        cmocka_unit_test(dump_shows_clock_counts_and_levels),
        cmocka_unit_test(every_error_has_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
