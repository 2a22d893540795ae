/* SPDX-License-Identifier: MIT
 *
 * Every loop: 100,000 random timers, some of which are cancelled, moved and filed again. No timer is early,
 * no timer is missed, and they fire in order.
 */
#include "body.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

struct one {
    struct tw_timer timer;
    uint64_t due_ns; /* the timer must not fire before this time */
    uint64_t filed;  /* the number of its filing */
    enum { WAITS, FIRED, CANCELLED } state;
    bool moved;
};

static struct {
    struct one *ones;
    unsigned n, waiting, fired, cancelled, again;
    uint64_t filings, until_ns, last_tick, last_filed, late_max_ns;
    bool fresh; /* the timer that fired last was not moved */
    struct rng rng;
} storm;

/* A random time from now on, up to the end of the storm if that is not over. */
static uint64_t some_delay(uint64_t now_ns)
{
    return now_ns < storm.until_ns ? rng_below(&storm.rng, storm.until_ns - now_ns) : 0;
}

static void file_one(struct one *one)
{
    uint64_t now_ns = clock_now(), ns = some_delay(now_ns);
    one->due_ns = now_ns + ns;
    one->filed = ++storm.filings;
    one->state = WAITS;
    one->moved = false;
    storm.waiting++;
    if (rng_below(&storm.rng, 2) == 0)
        assert_int_equal(tw_loop_add_at(loop, &one->timer, one->due_ns), 0);
    else
        assert_int_equal(tw_loop_add_in(loop, &one->timer, ns), 0);
    assert_null(tw__loop_check(loop));
}

static void cancel_one(struct one *one)
{
    assert_true(tw_loop_cancel(loop, &one->timer));
    assert_null(tw__loop_check(loop));
    one->state = CANCELLED;
    storm.waiting--;
    storm.cancelled++;
}

static void move_one(struct one *one)
{
    uint64_t now_ns = clock_now();
    one->moved = true;
    one->due_ns = now_ns + some_delay(now_ns);
    assert_int_equal(tw_loop_move_at(loop, &one->timer, one->due_ns), 0);
    assert_null(tw__loop_check(loop));
}

/* Cancels, moves or files a random timer, as long as there is time. */
static void meddle(void)
{
    struct one *one = &storm.ones[rng_below(&storm.rng, storm.n)];
    if (clock_now() + MS >= storm.until_ns)
        return;
    unsigned what = (unsigned)rng_below(&storm.rng, 10);
    if (one->state == WAITS && what == 0)
        cancel_one(one);
    else if (one->state == WAITS && what <= 3)
        move_one(one);
    else if (one->state != WAITS && what == 4) {
        storm.again++;
        file_one(one);
    }
}

/* Ticks never go back. Timers that were not moved fire in the order of filing if their ticks are equal. */
static void check_order(const struct one *one)
{
    uint64_t tick = tw_timer_deadline(&one->timer);
    assert_true(tick >= storm.last_tick);
    if (tick > storm.last_tick)
        storm.last_filed = 0;
    storm.last_tick = tick;
    if (one->moved)
        return;
    assert_true(one->filed > storm.last_filed);
    storm.last_filed = one->filed;
}

static void on_one(void *arg, struct tw_timer *timer)
{
    struct one *one = TW_CONTAINER(timer, struct one, timer);
    uint64_t now_ns = clock_now();
    assert_ptr_equal(arg, NULL);
    assert_int_equal(one->state, WAITS);
    assert_null(tw__loop_check(loop));
    assert_true(now_ns >= one->due_ns);
    check_order(one);
    storm.late_max_ns = now_ns - one->due_ns > storm.late_max_ns ? now_ns - one->due_ns : storm.late_max_ns;
    one->state = FIRED;
    storm.fired++;
    storm.waiting--;
    meddle();
    if (storm.waiting == 0)
        done();
}

void test_timers_are_not_early_not_missed_and_in_order(void **state)
{
    (void)state;
    memset(&storm, 0, sizeof storm);
    storm.n = run_scaled(100000);
    rng_init(&storm.rng, run_seed());
    storm.ones = __real_calloc(storm.n, sizeof *storm.ones);
    attach(on_one, 0);
    clock_stand(); /* no timer is due while the timers are filed */
    storm.until_ns = clock_now() + NS_PER_S;
    for (unsigned i = 0; i < storm.n; i++)
        file_one(&storm.ones[i]);
    clock_go();
    kind.run(base);
    assert_int_equal(storm.waiting, 0);
    assert_int_equal(tw_wheel_count(wheel), 0);
    assert_int_equal(storm.fired + storm.cancelled, storm.n + storm.again);
    for (unsigned i = 0; i < storm.n; i++)
        assert_int_not_equal(storm.ones[i].state, WAITS);
    print_message("%s: %u fired, %u cancelled; the latest came %.3f ms late\n", kind.name, storm.fired,
                  storm.cancelled, (double)storm.late_max_ns / 1e6);
    assert_true(waits > 0);
    free(storm.ones);
}
