/* SPDX-License-Identifier: MIT
 *
 * A plain test of the wheel, for a machine that has a compiler and nothing else. It tests the sentences of
 * the contract one by one. Then it compares random operations on every preset with an array that is searched
 * from end to end.
 */
#include "tests/support/random.h"

#include <tickwheel/wheel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks, failures;

#define CHECK(condition) check((condition), #condition, __LINE__)

static void check(bool good, const char *text, int line)
{
    checks++;
    if (good)
        return;
    failures++;
    printf("test_smoke.c:%d: not so: %s\n", line, text);
}

static struct tw_wheel *wheel_at(const struct tw_geometry *geometry, uint64_t now)
{
    struct tw_wheel *wheel;
    if (tw_wheel_new(&wheel, geometry, now) != 0) {
        printf("no wheel\n");
        exit(1);
    }
    return wheel;
}

/* ---- the contract ---------------------------------------------------------------------------------------- */

static void a_timer_fires_on_its_tick_and_not_before(void)
{
    struct tw_wheel *wheel = wheel_at(NULL, 1000);
    struct tw_timer timer;
    tw_timer_init(&timer);
    CHECK(!tw_timer_pending(&timer));
    CHECK(tw_wheel_add_in(wheel, &timer, 5000) == 0);
    CHECK(tw_timer_pending(&timer) && tw_timer_deadline(&timer) == 6000 && tw_wheel_count(wheel) == 1);
    CHECK(tw_wheel_next_exact(wheel) == 6000 && tw_wheel_next_bound(wheel) <= 6000);
    CHECK(tw_wheel_poll(wheel, 5999) == NULL);
    CHECK(tw_wheel_poll(wheel, 6000) == &timer && !tw_timer_pending(&timer));
    CHECK(tw_wheel_poll(wheel, 6000) == NULL && tw_wheel_now(wheel) == 6000);
    CHECK(tw_wheel_next_exact(wheel) == TW_NEVER && tw_wheel_count(wheel) == 0);
    tw_wheel_free(wheel);
}

static void a_jump_fires_all_in_order_and_equals_as_they_were_filed(void)
{
    static const uint64_t deadline[] = {70000, 9, 300, 9, 70000, 1, 9}, order[] = {5, 1, 3, 6, 2, 0, 4};
    struct tw_timer timer[7];
    struct tw_wheel *wheel = wheel_at(NULL, 0);
    for (int i = 0; i < 7; i++) {
        tw_timer_init(&timer[i]);
        CHECK(tw_wheel_add_at(wheel, &timer[i], deadline[i]) == 0);
    }
    for (int i = 0; i < 7; i++)
        CHECK(tw_wheel_poll(wheel, 100000) == &timer[order[i]]);
    CHECK(tw_wheel_poll(wheel, 100000) == NULL);
    tw_wheel_free(wheel);
}

static void a_cancelled_timer_is_silent_and_a_moved_one_keeps_its_last_deadline(void)
{
    struct tw_wheel *wheel = wheel_at(NULL, 0);
    struct tw_timer gone, later, sooner;
    tw_timer_init(&gone);
    tw_timer_init(&later);
    tw_timer_init(&sooner);
    CHECK(tw_wheel_add_at(wheel, &gone, 10) == 0);
    CHECK(tw_wheel_cancel(wheel, &gone) && !tw_wheel_cancel(wheel, &gone));
    CHECK(tw_wheel_add_at(wheel, &later, 20) == 0 && tw_wheel_move_at(wheel, &later, 4000) == 0);
    CHECK(tw_wheel_add_at(wheel, &sooner, 4000) == 0 && tw_wheel_move_at(wheel, &sooner, 30) == 0);
    CHECK(tw_wheel_poll(wheel, 3999) == &sooner && tw_wheel_poll(wheel, 3999) == NULL);
    CHECK(tw_wheel_poll(wheel, 4000) == &later && tw_wheel_poll(wheel, 4000) == NULL);
    tw_wheel_free(wheel);
}

static void a_timer_that_files_itself_again_for_the_past_waits_for_the_next_tick(void)
{
    struct tw_wheel *wheel = wheel_at(NULL, 100);
    struct tw_timer timer;
    tw_timer_init(&timer);
    CHECK(tw_wheel_add_at(wheel, &timer, 50) == 0);
    CHECK(tw_wheel_poll(wheel, 100) == NULL && tw_wheel_poll(wheel, 101) == &timer);
    CHECK(tw_wheel_add_in(wheel, &timer, 0) == 0);
    CHECK(tw_wheel_poll(wheel, 101) == NULL && tw_wheel_poll(wheel, 102) == &timer);
    CHECK(tw_wheel_poll(wheel, 3) == NULL && tw_wheel_now(wheel) == 102); /* a clock that goes back is held */
    tw_wheel_free(wheel);
}

static void the_end_of_time_is_far_and_a_ring_may_refuse(void)
{
    struct tw_wheel *wheel = wheel_at(NULL, UINT64_MAX - 10);
    struct tw_timer timer;
    tw_timer_init(&timer);
    CHECK(tw_wheel_add_in(wheel, &timer, UINT64_MAX) == 0); /* the sum saturates */
    CHECK(tw_wheel_poll(wheel, UINT64_MAX - 1) == NULL && tw_wheel_drain(wheel) == &timer);
    tw_wheel_free(wheel);

    struct tw_geometry nonsense = TW_GEOMETRY_DEFAULT;
    nonsense.level[0].slots = 0;
    CHECK(tw_geometry_check(&nonsense, NULL, 0) == TW_EGEOMETRY && tw_wheel_size(&nonsense) == 0);
    CHECK(tw_wheel_new(&wheel, &nonsense, 0) == TW_EGEOMETRY);

    wheel = wheel_at(&(struct tw_geometry)TW_GEOMETRY_SIMPLE(64), 0);
    CHECK(tw_wheel_add_in(wheel, &timer, 65) == TW_ERANGE && !tw_timer_pending(&timer));
    CHECK(tw_wheel_add_in(wheel, &timer, tw_wheel_range(wheel)) == 0 && tw_wheel_cancel(wheel, &timer));
    CHECK(strcmp(tw_strerror(TW_ERANGE), tw_strerror(TW_ENOMEM)) != 0);
    tw_wheel_free(wheel);
}

/* ---- random operations ----------------------------------------------------------------------------------- */

enum { OBJECTS = 48, STEPS = 20000 };

/* An entry of the array: one timer. `order` is the number of its filing. A moved timer has no place among
 * equal deadlines. */
struct known {
    struct tw_timer timer;
    uint64_t deadline, order;
    bool pending, moved;
};

static struct known known[OBJECTS];

/* Returns whether a timer may fire now: no pending timer has an earlier deadline, and none with the same
 * deadline was filed before it. */
static bool may_fire(const struct known *fired, uint64_t now)
{
    if (!fired->pending || fired->deadline > now)
        return false;
    for (const struct known *k = known; k < known + OBJECTS; k++) {
        if (k->pending && k->deadline < fired->deadline)
            return false;
        if (k->pending && k->deadline == fired->deadline && !k->moved && !fired->moved &&
            k->order < fired->order)
            return false;
    }
    return true;
}

static bool none_is_due(uint64_t now)
{
    for (const struct known *k = known; k < known + OBJECTS; k++)
        if (k->pending && k->deadline <= now)
            return false;
    return true;
}

static bool fire_all(struct tw_wheel *wheel, uint64_t now)
{
    struct tw_timer *timer;
    while ((timer = tw_wheel_poll(wheel, now)) != NULL) {
        struct known *fired = TW_CONTAINER(timer, struct known, timer);
        if (!may_fire(fired, now))
            return false;
        fired->pending = false;
    }
    return none_is_due(now);
}

/* Files, moves or cancels one of the timers. */
static bool touch(struct tw_wheel *wheel, struct known *k, struct rng *rng, uint64_t now, uint64_t order)
{
    uint64_t delay = rng_below(rng, rng_below(rng, 4) == 0 ? tw_wheel_range(wheel) % 100000 : 40);
    if (k->pending && rng_below(rng, 3) == 0) {
        k->pending = false;
        return tw_wheel_cancel(wheel, &k->timer);
    }
    k->moved = k->pending;
    k->order = order;
    k->deadline = now + (delay == 0 ? 1 : delay);
    bool moves = k->pending;
    k->pending = true;
    return (moves ? tw_wheel_move_in(wheel, &k->timer, delay) : tw_wheel_add_in(wheel, &k->timer, delay)) == 0;
}

/* Returns NULL, or the mistake that was found. */
static const char *agrees(struct tw_wheel *wheel, struct rng *rng)
{
    memset(known, 0, sizeof known);
    for (struct known *k = known; k < known + OBJECTS; k++)
        tw_timer_init(&k->timer);
    uint64_t now = tw_wheel_now(wheel);
    for (uint64_t step = 0; step < STEPS; step++) {
        if (rng_below(rng, 2) == 0) {
            if (!touch(wheel, &known[rng_below(rng, OBJECTS)], rng, now, step))
                return "a call was refused";
        } else {
            now += rng_below(rng, 50) == 0 ? rng_below(rng, 5000) : rng_below(rng, 4);
            if (!fire_all(wheel, now))
                return "a timer fired early, late or out of order";
        }
        const char *broken = step % 64 == 0 ? tw_wheel_check(wheel) : NULL;
        if (broken != NULL)
            return broken;
    }
    return NULL;
}

static void every_preset_agrees_with_an_array(void)
{
    const struct {
        const char *name;
        struct tw_geometry geometry;
    } presets[] = {{"default", TW_GEOMETRY_DEFAULT},    {"small", TW_GEOMETRY_SMALL},
                   {"simple", TW_GEOMETRY_SIMPLE(100)}, {"hashed", TW_GEOMETRY_HASHED(7)},
                   {"clock", TW_GEOMETRY_CLOCK},        {"growing", TW_GEOMETRY_GROWING(4)}};
    struct rng rng;
    rng_init(&rng, 20261122);
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        struct tw_wheel *wheel = wheel_at(&presets[i].geometry, 12345 * i);
        const char *mistake = agrees(wheel, &rng);
        if (mistake != NULL)
            printf("%s: %s\n", presets[i].name, mistake);
        CHECK(mistake == NULL);
        tw_wheel_free(wheel);
    }
}

int main(void)
{
    a_timer_fires_on_its_tick_and_not_before();
    a_jump_fires_all_in_order_and_equals_as_they_were_filed();
    a_cancelled_timer_is_silent_and_a_moved_one_keeps_its_last_deadline();
    a_timer_that_files_itself_again_for_the_past_waits_for_the_next_tick();
    the_end_of_time_is_far_and_a_ring_may_refuse();
    every_preset_agrees_with_an_array();
    printf("smoke: %d checks, %d failed\n", checks, failures);
    return failures != 0;
}
