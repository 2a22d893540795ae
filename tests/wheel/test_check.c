/* SPDX-License-Identifier: MIT
 *
 * A checker that never complains proves nothing. So each invariant is broken on purpose, and the checker must
 * name it.
 */
#include "src/wheel/internal.h"
#include "tests/support/cmocka.h"

enum { BIG = 640, DUE = BIG, MIDDLE = BIG + 10, LAST = BIG + 39, COUNT = BIG + 40 };
static struct tw_timer timers[COUNT];

/* A wheel with timers on three levels and in the due list, while one slot is being refiled. */
static struct tw_wheel *busy_wheel(void)
{
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    memset(timers, 0, sizeof timers);
    for (uint64_t i = 0; i < COUNT; i++)
        tw_wheel_add_at(wheel, &timers[i], i < BIG ? 1500 + i % 2 : (i - BIG + 60) * 1000);
    for (int i = DUE; i < DUE + 2; i++) /* leaves the second timer in the due list */
        tw_wheel_move_at(wheel, &timers[i], 800);
    assert_ptr_equal(tw_wheel_poll(wheel, 800), &timers[DUE]);
    assert_null(tw_wheel_check(wheel));
    assert_true(wheel->active != 0);
    return wheel;
}

static void assert_named(const struct tw_wheel *wheel, const char *number)
{
    const char *broken = tw_wheel_check(wheel);
    assert_non_null(broken);
    assert_memory_equal(broken, number, strlen(number));
}

/* Asserts that the checker names this invariant, and frees the wheel. */
static void expect_broken(struct tw_wheel *wheel, const char *number)
{
    assert_named(wheel, number);
    tw_wheel_free(wheel);
}

static struct tw__wheel_slot *slot_of(struct tw_wheel *wheel, const struct tw_timer *timer)
{
    return tw__wheel_slot_for(&wheel->ring[tw__wheel_filed_on(timer)], timer->deadline);
}

static void w1_broken_links_are_named(void **state)
{
    (void)state;
    struct tw_wheel *wheel = busy_wheel();
    timers[LAST].link.prev = &timers[3].link;
    expect_broken(wheel, "W1");
    wheel = busy_wheel();
    timers[LAST].link.next = NULL;
    expect_broken(wheel, "W1");
    wheel = busy_wheel();
    wheel->due.link.prev = &timers[3].link;
    expect_broken(wheel, "W1");
    wheel = busy_wheel();
    wheel->ring[1].drain.link.prev = &timers[LAST].link;
    expect_broken(wheel, "W1");
    wheel = busy_wheel();
    tw__wheel_slot_at(&wheel->ring[5], 1)->list.link.prev = &timers[LAST].link; /* an empty slot */
    expect_broken(wheel, "W1");
}

static void w2_wrong_bitmaps_are_named(void **state)
{
    (void)state;
    struct tw_wheel *wheel = busy_wheel();
    wheel->ring[3].bits[1] ^= 16;
    expect_broken(wheel, "W2");
    wheel = busy_wheel();
    wheel->ring[0].sums[0] ^= 1ull << 13;
    expect_broken(wheel, "W2");
    wheel = busy_wheel();
    wheel->ring[5].top ^= 1;
    expect_broken(wheel, "W2");
    wheel = busy_wheel();
    wheel->occupied ^= 1 << 4;
    expect_broken(wheel, "W2");
    wheel = busy_wheel();
    slot_of(wheel, &timers[LAST])->list.filed = 0;
    expect_broken(wheel, "W2");
    wheel = busy_wheel();
    tw__wheel_unmark(wheel, slot_of(wheel, &timers[LAST]));
    expect_broken(wheel, "W2");
}

/* The mark of a slot that a cancel has emptied stays until a search comes by, and the checker allows that. */
static void an_emptied_slot_keeps_its_mark_until_a_search(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    memset(timers, 0, sizeof timers);
    tw_wheel_add_at(wheel, &timers[0], 5);
    tw_wheel_add_at(wheel, &timers[1], 700);
    tw_wheel_add_at(wheel, &timers[2], 9000);
    struct tw__wheel_slot *first = slot_of(wheel, &timers[0]), *far = slot_of(wheel, &timers[2]);
    tw_wheel_cancel(wheel, &timers[0]);
    tw_wheel_cancel(wheel, &timers[2]);
    assert_true(tw__wheel_marked(first) && tw__wheel_marked(far));
    assert_null(tw_wheel_check(wheel));
    assert_int_equal(tw_wheel_next_bound(wheel), 700);
    assert_false(tw__wheel_marked(first) || tw__wheel_marked(far));
    assert_null(tw_wheel_check(wheel));
    tw_wheel_free(wheel);
}

static void w3_a_timer_in_another_slot_is_named(void **state)
{
    (void)state;
    struct tw_wheel *wheel = busy_wheel();
    timers[LAST].deadline += 600;
    expect_broken(wheel, "W3");
    wheel = busy_wheel();
    timers[LAST].hint += 1;
    expect_broken(wheel, "W3");
}

static void w4_a_timer_outside_its_window_is_named(void **state)
{
    (void)state;
    struct tw_wheel *wheel = busy_wheel();
    timers[LAST].deadline += 256ull * 512; /* the same place in the ring, a turn later */
    expect_broken(wheel, "W4");
    wheel = busy_wheel();
    timers[MIDDLE].deadline -= 256ull * 512 - 200ull * 512; /* in a slot that is made to have passed */
    wheel->ring[1].started = 200;
    expect_broken(wheel, "W4");
}

static void w5_a_timer_on_a_passed_tick_is_named(void **state)
{
    (void)state;
    struct tw_wheel *wheel = busy_wheel();
    tw_wheel_add_in(wheel, &timers[DUE], 2);
    wheel->cur = wheel->now = wheel->gate = 810;
    expect_broken(wheel, "W5");
}

static void w6_a_wrong_refiling_is_named(void **state)
{
    (void)state;
    struct tw_wheel *wheel = busy_wheel();
    wheel->active = 0;
    expect_broken(wheel, "W6");
    wheel = busy_wheel();
    wheel->ring[1].draining++;
    expect_broken(wheel, "W6");
}

static void w7_a_wrong_count_is_named(void **state)
{
    (void)state;
    struct tw_wheel *wheel = busy_wheel();
    wheel->count++;
    expect_broken(wheel, "W7");
}

static void w8_a_wrong_event_is_named(void **state)
{
    (void)state;
    struct tw_wheel *wheel = busy_wheel();
    while (tw_wheel_poll(wheel, 800) != NULL)
        ;
    tw_wheel_next_bound(wheel);
    assert_null(tw_wheel_check(wheel));
    wheel->event++;
    expect_broken(wheel, "W8");
    wheel = wheel_of(NULL, 0);
    memset(timers, 0, sizeof timers);
    tw_wheel_add_at(wheel, &timers[0], 5);
    tw_wheel_add_at(wheel, &timers[1], 9);
    assert_int_equal(tw_wheel_next_bound(wheel), 5);
    tw_wheel_cancel(wheel, &timers[0]);
    wheel->event = 4; /* a bound: slot 5 is empty */
    wheel->quiet = 4;
    assert_null(tw_wheel_check(wheel));
    wheel->event = 6; /* the slot is marked */
    expect_broken(wheel, "W8");
    wheel = wheel_of(NULL, 0);
    wheel->quiet = 600;
    wheel->event = 500;
    expect_broken(wheel, "W8");
    wheel = wheel_of(NULL, 0);
    wheel->event_list = NULL;
    assert_null(tw_wheel_check(wheel));
    wheel->quiet = 600;
    expect_broken(wheel, "W8");
}

static void w9_wrong_windows_are_named(void **state)
{
    (void)state;
    struct tw_wheel *wheel = busy_wheel();
    wheel->ring[2].last++;
    expect_broken(wheel, "W9");
    wheel = busy_wheel();
    wheel->now = wheel->cur - 1;
    expect_broken(wheel, "W9");
    wheel = busy_wheel();
    wheel->gate--;
    expect_broken(wheel, "W9");
    wheel = busy_wheel();
    wheel->express--;
    expect_broken(wheel, "W9");
    wheel = busy_wheel();
    wheel->express_ticks++;
    expect_broken(wheel, "W9");
    wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_CLOCK, 0);
    assert_null(tw_wheel_check(wheel));
    wheel->gate = 0;
    expect_broken(wheel, "W9");
    wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_CLOCK, 0);
    wheel->express_ticks = 1;
    expect_broken(wheel, "W9");
}

/* A busy wheel that keeps bounds. */
static struct tw_wheel *asked_wheel(void)
{
    struct tw_wheel *wheel = busy_wheel();
    assert_int_equal(tw_wheel_next_exact(wheel), 800);
    while (tw_wheel_poll(wheel, 800) != NULL)
        ;
    assert_int_equal(tw_wheel_next_exact(wheel), 1500);
    assert_null(tw_wheel_check(wheel));
    return wheel;
}

static void w10_wrong_knowledge_of_the_earliest_is_named(void **state)
{
    (void)state;
    struct tw_wheel *wheel = asked_wheel();
    wheel->exact++;
    expect_broken(wheel, "W10");
    wheel = asked_wheel();
    wheel->ring[1].drain_bound = 1502;
    expect_broken(wheel, "W10");
    wheel = asked_wheel();
    uint32_t index = slot_of(wheel, &timers[LAST])->list.id & TW__WHEEL_ID_DRAIN;
    wheel->ring[1].bound[index] = timers[LAST].deadline + 1;
    expect_broken(wheel, "W10");
    wheel = asked_wheel();
    tw_wheel_add_at(wheel, &timers[DUE], timers[LAST].deadline - 1);
    slot_of(wheel, &timers[LAST])->list.in_order = true;
    expect_broken(wheel, "W10");
}

static void w11_a_timer_filed_for_now_that_is_not_due_is_named(void **state)
{
    (void)state;
    struct tw_wheel *wheel = busy_wheel();
    tw_wheel_add_now(wheel, &timers[DUE]);
    assert_null(tw_wheel_check(wheel));
    timers[DUE].deadline++;
    expect_broken(wheel, "W11");
    wheel = busy_wheel();
    while (tw_wheel_poll(wheel, 800) != NULL)
        ;
    tw_wheel_add_now(wheel, &timers[DUE]);
    assert_null(tw_wheel_check(wheel));
    timers[DUE].deadline++;
    expect_broken(wheel, "W11");
    wheel = busy_wheel();
    tw_wheel_add_now(wheel, &timers[DUE]);
    wheel->in_drain = false;
    expect_broken(wheel, "W11");
    wheel = busy_wheel();
    wheel->soon.link.prev = &timers[3].link;
    expect_broken(wheel, "W1");
    wheel = busy_wheel();
    wheel->next_drain.link.prev = &timers[3].link;
    expect_broken(wheel, "W1");
}

static void a_pushed_back_timer_may_be_anywhere(void **state)
{
    (void)state;
    struct tw_wheel *wheel = busy_wheel();
    assert_non_null(slot_of(wheel, &timers[LAST]));
    for (int i = 0; i < COUNT; i++)
        if (tw_timer_pending(&timers[i]))
            tw_wheel_move_in(wheel, &timers[i], 1 << 20);
    assert_null(tw_wheel_check(wheel));
    tw_wheel_free(wheel);
}

/* The checker jumps from one marked slot to the next. A breach is seen in each slot: in neighbours, in the
 * first and in the last slot of a word of marks, and behind a word without any. */
static void each_slot_that_holds_timers_is_looked_at(void **state)
{
    static const uint64_t slots[] = {66, 67, 127, 128, 129, 192, 255};
    (void)state;
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    struct tw__wheel_ring *ring = &wheel->ring[1];
    memset(timers, 0, sizeof timers);
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++)
        tw_wheel_add_at(wheel, &timers[i], slots[i] * ring->span);
    assert_int_equal(tw_wheel_next_exact(wheel), timers[0].deadline);
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        timers[i].hint++;
        assert_named(wheel, "W3");
        timers[i].hint--;
        uint64_t bound = ring->bound[slots[i]];
        ring->bound[slots[i]] = timers[i].deadline + 1;
        assert_named(wheel, "W10");
        ring->bound[slots[i]] = bound;
        assert_null(tw_wheel_check(wheel));
    }
    tw_wheel_free(wheel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w1_broken_links_are_named),
        cmocka_unit_test(w2_wrong_bitmaps_are_named),
        cmocka_unit_test(an_emptied_slot_keeps_its_mark_until_a_search),
        cmocka_unit_test(w3_a_timer_in_another_slot_is_named),
        cmocka_unit_test(w4_a_timer_outside_its_window_is_named),
        cmocka_unit_test(w5_a_timer_on_a_passed_tick_is_named),
        cmocka_unit_test(w6_a_wrong_refiling_is_named),
        cmocka_unit_test(w7_a_wrong_count_is_named),
        cmocka_unit_test(w8_a_wrong_event_is_named),
        cmocka_unit_test(w9_wrong_windows_are_named),
        cmocka_unit_test(w10_wrong_knowledge_of_the_earliest_is_named),
        cmocka_unit_test(w11_a_timer_filed_for_now_that_is_not_due_is_named),
        cmocka_unit_test(a_pushed_back_timer_may_be_anywhere),
        cmocka_unit_test(each_slot_that_holds_timers_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
