/* SPDX-License-Identifier: MIT
 *
 * Every loop: one iteration makes at most `budget` calls, other events come in between, and the other calls
 * follow at once.
 */
#include "body.h"

#include <unistd.h>

struct tw_timer crowd[CROWD];
unsigned calls, since, since_max;
static unsigned served;
static bool watched;

/* The descriptor stays readable: every iteration of the loop comes here. */
static void on_served(void)
{
    served++;
    since = 0;
}

static void on_crowd(void *arg, struct tw_timer *timer)
{
    (void)arg;
    assert_ptr_equal(timer, &crowd[calls]);
    calls++;
    since++;
    since_max = since > since_max ? since : since_max;
    if (calls == CROWD) {
        if (watched)
            kind.unwatch(base);
        done();
    }
}

void watch_always(void)
{
    const uint64_t one = 1;
    assert_int_equal(write(wake_fd, &one, sizeof one), sizeof one);
    calls = since = since_max = served = 0;
    watched = true;
    kind.watch(base, wake_fd, on_served);
}

static void file_crowd(void)
{
    memset(crowd, 0, sizeof crowd);
    clock_stand();
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(tw_loop_add_in(loop, &crowd[i], 20 * MS), 0);
    clock_go();
}

void test_a_turn_is_bounded_and_other_events_come_in_between(void **state)
{
    (void)state;
    attach(on_crowd, BUDGET);
    watch_always();
    file_crowd();
    kind.run(base);
    assert_int_equal(calls, CROWD);
    assert_in_range(since_max, 1, 2 * BUDGET); /* twice, when the loop reorders its callbacks */
    assert_true(served >= CROWD / BUDGET / 2);
}

/* The loop does not sleep between two passes either: there is one wait for each pass, which returns at
 * once. */
void test_the_rest_follows_at_once_when_nothing_else_happens(void **state)
{
    (void)state;
    attach(on_crowd, BUDGET);
    calls = 0;
    watched = false;
    file_crowd();
    waits = sets = 0;
    kind.run(base);
    assert_int_equal(calls, CROWD);
    assert_in_range(waits, CROWD / BUDGET - 1, 2 * CROWD / BUDGET + 8);
    assert_in_range(sets, 0, 4); /* not one for each pass */
}
