/* SPDX-License-Identifier: MIT
 *
 * A wheel in a loop, without a real loop: the driver is a few variables, and so is time. These tests are
 * about the parts that all loops share: the mapping of time to ticks, and when the loop's timer is set.
 */
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <tickwheel/loop.h>
#include <tickwheel/sched.h>

enum { MS = 1000000 };
static const uint64_t start_ns = UINT64_C(5000000000), day_ns = UINT64_C(86400000000000);

/* ---- a loop made of variables ---------------------------------------------------------------------------- */

static struct {
    uint64_t now_ns, at_ns; /* at_ns: the time to which the timer is set */
    uint64_t arms, reads, closes;
    bool refuses;
} fake;

static int fake_arm(void *arg, uint64_t at_ns, uint64_t now_ns)
{
    assert_ptr_equal(arg, &fake);
    assert_int_equal(now_ns, fake.now_ns);
    if (fake.refuses)
        return TW_ESYSTEM;
    fake.arms++;
    fake.at_ns = at_ns;
    return 0;
}

static void fake_close(void *arg)
{
    assert_ptr_equal(arg, &fake);
    fake.closes++;
}

static uint64_t fake_now(void *arg)
{
    assert_ptr_equal(arg, &fake);
    fake.reads++;
    return fake.now_ns;
}

static bool calloc_fails;
void *__wrap_calloc(size_t n, size_t size);
void *__real_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    return calloc_fails ? NULL : __real_calloc(n, size);
}

static struct tw_wheel *wheel;
static struct tw_loop *loop;
static struct tw_timer *fired[64];
static unsigned fired_count;

static void note(void *arg, struct tw_timer *timer)
{
    (void)arg;
    assert_false(tw_timer_pending(timer));
    fired[fired_count++ % 64] = timer;
}

static const struct tw_loop_driver plain_driver = {.arm = fake_arm, .close = fake_close, .now = fake_now};

static void attach_with(const struct tw_loop_options *options, const struct tw_loop_driver *driver)
{
    memset(&fake, 0, sizeof fake);
    fake.now_ns = start_ns;
    fake.at_ns = UINT64_MAX;
    fired_count = 0;
    assert_int_equal(tw_loop_new(&loop, wheel, options, driver, &fake), 0);
}

static void attach(const struct tw_geometry *geometry, uint64_t tick, tw_loop_due_fn *due)
{
    struct tw_loop_options options = {.due = due};
    wheel = wheel_of(geometry, tick);
    attach_with(&options, &plain_driver);
}

static void detach(void)
{
    tw_loop_free(loop);
    assert_int_equal(fake.closes, 1);
    assert_null(tw_wheel_check(wheel));
    tw_wheel_free(wheel);
}

/* Runs a pass at a time. */
static void turn_at(uint64_t now_ns)
{
    fake.now_ns = now_ns;
    tw_loop_turn(loop);
}

/* ---- options --------------------------------------------------------------------------------------------- */

static void test_bad_options_are_named(void **state)
{
    (void)state;
    char message[128];
    struct tw_loop_options options = {.due = note, .tick_ns = 999};
    assert_int_equal(tw_loop_options_check(&options, message, sizeof message), TW_EINVAL);
    assert_string_equal(message, "tick_ns is 999: expected 1,000 to 3,600,000,000,000, or 0 for a millisecond");
    options.tick_ns = UINT64_C(3600000000001);
    assert_int_equal(tw_loop_options_check(&options, message, sizeof message), TW_EINVAL);
    assert_non_null(strstr(message, "3600000000001"));
    options.tick_ns = 1000;
    assert_int_equal(tw_loop_options_check(&options, message, sizeof message), 0);
    options.tick_ns = UINT64_C(3600000000000);
    assert_int_equal(tw_loop_options_check(&options, NULL, 0), 0);
    options.due = NULL;
    assert_int_equal(tw_loop_options_check(&options, message, sizeof message), TW_EINVAL);
    assert_string_equal(message, "due is NULL: expected a function");
    assert_int_equal(tw_loop_options_check(&options, message, 4), TW_EINVAL);
    assert_string_equal(message, "due");
    options = (struct tw_loop_options){.due = note, .reserved[2] = 7};
    assert_int_equal(tw_loop_options_check(&options, message, sizeof message), TW_EINVAL);
    assert_non_null(strstr(message, "tw_loop_options.reserved[2] is 7: expected 0"));
}

static void test_a_loop_that_cannot_be_made_leaves_nothing(void **state)
{
    (void)state;
    struct tw_loop_options options = {0};
    struct tw_timer timer = {0};
    struct tw_loop *made = NULL;
    wheel = wheel_of(NULL, 0);
    tw_wheel_add_in(wheel, &timer, 3);
    memset(&fake, 0, sizeof fake);
    assert_int_equal(tw_loop_new(&made, wheel, &options, &plain_driver, &fake), TW_EINVAL);
    options.due = note;
    struct tw_loop_driver odd = plain_driver;
    odd.reserved[0] = 1;
    assert_int_equal(tw_loop_new(&made, wheel, &options, &odd, &fake), TW_EINVAL);
    calloc_fails = true;
    assert_int_equal(tw_loop_new(&made, wheel, &options, &plain_driver, &fake), TW_ENOMEM);
    calloc_fails = false;
    fake.refuses = true;
    assert_int_equal(tw_loop_new(&made, wheel, &options, &plain_driver, &fake), TW_ESYSTEM);
    assert_null(made);
    assert_int_equal(fake.closes, 0);
    assert_true(tw_timer_pending(&timer));
    tw_loop_free(NULL);
    tw_wheel_free(wheel);
}

/* ---- time ------------------------------------------------------------------------------------------------ */

static void test_time_is_rounded_up_to_ticks(void **state)
{
    (void)state;
    attach(NULL, 77, note);
    assert_int_equal(tw_loop_tick(loop, start_ns), 77);
    assert_int_equal(tw_loop_tick(loop, 0), 77);
    assert_int_equal(tw_loop_tick(loop, start_ns + 1), 78);
    assert_int_equal(tw_loop_tick(loop, start_ns + MS), 78);
    assert_int_equal(tw_loop_tick(loop, start_ns + MS + 1), 79);
    assert_int_equal(tw_loop_time(loop, 78), start_ns + MS);
    assert_int_equal(tw_loop_time(loop, 77), start_ns);
    assert_int_equal(tw_loop_time(loop, 3), start_ns);
    assert_ptr_equal(tw_loop_wheel(loop), wheel);
    detach();
}

static void test_sums_saturate(void **state)
{
    (void)state;
    struct tw_timer timer = {0};
    attach(NULL, 77, note);
    assert_true(tw_loop_tick(loop, UINT64_MAX) == TW_NEVER);
    assert_int_equal(tw_loop_tick(loop, UINT64_MAX - 1), 77 + (UINT64_MAX - 2 - start_ns) / MS + 1);
    assert_true(tw_loop_time(loop, TW_NEVER) == UINT64_MAX);
    assert_true(tw_loop_time(loop, UINT64_MAX / MS + 77) ==
                UINT64_MAX); /* the product fits, the sum does not */
    assert_int_equal(tw_loop_add_in(loop, &timer, UINT64_MAX), 0);
    assert_true(tw_timer_deadline(&timer) == TW_NEVER);
    turn_at(UINT64_MAX);
    assert_int_equal(fired_count, 0);
    assert_true(tw_timer_pending(&timer));
    detach();
}

static void test_the_end_of_ticks_never_fires(void **state)
{
    (void)state;
    struct tw_timer last = {0}, beyond = {0};
    attach(NULL, UINT64_MAX - 2, note);
    tw_loop_add_in(loop, &last, MS);
    tw_loop_add_in(loop, &beyond, 50 * MS);
    turn_at(start_ns + 10 * MS); /* the clock is past the last tick, `beyond` is not due */
    assert_int_equal(fired_count, 1);
    assert_ptr_equal(fired[0], &last);
    turn_at(start_ns + 100 * MS);
    assert_int_equal(fired_count, 1);
    detach();
}

static void test_the_clock_is_monotonic_unless_the_driver_has_one(void **state)
{
    (void)state;
    struct tw_loop_options options = {.due = note};
    struct tw_loop_driver driver = {.arm = fake_arm, .close = fake_close};
    wheel = wheel_of(NULL, 0);
    attach_with(&options, &driver);
    uint64_t first = tw_loop_now(loop), second = tw_loop_now(loop);
    assert_in_range(second - first, 0, UINT64_C(60000000000));
    assert_int_equal(fake.reads, 0);
    detach();
}

/* ---- when the loop's timer is set ------------------------------------------------------------------------ */

static void test_only_an_earlier_timer_sets_the_loops_timer(void **state)
{
    (void)state;
    struct tw_timer a = {0}, b = {0}, c = {0};
    attach(NULL, 0, note);
    assert_int_equal(fake.arms, 0);
    tw_loop_add_in(loop, &a, 100 * MS);
    assert_int_equal(fake.arms, 1);
    assert_int_equal(fake.at_ns, start_ns + 100 * MS);
    tw_loop_add_in(loop, &b, 100 * MS);
    tw_loop_add_in(loop, &c, 300 * MS);
    assert_int_equal(fake.arms, 1);
    tw_loop_move_in(loop, &c, 50 * MS);
    assert_int_equal(fake.arms, 2);
    assert_int_equal(fake.at_ns, start_ns + 50 * MS);
    assert_true(tw_loop_cancel(loop, &c));
    assert_false(tw_loop_cancel(loop, &c));
    assert_int_equal(fake.arms, 2); /* an idle wake-up is cheaper than a system call for each cancel */
    turn_at(start_ns + 50 * MS);
    assert_int_equal(fired_count, 0);
    assert_int_equal(fake.at_ns, start_ns + 100 * MS);
    turn_at(start_ns + 100 * MS);
    assert_int_equal(fired_count, 2);
    assert_ptr_equal(fired[0], &a);
    assert_ptr_equal(fired[1], &b);
    assert_true(fake.at_ns == UINT64_MAX);
    tw_loop_add_in(loop, &a, 100 * MS);
    uint64_t arms = fake.arms;
    assert_true(tw_loop_cancel(loop, &a)); /* the last cancel does not set the loop's timer either */
    assert_int_equal(fake.arms, arms);
    detach();
}

static void test_a_heartbeat_neither_sets_the_timer_nor_reads_the_clock(void **state)
{
    (void)state;
    struct tw_timer idle = {0};
    attach(NULL, 0, note);
    tw_loop_add_in(loop, &idle, 1000 * MS);
    uint64_t reads = fake.reads;
    for (int i = 1; i <= 100; i++)
        assert_int_equal(tw_loop_move_at(loop, &idle, start_ns + 1000 * (uint64_t)MS + (uint64_t)i * MS), 0);
    assert_int_equal(fake.arms, 1);
    assert_int_equal(fake.reads, reads);
    detach();
}

static void test_an_early_turn_does_no_harm(void **state)
{
    (void)state;
    struct tw_timer timer = {0};
    attach(NULL, 0, note);
    tw_loop_add_in(loop, &timer, 10 * MS);
    turn_at(start_ns + 10 * MS - 1);
    assert_int_equal(fired_count, 0);
    assert_int_equal(fake.at_ns, start_ns + 10 * MS);
    turn_at(start_ns + 10 * MS);
    assert_int_equal(fired_count, 1);
    detach();
}

static void test_a_far_deadline_is_approached_by_days(void **state)
{
    (void)state;
    struct tw_timer timer = {0};
    unsigned turns = 0;
    attach(NULL, 0, note);
    uint64_t due_ns = start_ns + 40 * day_ns;
    tw_loop_add_at(loop, &timer, due_ns);
    for (; fired_count == 0; turns++) {
        assert_true(fake.at_ns - fake.now_ns <= day_ns && fake.at_ns > fake.now_ns);
        turn_at(fake.at_ns);
    }
    assert_int_equal(fake.now_ns, due_ns);
    assert_in_range(turns, 40, 50); /* at most one more for each level */
    detach();
}

static void test_a_loop_that_would_not_end_is_told_at_once(void **state)
{
    (void)state;
    struct tw_timer a = {0}, b = {0};
    struct tw_loop_options options = {.due = note};
    struct tw_loop_driver driver = {.arm = fake_arm, .close = fake_close, .now = fake_now, .lingers = true};
    wheel = wheel_of(NULL, 0);
    attach_with(&options, &driver);
    tw_loop_add_in(loop, &a, 100 * MS);
    tw_loop_add_in(loop, &b, 200 * MS);
    tw_loop_cancel(loop, &a);
    assert_int_equal(fake.arms, 1);
    tw_loop_cancel(loop, &b);
    assert_int_equal(fake.arms, 2);
    assert_true(fake.at_ns == UINT64_MAX);
    tw_loop_cancel(loop, &b);
    assert_int_equal(fake.arms, 2);
    tw_loop_add_in(loop, &b, 200 * MS);
    assert_int_equal(fake.at_ns, start_ns + 200 * MS);
    tw_wheel_cancel(wheel, &b); /* behind the loop's back: as a timer of C++ that is destroyed */
    assert_int_equal(tw_loop_update(loop), 0);
    assert_true(fake.at_ns == UINT64_MAX);
    assert_int_equal(tw_loop_update(loop), 0);
    assert_int_equal(fake.arms, 4);
    detach();
}

/* While a wheel is in a loop that sleeps, it stays at an old tick. */
static void test_a_wheel_that_is_taken_out_stands_at_the_present(void **state)
{
    (void)state;
    struct tw_timer timer = {0};
    struct tw_loop_options options = {.due = note};
    const uint64_t hour_ns = UINT64_C(3600000000000);
    attach(NULL, 0, note);
    tw_loop_add_in(loop, &timer, 2 * hour_ns);
    fake.now_ns += hour_ns;
    tw_loop_free(loop);
    assert_int_equal(tw_loop_new(&loop, wheel, &options, &plain_driver, &fake), 0);
    assert_int_equal(tw_loop_time(loop, tw_timer_deadline(&timer)), start_ns + 2 * hour_ns);
    tw_loop_free(loop);
    tw_wheel_free(wheel);
}

static void test_a_loop_that_refuses_the_first_timer_can_be_asked_again(void **state)
{
    (void)state;
    struct tw_timer timer = {0};
    attach(NULL, 0, note);
    fake.refuses = true;
    assert_int_equal(tw_loop_add_in(loop, &timer, MS), TW_ESYSTEM);
    assert_false(tw_timer_pending(&timer));
    assert_int_equal(tw_wheel_add_in(wheel, &timer, 1), 0);
    assert_int_equal(tw_loop_update(loop), TW_ESYSTEM);
    fake.refuses = false;
    assert_int_equal(tw_loop_update(loop), 0);
    assert_int_equal(fake.at_ns, start_ns + MS);
    detach();
}

/* The loop's timer is off while the only pending timers never fire. */
static void test_a_move_that_the_loop_refuses_changes_nothing(void **state)
{
    (void)state;
    struct tw_timer timer = {0};
    attach(NULL, 0, note);
    assert_int_equal(tw_loop_add_at(loop, &timer, UINT64_MAX), 0);
    fake.refuses = true;
    assert_int_equal(tw_loop_move_in(loop, &timer, MS), TW_ESYSTEM);
    assert_true(tw_timer_pending(&timer));
    assert_true(tw_timer_deadline(&timer) == TW_NEVER);
    fake.refuses = false;
    assert_int_equal(tw_loop_move_in(loop, &timer, MS), 0);
    assert_int_equal(fake.at_ns, start_ns + MS);
    detach();
}

static void test_timers_filed_behind_its_back_need_an_update(void **state)
{
    (void)state;
    struct tw_timer timer = {0};
    attach(NULL, 5, note);
    tw_wheel_add_at(wheel, &timer, tw_loop_tick(loop, start_ns + 7 * MS));
    assert_int_equal(fake.arms, 0);
    assert_int_equal(tw_loop_update(loop), 0);
    assert_int_equal(fake.at_ns, start_ns + 7 * MS);
    assert_int_equal(tw_loop_update(loop), 0);
    assert_int_equal(fake.arms, 1);
    detach();
}

static void test_a_wheel_may_have_timers_already(void **state)
{
    (void)state;
    struct tw_timer timer = {0};
    struct tw_loop_options options = {.due = note, .tick_ns = 2000};
    wheel = wheel_of(NULL, 900);
    tw_wheel_add_in(wheel, &timer, 10);
    attach_with(&options, &plain_driver);
    assert_int_equal(fake.at_ns, start_ns + 10 * 2000);
    turn_at(fake.at_ns);
    assert_int_equal(fired_count, 1);
    detach();
}

/* A wheel that has slept stands in the past. A timer filed from there would be refiled on its way. */
static void test_after_a_sleep_one_wake_up_is_enough(void **state)
{
    (void)state;
    struct tw_timer timer = {0};
    attach(NULL, 0, note);
    fake.now_ns += UINT64_C(3600000000000);
    tw_loop_add_in(loop, &timer, 100 * MS);
    assert_int_equal(fake.at_ns, fake.now_ns + 100 * MS);
    turn_at(fake.at_ns);
    assert_int_equal(fired_count, 1);
    assert_int_equal(tw_wheel_refiled(wheel), 0);
    detach();
}

static void test_a_wheel_that_refuses_measures_from_the_present(void **state)
{
    (void)state;
    struct tw_timer first = {0}, second = {0}, third = {0};
    attach(&(struct tw_geometry)TW_GEOMETRY_SIMPLE(100), 0, note);
    tw_loop_add_in(loop, &first, 90 * MS);
    fake.now_ns += 80 * MS; /* no pass has run yet: the wheel still stands at 0 */
    assert_int_equal(tw_loop_add_in(loop, &second, 100 * MS), 0);
    assert_int_equal(tw_loop_add_in(loop, &third, 101 * MS), TW_ERANGE);
    assert_false(tw_timer_pending(&third));
    assert_int_equal(tw_loop_move_in(loop, &second, 101 * MS), TW_ERANGE);
    assert_int_equal(tw_timer_deadline(&second), 180);
    fake.now_ns += 20 * MS; /* the first timer is overdue, and keeps the wheel where it is */
    assert_int_equal(tw_loop_add_in(loop, &third, 100 * MS), TW_ERANGE);
    turn_at(fake.now_ns);
    assert_int_equal(tw_loop_add_in(loop, &third, 100 * MS), 0);
    turn_at(start_ns + 180 * MS);
    assert_int_equal(fired_count, 2);
    detach();
}

/* A timer that was filed for now is due on the tick on which the wheel stands, which is the first tick there is
 * in a wheel that has just been made. */
static void test_a_refused_timer_moves_no_wheel_past_the_present(void **state)
{
    (void)state;
    const uint64_t ticks[] = {0, 1, 77}, waits_ms[] = {0, 1, 50, 300};
    for (size_t i = 0; i < 12; i++) {
        struct tw_timer at_once = {0}, too_far = {0}, soon = {0};
        attach(&(struct tw_geometry)TW_GEOMETRY_SIMPLE(100), ticks[i % 3], note);
        fake.now_ns += waits_ms[i / 3] * MS;
        tw_wheel_add_now(wheel, &at_once);
        assert_int_equal(tw_loop_update(loop), 0);
        assert_int_equal(tw_loop_add_in(loop, &too_far, 5000 * (uint64_t)MS), TW_ERANGE);
        assert_int_equal(tw_wheel_now(wheel), ticks[i % 3]);
        turn_at(fake.now_ns);
        assert_int_equal(tw_loop_add_in(loop, &soon, 10 * MS), 0);
        turn_at(fake.now_ns + 11 * MS);
        assert_int_equal(fired_count, 2);
        assert_ptr_equal(fired[0], &at_once);
        assert_ptr_equal(fired[1], &soon);
        detach();
    }
}

static struct tw_timer refused;

/* Files a timer beyond the wheel's range, while timers of the same tick have still to fire. */
static void ask_too_much(void *arg, struct tw_timer *timer)
{
    note(arg, timer);
    assert_int_equal(tw_loop_add_in(loop, &refused, 200 * MS), TW_ERANGE);
}

static void test_a_refused_timer_loses_no_other(void **state)
{
    (void)state;
    struct tw_timer timers[3] = {0};
    struct tw_loop_options options = {.due = ask_too_much, .budget = 2};
    wheel = wheel_of(&(struct tw_geometry)TW_GEOMETRY_SIMPLE(100), 0);
    attach_with(&options, &plain_driver);
    memset(&refused, 0, sizeof refused);
    for (int i = 0; i < 3; i++)
        tw_loop_add_in(loop, &timers[i], 5 * MS);
    turn_at(start_ns + 5 * MS);
    assert_int_equal(tw_loop_add_in(loop, &refused, 200 * MS), TW_ERANGE); /* and between two passes */
    while (fake.at_ns != UINT64_MAX)
        turn_at(fake.at_ns > fake.now_ns ? fake.at_ns : fake.now_ns);
    assert_int_equal(fired_count, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_ptr_equal(fired[i], &timers[i]);
    detach();
}

/* ---- a turn ---------------------------------------------------------------------------------------------- */

static void test_a_turn_is_bounded_and_goes_on_in_the_next(void **state)
{
    (void)state;
    enum { N = 50 };
    struct tw_timer timers[N] = {0};
    struct tw_loop_options options = {.due = note, .budget = 8};
    wheel = wheel_of(NULL, 0);
    attach_with(&options, &plain_driver);
    for (int i = 0; i < N; i++)
        tw_loop_add_in(loop, &timers[i], 5 * MS);
    fake.now_ns += 5 * MS;
    for (unsigned turns = 1; fired_count < N; turns++) {
        unsigned before = fired_count;
        tw_loop_turn(loop);
        assert_in_range(fired_count - before, 1, 8);
        assert_true(fired_count == N || fake.at_ns == 0);
        assert_in_range(turns, 1, N / 8 + 1);
    }
    for (int i = 0; i < N; i++)
        assert_ptr_equal(fired[i], &timers[i]);
    detach();
}

static struct tw_timer again;

static void file_again(void *arg, struct tw_timer *timer)
{
    note(arg, timer);
    assert_int_equal(tw_loop_add_at(loop, &again, 0), 0); /* the time is long past: due on the next tick */
}

static void test_a_timer_that_files_itself_at_once_does_not_hold_the_loop(void **state)
{
    (void)state;
    attach(NULL, 0, file_again);
    memset(&again, 0, sizeof again);
    tw_loop_add_in(loop, &again, 0);
    turn_at(start_ns + 5 * MS);
    assert_int_equal(fired_count, 1);
    assert_int_equal(fake.at_ns, start_ns + 6 * MS);
    turn_at(start_ns + 6 * MS);
    assert_int_equal(fired_count, 2);
    detach();
}

static void free_loop(void *arg, struct tw_timer *timer)
{
    note(arg, timer);
    tw_loop_free(loop);
    loop = NULL;
}

static void test_a_callback_may_free_the_loop(void **state)
{
    (void)state;
    struct tw_timer timers[3] = {0};
    attach(NULL, 0, free_loop);
    for (int i = 0; i < 3; i++)
        tw_loop_add_in(loop, &timers[i], MS);
    turn_at(start_ns + MS);
    assert_int_equal(fired_count, 1);
    assert_int_equal(fake.closes, 1);
    assert_int_equal(tw_wheel_count(wheel), 2);
    assert_true(tw_timer_pending(&timers[2]));
    assert_null(tw_wheel_check(wheel));
    tw_wheel_free(wheel);
}

/* Every callback but the third runs the loop; the third callback may free it. */
static bool frees;
static unsigned depth;

static void run_inside(void *arg, struct tw_timer *timer)
{
    note(arg, timer);
    if (fired_count < 3) {
        depth++;
        tw_loop_turn(loop);
    } else if (frees) {
        tw_loop_free(loop);
        loop = NULL;
    }
}

static void run_nested(bool free_it)
{
    struct tw_timer timers[4] = {0};
    attach(NULL, 0, run_inside);
    frees = free_it;
    depth = 0;
    for (int i = 0; i < 4; i++)
        tw_loop_add_in(loop, &timers[i], MS);
    turn_at(start_ns + MS);
    assert_int_equal(depth, 2);
}

static void test_a_callback_may_run_the_loop(void **state)
{
    (void)state;
    run_nested(false);
    assert_int_equal(fired_count, 4);
    assert_true(fake.at_ns == UINT64_MAX);
    detach();
}

static void test_a_callback_may_free_the_loop_that_others_are_in(void **state)
{
    (void)state;
    run_nested(true);
    assert_int_equal(fired_count, 3);
    assert_int_equal(fake.closes, 1);
    assert_int_equal(tw_wheel_count(wheel), 1);
    tw_wheel_free(wheel);
}

/* ---- all of it, at random -------------------------------------------------------------------------------- */

struct one {
    struct tw_timer timer;
    uint64_t due_ns;
    bool fired;
};

static uint64_t last_tick;

/* Time goes from one setting of the loop's timer to the next. So each timer fires as its tick begins. */
static void check_one(void *arg, struct tw_timer *timer)
{
    struct one *one = TW_CONTAINER(timer, struct one, timer);
    (void)arg;
    assert_false(one->fired);
    one->fired = true;
    fired_count++;
    assert_true(fake.now_ns >= one->due_ns);
    assert_true(fake.now_ns - one->due_ns < MS);
    assert_true(tw_timer_deadline(timer) >= last_tick);
    last_tick = tw_timer_deadline(timer);
}

static void test_time_from_setting_to_setting_is_exact(void **state)
{
    (void)state;
    unsigned n = run_scaled(20000);
    struct rng rng;
    rng_init(&rng, run_seed());
    struct one *ones = calloc(n, sizeof *ones);
    struct tw_loop_options options = {.due = check_one, .budget = 64};
    wheel = wheel_of(NULL, rng_next(&rng) >> 8);
    attach_with(&options, &plain_driver);
    last_tick = 0;
    for (unsigned i = 0; i < n; i++) {
        ones[i].due_ns =
            start_ns + 1 + rng_below(&rng, rng_below(&rng, 4) ? UINT64_C(9000000000) : 20 * day_ns);
        assert_int_equal(tw_loop_add_at(loop, &ones[i].timer, ones[i].due_ns), 0);
    }
    while (fake.at_ns != UINT64_MAX)
        turn_at(fake.at_ns > fake.now_ns ? fake.at_ns : fake.now_ns);
    assert_int_equal(fired_count, n);
    detach();
    free(ones);
}

/* ---- executors ------------------------------------------------------------------------------------------- */

/* This program does not link the scheduler. */
static void test_an_executor_wants_the_scheduler_to_be_linked(void **state)
{
    (void)state;
    struct tw_executor *executor = NULL;
    struct tw_executor_driver driver = {0};
    assert_int_equal(tw_executor_new(&executor, 0, &driver, NULL), TW_EINVAL);
    assert_null(executor);
    tw_executor_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_options_are_named),
        cmocka_unit_test(test_a_loop_that_cannot_be_made_leaves_nothing),
        cmocka_unit_test(test_time_is_rounded_up_to_ticks),
        cmocka_unit_test(test_sums_saturate),
        cmocka_unit_test(test_the_end_of_ticks_never_fires),
        cmocka_unit_test(test_the_clock_is_monotonic_unless_the_driver_has_one),
        cmocka_unit_test(test_only_an_earlier_timer_sets_the_loops_timer),
        cmocka_unit_test(test_a_heartbeat_neither_sets_the_timer_nor_reads_the_clock),
        cmocka_unit_test(test_an_early_turn_does_no_harm),
        cmocka_unit_test(test_a_far_deadline_is_approached_by_days),
        cmocka_unit_test(test_a_loop_that_would_not_end_is_told_at_once),
        cmocka_unit_test(test_a_wheel_that_is_taken_out_stands_at_the_present),
        cmocka_unit_test(test_a_loop_that_refuses_the_first_timer_can_be_asked_again),
        cmocka_unit_test(test_a_move_that_the_loop_refuses_changes_nothing),
        cmocka_unit_test(test_timers_filed_behind_its_back_need_an_update),
        cmocka_unit_test(test_a_wheel_may_have_timers_already),
        cmocka_unit_test(test_after_a_sleep_one_wake_up_is_enough),
        cmocka_unit_test(test_a_wheel_that_refuses_measures_from_the_present),
        cmocka_unit_test(test_a_refused_timer_moves_no_wheel_past_the_present),
        cmocka_unit_test(test_a_refused_timer_loses_no_other),
        cmocka_unit_test(test_a_turn_is_bounded_and_goes_on_in_the_next),
        cmocka_unit_test(test_a_timer_that_files_itself_at_once_does_not_hold_the_loop),
        cmocka_unit_test(test_a_callback_may_free_the_loop),
        cmocka_unit_test(test_a_callback_may_run_the_loop),
        cmocka_unit_test(test_a_callback_may_free_the_loop_that_others_are_in),
        cmocka_unit_test(test_time_from_setting_to_setting_is_exact),
        cmocka_unit_test(test_an_executor_wants_the_scheduler_to_be_linked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
