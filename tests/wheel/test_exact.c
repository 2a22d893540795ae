/* SPDX-License-Identifier: MIT
 *
 * Counts the timers that tw_wheel_next_exact() looks at when a program calls it in each iteration of a loop.
 * exact.c is compiled into this test, and its prefetch, one for each timer that it looks at, is replaced by a
 * counter. So the cost is a number that is the same on any machine. test_model.c compares the returned
 * deadlines with the model.
 */
#include "src/wheel/internal.h"
#include "tests/support/cmocka.h"
#include "tests/support/level.h"
#include "tests/support/random.h"

#include <stdlib.h>

static uint64_t looked;
#define tw__wheel_prefetch_hint(timer) ((void)(timer), looked++)
#include "src/wheel/exact.c"

enum { TIMERS = 50000, SPREAD = 60000, BEAT = 30000, PERIOD = 1000, HOUR = 3600000 };
static struct tw_timer timers[TIMERS];
static struct rng rng;

static struct tw_wheel *filled_wheel(uint64_t first, uint64_t count)
{
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    memset(timers, 0, sizeof timers);
    rng_init(&rng, 1);
    for (int i = 0; i < TIMERS; i++)
        tw_wheel_add_in(wheel, &timers[i], first + rng_below(&rng, count));
    tw_wheel_next_exact(wheel);
    looked = 0;
    return wheel;
}

static struct tw_timer *any(void)
{
    return &timers[rng_below(&rng, TIMERS)];
}

/* Asserts that on average at most `most` timers were looked at per iteration; checks the invariants. */
static void expect_looks(struct tw_wheel *wheel, uint64_t turns, double most)
{
    double looks = (double)looked / (double)turns;
    if (looks > most)
        print_error("%g timers were looked at in a turn, %g is the most\n", looks, most);
    assert_true(looks <= most);
    assert_null(tw_wheel_check(wheel));
    tw_wheel_free(wheel);
}

static void refile_due(struct tw_wheel *wheel, uint64_t now, uint64_t first, uint64_t count)
{
    struct tw_timer *timer;
    while ((timer = tw_wheel_poll(wheel, now)) != NULL)
        tw_wheel_add_in(wheel, timer, first + rng_below(&rng, count));
}

static void steady_fires_look_at_few(void **state)
{
    (void)state;
    struct tw_wheel *wheel = filled_wheel(1, SPREAD);
    for (uint64_t now = 1; now <= SPREAD; now++) {
        refile_due(wheel, now, 1, SPREAD);
        tw_wheel_next_exact(wheel);
    }
    expect_looks(wheel, SPREAD, 5);
}

static void churn_looks_at_few_near_and_far(void **state)
{
    (void)state;
    const uint64_t first[] = {1, 140000, HOUR}, count[] = {SPREAD, 1000, 1};
    for (int i = 0; i < 3; i++) {
        struct tw_wheel *wheel = filled_wheel(first[i], count[i]);
        for (int turn = 0; turn < 2 * TIMERS; turn++) {
            struct tw_timer *timer = any();
            tw_wheel_cancel(wheel, timer);
            tw_wheel_add_in(wheel, timer, first[i] + rng_below(&rng, count[i]));
            tw_wheel_next_exact(wheel);
        }
        expect_looks(wheel, 2 * TIMERS, 3);
    }
}

static void heartbeats_at_random_look_at_few(void **state)
{
    (void)state;
    struct tw_wheel *wheel = filled_wheel(1, BEAT - PERIOD);
    for (int i = 0; i < TIMERS; i++)
        tw_wheel_move_in(wheel, &timers[i], BEAT - PERIOD + 1 + rng_below(&rng, PERIOD));
    tw_wheel_next_exact(wheel);
    looked = 0;
    for (uint64_t now = 1; now <= BEAT; now++) {
        refile_due(wheel, now, BEAT, 1);
        for (int i = 0; i < TIMERS / PERIOD; i++) {
            tw_wheel_move_in(wheel, any(), BEAT);
            tw_wheel_next_exact(wheel);
        }
    }
    expect_looks(wheel, (uint64_t)BEAT * (TIMERS / PERIOD), 2);
}

/* The earliest timer is always the next to change: it is pushed back, as a connection's timeout is, or
 * stopped and started again. In each iteration a connection sends one packet; with `twice`, it sends another
 * packet a tick later. Then nearly all timers have been pushed back. */
static void beat_in_order(uint64_t delay, bool restart, bool twice)
{
    enum { PER_TICK = 5, ROUNDS = 4 };
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    memset(timers, 0, sizeof timers);
    looked = 0;
    for (uint64_t k = 0; k < ROUNDS * TIMERS; k++) {
        struct tw_timer *timer = &timers[k % TIMERS];
        assert_null(tw_wheel_poll(wheel, k / PER_TICK));
        if (restart)
            tw_wheel_cancel(wheel, timer);
        tw_wheel_move_in(wheel, timer, delay);
        if (twice && k >= PER_TICK)
            tw_wheel_move_in(wheel, &timers[(k - PER_TICK) % TIMERS], delay);
        if (k >= TIMERS)
            tw_wheel_next_exact(wheel);
    }
    expect_looks(wheel, (ROUNDS - 1) * TIMERS, 4);
}

static void heartbeats_in_order_look_at_few(void **state)
{
    (void)state;
    const uint64_t delay[] = {BEAT, 200000, HOUR};
    for (int i = 0; i < 3; i++) {
        beat_in_order(delay[i], false, false);
        beat_in_order(delay[i], true, false);
        beat_in_order(delay[i], false, true);
        beat_in_order(delay[i], true, true);
    }
}

/* A loop calls tw_wheel_next_exact() for the first time when no timer is pending. A timer that is filed later
 * is near the earliest deadline of its own time, not near the end of time. */
static void an_answer_of_never_does_not_make_all_timers_near(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    struct tw_timer near = {0}, far = {0};
    assert_int_equal(tw_wheel_next_exact(wheel), TW_NEVER);
    tw_wheel_add_at(wheel, &near, 10);
    tw_wheel_add_at(wheel, &far, HOUR);
    assert_int_equal(tw_wheel_next_exact(wheel), 10);
    tw_wheel_move_at(wheel, &far, 2 * HOUR);
    assert_int_equal(tw__wheel_filed_on(&far), TW__WHEEL_PUSHED);
    tw_wheel_free(wheel);
}

static void many_due_on_one_tick_are_not_looked_at_one_by_one(void **state)
{
    (void)state;
    struct tw_wheel *wheel = filled_wheel(500, 1);
    for (int i = 0; i < TIMERS; i++) {
        assert_non_null(tw_wheel_poll(wheel, 500));
        assert_int_equal(tw_wheel_next_exact(wheel), i + 1 < TIMERS ? 500 : TW_NEVER);
    }
    expect_looks(wheel, TIMERS, 1);
}

/* All timers of a slot but one are pushed back while the slot is refiled. The timer that stays has the
 * earliest deadline. The last call of tw_wheel_next_exact() was made while another timer was the earliest:
 * timers near the earliest deadline would be filed again at once. */
static void a_slot_that_is_refiled_is_looked_through(void **state)
{
    (void)state;
    enum { SLOT = 5120, SPAN = 512, LATER = 9000 };
    struct tw_timer early = {0};
    struct tw_wheel *wheel = filled_wheel(SLOT, SPAN);
    uint64_t kept = TW_NEVER;
    tw_wheel_add_at(wheel, &early, 1);
    assert_int_equal(tw_wheel_next_exact(wheel), 1);
    assert_ptr_equal(tw_wheel_poll(wheel, 1), &early);
    for (uint64_t now = 1; level_info(wheel, 1).draining == 0; now++)
        assert_null(tw_wheel_poll(wheel, now));
    for (int i = 0; i < TIMERS; i++) {
        if (tw__wheel_filed_on(&timers[i]) == 0)
            tw_wheel_cancel(wheel, &timers[i]);
        else if (kept == TW_NEVER && timers[i].deadline > SLOT + SPAN / 2)
            kept = timers[i].deadline;
        else
            tw_wheel_move_at(wheel, &timers[i], LATER);
    }
    assert_int_equal(level_info(wheel, 1).draining, tw_wheel_count(wheel));
    assert_int_equal(tw_wheel_next_exact(wheel), kept);
    expect_looks(wheel, TIMERS, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steady_fires_look_at_few),
        cmocka_unit_test(churn_looks_at_few_near_and_far),
        cmocka_unit_test(heartbeats_at_random_look_at_few),
        cmocka_unit_test(heartbeats_in_order_look_at_few),
        cmocka_unit_test(an_answer_of_never_does_not_make_all_timers_near),
        cmocka_unit_test(many_due_on_one_tick_are_not_looked_at_one_by_one),
        cmocka_unit_test(a_slot_that_is_refiled_is_looked_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
