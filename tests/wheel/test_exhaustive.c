/* SPDX-License-Identifier: MIT
 *
 * All small geometries, at every (now, delay):
 *   - A timer fires on its tick.
 *   - A visit up to its tick meets it, and no visit that ends before.
 *   - Of two timers with one deadline, the timer that was filed first fires first. Its level does not matter.
 *   - A timer that is filed for now fires after all due timers.
 *
 * TICKWHEEL_SLOTS in the environment is the number of slots up to which rings of three levels are tried in the
 * usual rounds (4).
 */
#include "tests/support/extent.h"

#include <tickwheel/wheel.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct scope {
    struct tw_geometry geometry;
    uint64_t turn; /* ticks of one turn of the top */
    uint64_t cases;
};

static void fail(const struct scope *scope, const char *what, uint64_t now, uint64_t delay, uint64_t other)
{
    fprintf(stderr,
            "FAILED: %s: now %" PRIu64 ", delay %" PRIu64 ", other %" PRIu64 ", overflow %d, slots/span:", what,
            now, delay, other, (int)scope->geometry.overflow);
    for (uint32_t l = 0; l < scope->geometry.levels; l++)
        fprintf(stderr, " %u/%" PRIu64, scope->geometry.level[l].slots, scope->geometry.level[l].span);
    fprintf(stderr, "\n");
    exit(1);
}

/* Makes a wheel in the memory of the wheel before. No test here ends with a timer pending. */
static struct tw_wheel *wheel_at(const struct scope *scope, uint64_t now)
{
    static char memory[1 << 16];
    struct tw_wheel *wheel;
    if (scope->geometry.overflow == TW_OVERFLOW_GROW) {
        if (tw_wheel_new(&wheel, &scope->geometry, now) != 0)
            exit(2);
    } else if (tw_wheel_init(&wheel, memory, sizeof memory, &scope->geometry, now) != 0) {
        exit(2);
    }
    return wheel;
}

static void let_go(const struct scope *scope, struct tw_wheel *wheel)
{
    if (scope->geometry.overflow == TW_OVERFLOW_GROW)
        tw_wheel_free(wheel);
}

static int count_one(void *arg, struct tw_timer *timer)
{
    (void)timer;
    ++*(int *)arg;
    return 0;
}

/* A visit up to its tick meets the wheel's only timer, and no visit that ends before does. */
static void is_visited_from_its_tick_on(const struct scope *scope, const struct tw_wheel *wheel, uint64_t due)
{
    int before = 0, then = 0;
    tw_wheel_visit_until(wheel, due - 1, count_one, &before);
    tw_wheel_visit_until(wheel, due, count_one, &then);
    if (before != 0 || then != 1)
        fail(scope, "visited wrongly", tw_wheel_now(wheel), due - tw_wheel_now(wheel), 0);
}

/* Every (now, delay), polled tick by tick, and in one jump. */
static void fires_on_its_tick(struct scope *scope, uint64_t now, uint64_t delay, bool jump)
{
    struct tw_wheel *wheel = wheel_at(scope, now);
    struct tw_timer timer = {0};
    int error = tw_wheel_add_in(wheel, &timer, delay);
    if ((error != 0) != (delay > tw_wheel_range(wheel)))
        fail(scope, "refused or taken wrongly", now, delay, 0);
    uint64_t due = now + (delay == 0 ? 1 : delay);
    if (error == 0) {
        if (tw_wheel_next_exact(wheel) != due || tw_wheel_next_bound(wheel) > due)
            fail(scope, "next is wrong", now, delay, 0);
        is_visited_from_its_tick_on(scope, wheel, due);
        for (uint64_t t = jump ? due - 1 : now; t < due; t++)
            if (tw_wheel_poll(wheel, t) != NULL)
                fail(scope, "early", now, delay, t);
        is_visited_from_its_tick_on(scope, wheel, due);
        if (tw_wheel_poll(wheel, due) != &timer)
            fail(scope, "late or lost", now, delay, due);
    }
    let_go(scope, wheel);
    scope->cases++;
}

/* Two timers for one deadline, filed at `now` and `apart` ticks later, with a poll on each tick between. */
static void fires_in_filing_order(struct scope *scope, uint64_t now, uint64_t delay, uint64_t apart)
{
    struct tw_wheel *wheel = wheel_at(scope, now);
    struct tw_timer older = {0}, newer = {0};
    uint64_t due = now + delay;
    if (tw_wheel_add_at(wheel, &older, due) == 0) {
        for (uint64_t t = now; t <= now + apart; t++)
            if (tw_wheel_poll(wheel, t) != NULL)
                fail(scope, "early", now, delay, apart);
        if (tw_wheel_add_at(wheel, &newer, due) != 0)
            fail(scope, "refused, nearer than the first", now, delay, apart);
        if (tw_wheel_check(wheel) != NULL)
            fail(scope, tw_wheel_check(wheel), now, delay, apart);
        for (uint64_t t = now + apart + 1; t < due; t++)
            if (tw_wheel_poll(wheel, t) != NULL)
                fail(scope, "early", now, delay, apart);
        if (tw_wheel_poll(wheel, due) != &older || tw_wheel_poll(wheel, due) != &newer)
            fail(scope, "not in the order of filing", now, delay, apart);
    }
    let_go(scope, wheel);
    scope->cases++;
}

static void expect_next(const struct scope *scope, struct tw_wheel *wheel, uint64_t tick,
                        const struct tw_timer *timer, const char *what)
{
    if (tw_wheel_poll(wheel, tick) != timer)
        fail(scope, what, tick, 0, 0);
}

/* One timer for each (now, delay). On its tick, or the tick before, a second timer is filed for now; a third
 * timer is filed for now when the first has fired. */
static void now_comes_after_what_is_due(struct scope *scope, uint64_t now, uint64_t delay, uint64_t before)
{
    struct tw_wheel *wheel = wheel_at(scope, now);
    struct tw_timer timer = {0}, filed_now = {0}, filed_inside = {0};
    uint64_t due = now + delay;
    if (tw_wheel_add_at(wheel, &timer, due) == 0) {
        expect_next(scope, wheel, due - before - 1, NULL, "early");
        tw_wheel_add_now(wheel, &filed_now);
        if (tw_wheel_next_bound(wheel) != tw_wheel_now(wheel) || tw_wheel_count(wheel) != 2)
            fail(scope, "filed for now, and not seen", now, delay, before);
        expect_next(scope, wheel, due, &timer, "due, and not fired before what was filed for now");
        tw_wheel_add_now(wheel, &filed_inside);
        expect_next(scope, wheel, due, &filed_now, "filed for now, and not fired after what was due");
        expect_next(scope, wheel, due, NULL, "filed inside a drain, and fired in it");
        expect_next(scope, wheel, due, &filed_inside, "filed inside a drain, and not fired in the next");
        expect_next(scope, wheel, due, NULL, "fired twice");
    }
    let_go(scope, wheel);
    scope->cases++;
}

enum { MOST = 90, BORDER = 4 };

static void all_cases(struct scope *scope)
{
    /* Two turns of the top and a few ticks show everything. A top for which that takes too long gets a part:
     * every delay on the first 90 ticks, and every delay of two turns on the ticks around the border of a
     * turn. */
    uint64_t all = scope->turn * 2 + 3, span = all < MOST ? all : MOST;
    for (uint64_t now = 0; now < span; now++)
        for (uint64_t delay = 0; delay < span; delay++)
            for (int jump = 0; jump < 2; jump++)
                fires_on_its_tick(scope, now, delay, jump);
    for (uint64_t now = scope->turn - BORDER; all > MOST && now <= scope->turn + BORDER; now++)
        for (uint64_t delay = 0; delay < all; delay++)
            for (int jump = 0; jump < 2; jump++)
                fires_on_its_tick(scope, now, delay, jump);
    uint64_t reach = span < 40 ? span : 40;
    for (uint64_t now = 0; now < reach; now++)
        for (uint64_t delay = 2; delay < reach; delay++)
            now_comes_after_what_is_due(scope, now, delay, delay % 2);
    for (uint64_t now = 0; now < reach; now++)
        for (uint64_t delay = 2; delay < reach; delay++)
            for (uint64_t apart = 1; apart < delay; apart += 1 + delay / 12)
                fires_in_filing_order(scope, now, delay, apart);
}

/* Puts every ring of 2 to `most` slots on top, at every step that it allows, and goes on from there. */
static void all_geometries(struct scope *scope, uint32_t levels, uint64_t span, uint32_t most)
{
    struct tw_geometry *g = &scope->geometry;
    for (uint32_t slots = 2; slots <= most; slots++) {
        g->level[g->levels++] = (struct tw_level){.slots = slots, .span = span};
        scope->turn = span * slots;
        if (g->levels == levels) {
            for (int overflow = TW_OVERFLOW_REJECT; overflow <= TW_OVERFLOW_GROW; overflow++) {
                g->overflow = (enum tw_overflow)overflow;
                all_cases(scope);
            }
        } else {
            for (uint32_t step = 2; step <= slots; step++)
                all_geometries(scope, levels, span * step, most);
        }
        g->levels--;
    }
}

int main(void)
{
    const char *slots = getenv("TICKWHEEL_SLOTS");
    uint64_t usual = slots != NULL ? strtoull(slots, NULL, 10) : 4;
    const uint32_t most[] = {0, 6, (uint32_t)extent(4, 6, 6), (uint32_t)extent(3, usual, 6)};
    struct scope scope = {.cases = 0};
    for (uint32_t levels = 1; levels <= 3; levels++) {
        all_geometries(&scope, levels, 1, most[levels]);
        printf("%u levels, 2 to %u slots: %" PRIu64 " cases so far\n", levels, most[levels], scope.cases);
        fflush(stdout);
    }
    return 0;
}
