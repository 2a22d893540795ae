/* SPDX-License-Identifier: MIT
 *
 * Slots that cancels have emptied keep their marks for a while (the essay in wheel.c). No caller may see that:
 * a wheel whose timers were cancelled answers as a wheel that never had them.
 */
#include "tests/support/cmocka.h"
#include "tests/support/level.h"
#include "tests/support/random.h"

enum { PRESETS = 6, ROUNDS = 200, TIMERS = 60, EMPTIED = 400 };
static struct tw_timer timers[TIMERS], twins[TIMERS], passing[EMPTIED];
static const uint64_t spans[] = {4, 60, 700, 50000, 3000000};

static struct tw_geometry preset(uint64_t number)
{
    switch (number) {
    case 0:
        return (struct tw_geometry)TW_GEOMETRY_SMALL;
    case 1:
        return (struct tw_geometry)TW_GEOMETRY_CLOCK;
    case 2:
        return (struct tw_geometry)TW_GEOMETRY_HASHED(64);
    case 3:
        return (struct tw_geometry)TW_GEOMETRY_GROWING(16);
    case 4:
        return (struct tw_geometry)TW_GEOMETRY_SIMPLE(4096);
    default:
        return (struct tw_geometry)TW_GEOMETRY_DEFAULT;
    }
}

/* A deadline that every preset accepts. */
static uint64_t some_deadline(struct rng *rng, uint64_t number, uint64_t now)
{
    uint64_t span = spans[rng_below(rng, number == 4 ? 3 : sizeof spans / sizeof spans[0])];
    return now + 1 + rng_below(rng, span);
}

/* Both wheels stand at the same tick. `wheel` has seen many adds and cancels, `fresh` only the timers that are
 * pending. */
static void expect_same(struct tw_wheel *wheel, struct tw_wheel *fresh)
{
    for (int i = 0; i < TIMERS; i++)
        if (tw_timer_pending(&timers[i]))
            assert_int_equal(tw_wheel_add_at(fresh, &twins[i], tw_timer_deadline(&timers[i])), 0);
    assert_int_equal(tw_wheel_count(wheel), tw_wheel_count(fresh));
    assert_int_equal(tw_wheel_next_bound(wheel), tw_wheel_next_bound(fresh));
    assert_int_equal(tw_wheel_next_bound(wheel), tw_wheel_next_bound(fresh)); /* and from memory */
    for (uint32_t level = 0; level < tw_wheel_levels(fresh); level++)
        assert_int_equal(level_info(wheel, level).occupied, level_info(fresh, level).occupied);
    assert_null(tw_wheel_check(wheel));
}

static void cancelled_timers_leave_no_trace_in_the_next_event(void **state)
{
    (void)state;
    struct rng rng = {.state = 11};
    for (uint64_t round = 0; round < ROUNDS * PRESETS; round++) {
        uint64_t number = round % PRESETS, now = rng_below(&rng, 100000);
        const struct tw_geometry geometry = preset(number);
        struct tw_wheel *wheel = wheel_of(&geometry, now);
        memset(timers, 0, sizeof timers);
        for (int step = 0; step < 10; step++) {
            for (int i = 0; i < TIMERS; i++) {
                tw_wheel_cancel(wheel, &timers[i]);
                if (rng_below(&rng, 8) == 0)
                    tw_wheel_add_at(wheel, &timers[i], some_deadline(&rng, number, now));
            }
            memset(twins, 0, sizeof twins);
            struct tw_wheel *fresh = wheel_of(&geometry, now);
            expect_same(wheel, fresh);
            tw_wheel_free(fresh);
            if (number >= 3) /* with rounds, the next event also depends on when the wheel saw which timer */
                now += rng_below(&rng, spans[step % 4]);
            while (tw_wheel_poll(wheel, now) != NULL)
                ;
        }
        tw_wheel_free(wheel);
    }
}

/* Asking for the next event in the middle of a drain does not make the next poll forget to end the drain. */
static void a_question_inside_a_drain_leaves_the_drain_open(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    memset(timers, 0, sizeof timers);
    tw_wheel_add_at(wheel, &timers[0], 5);
    tw_wheel_add_at(wheel, &timers[1], 100);
    assert_ptr_equal(tw_wheel_poll(wheel, 5), &timers[0]);
    assert_int_equal(tw_wheel_next_bound(wheel), 100);
    assert_null(tw_wheel_poll(wheel, 5)); /* the drain ends here */
    tw_wheel_add_now(wheel, &timers[2]);
    assert_ptr_equal(tw_wheel_poll(wheel, 5), &timers[2]);
    tw_wheel_free(wheel);
}

/* Fills hundreds of slots on two levels, and empties them again. */
static struct tw_wheel *emptied_wheel(void)
{
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    memset(passing, 0, sizeof passing);
    memset(timers, 0, sizeof timers);
    for (uint64_t i = 0; i < EMPTIED; i++)
        tw_wheel_add_at(wheel, &passing[i], i < EMPTIED / 2 ? i + 1 : i * 600);
    tw_wheel_add_at(wheel, &timers[0], 50);
    tw_wheel_add_at(wheel, &timers[1], 200000);
    for (int i = 0; i < EMPTIED; i++)
        assert_true(tw_wheel_cancel(wheel, &passing[i]));
    return wheel;
}

static int count_visit(void *arg, struct tw_timer *timer)
{
    (void)timer;
    ++*(int *)arg;
    return 0;
}

static void visits_pass_over_emptied_slots(void **state)
{
    (void)state;
    struct tw_wheel *wheel = emptied_wheel();
    int near = 0, all = 0;
    assert_int_equal(tw_wheel_visit_until(wheel, 100, count_visit, &near), 0);
    assert_int_equal(tw_wheel_visit(wheel, count_visit, &all), 0);
    assert_int_equal(near, 1);
    assert_int_equal(all, 2);
    assert_null(tw_wheel_check(wheel));
    tw_wheel_free(wheel);
}

static void a_drain_passes_over_emptied_slots(void **state)
{
    (void)state;
    struct tw_wheel *wheel = emptied_wheel();
    assert_non_null(tw_wheel_drain(wheel));
    assert_non_null(tw_wheel_drain(wheel));
    assert_null(tw_wheel_drain(wheel));
    tw_wheel_free(wheel);
}

/* Polls that come to an emptied slot fire nothing, and find the timers behind it on their ticks. */
static void polls_pass_over_emptied_slots(void **state)
{
    (void)state;
    for (uint64_t step = 1; step < 3000; step = step * 3 + 1) {
        struct tw_wheel *wheel = emptied_wheel();
        for (uint64_t now = step; tw_wheel_count(wheel) > 0; now += step) {
            struct tw_timer *timer = tw_wheel_poll(wheel, now);
            bool first = now >= 50 && now - step < 50, second = now >= 200000;
            assert_ptr_equal(timer, first ? &timers[0] : second ? &timers[1] : NULL);
            if (now % 64 == 0)
                assert_null(tw_wheel_check(wheel));
        }
        tw_wheel_free(wheel);
    }
}

/* A slot that is being refiled loses all its timers by cancels. The wheel goes on as if it had never been. */
static void a_slot_may_be_emptied_while_it_is_refiled(void **state)
{
    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        struct tw_wheel *wheel = wheel_of(NULL, 0);
        memset(passing, 0, sizeof passing);
        memset(timers, 0, sizeof timers);
        for (int i = 0; i < EMPTIED; i++)
            tw_wheel_add_at(wheel, &passing[i], 1300);
        tw_wheel_add_at(wheel, &timers[0], 4000);
        if (exact)
            assert_int_equal(tw_wheel_next_exact(wheel), 1300);
        assert_null(tw_wheel_poll(wheel, 520));
        assert_true(level_info(wheel, 1).draining > 0);
        for (int i = 0; i < EMPTIED; i++)
            assert_true(tw_wheel_cancel(wheel, &passing[i]));
        assert_int_equal(level_info(wheel, 1).draining, 0);
        assert_null(tw_wheel_check(wheel));
        if (exact)
            assert_int_equal(tw_wheel_next_exact(wheel), 4000);
        else
            assert_int_equal(tw_wheel_next_bound(wheel), 3072);
        assert_null(tw_wheel_poll(wheel, 600));
        assert_null(tw_wheel_check(wheel));
        assert_ptr_equal(tw_wheel_poll(wheel, 4000), &timers[0]);
        tw_wheel_free(wheel);
    }
}

/* The same, and the program drains the wheel before the next poll. */
static void a_drain_passes_over_a_slot_that_was_emptied_while_it_was_refiled(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    memset(passing, 0, sizeof passing);
    memset(timers, 0, sizeof timers);
    for (int i = 0; i < EMPTIED; i++)
        tw_wheel_add_at(wheel, &passing[i], 1300);
    tw_wheel_add_at(wheel, &timers[0], 4000);
    assert_null(tw_wheel_poll(wheel, 520));
    for (int i = 0; i < EMPTIED; i++)
        tw_wheel_cancel(wheel, &passing[i]);
    assert_ptr_equal(tw_wheel_drain(wheel), &timers[0]);
    assert_null(tw_wheel_drain(wheel));
    tw_wheel_free(wheel);
}

/* The only timers of level 0 are due at the end of time, which has come; the slots below are emptied. */
static void a_drain_finds_the_timers_of_the_end_of_time(void **state)
{
    (void)state;
    struct tw_wheel *wheel = wheel_of(NULL, UINT64_MAX - 100);
    memset(timers, 0, sizeof timers);
    tw_wheel_add_at(wheel, &timers[0], UINT64_MAX - 50);
    tw_wheel_cancel(wheel, &timers[0]);
    assert_null(tw_wheel_poll(wheel, UINT64_MAX));
    tw_wheel_add_at(wheel, &timers[0], UINT64_MAX);
    tw_wheel_add_at(wheel, &timers[1], UINT64_MAX);
    assert_int_equal(tw_wheel_next_bound(wheel), TW_NEVER);
    tw_wheel_cancel(wheel, &timers[0]);
    assert_ptr_equal(tw_wheel_drain(wheel), &timers[1]);
    assert_null(tw_wheel_check(wheel));
    tw_wheel_free(wheel);
}

/* A slot that cancels have emptied counts its timers anew, so they are refiled in as small portions as in a
 * slot that never had others. */
static void an_emptied_slot_is_refiled_at_the_pace_of_its_new_timers(void **state)
{
    (void)state;
    enum { MANY = 2000 };
    static struct tw_timer far[MANY], far_away[MANY];
    struct tw_wheel *wheel = wheel_of(NULL, 0);
    memset(timers, 0, sizeof timers);
    memset(far, 0, sizeof far);
    memset(far_away, 0, sizeof far_away);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(tw_wheel_add_at(wheel, &far_away[i], 1000000), 0);
    for (int i = 0; i < 100 * MANY; i++) {
        assert_int_equal(tw_wheel_add_at(wheel, &timers[0], 3000), 0);
        assert_true(tw_wheel_cancel(wheel, &timers[0]));
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(tw_wheel_add_at(wheel, &far[i], 3000), 0);
    uint64_t worst = 0;
    for (uint64_t now = 1; now < 3000; now++) {
        uint64_t before = tw_wheel_refiled(wheel);
        assert_null(tw_wheel_poll(wheel, now));
        uint64_t refiled = tw_wheel_refiled(wheel) - before;
        worst = refiled > worst ? refiled : worst;
    }
    assert_int_equal(worst, MANY / 512 + 1);
    tw_wheel_free(wheel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancelled_timers_leave_no_trace_in_the_next_event),
        cmocka_unit_test(a_question_inside_a_drain_leaves_the_drain_open),
        cmocka_unit_test(visits_pass_over_emptied_slots),
        cmocka_unit_test(a_drain_passes_over_emptied_slots),
        cmocka_unit_test(polls_pass_over_emptied_slots),
        cmocka_unit_test(a_slot_may_be_emptied_while_it_is_refiled),
        cmocka_unit_test(a_drain_passes_over_a_slot_that_was_emptied_while_it_was_refiled),
        cmocka_unit_test(a_drain_finds_the_timers_of_the_end_of_time),
        cmocka_unit_test(an_emptied_slot_is_refiled_at_the_pace_of_its_new_timers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
