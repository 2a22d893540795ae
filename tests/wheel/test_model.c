/* SPDX-License-Identifier: MIT
 *
 * Random operations against the sorted model, over every preset and random geometries.
 *
 *   test_model [--seed N] [--operations N] [--seconds N]
 *
 * The test prints its seed first and in every failure. The same seed makes the same test again.
 */
#include "../support/extent.h"
#include "../support/model.h"
#include "../support/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OBJECTS_MAX = 100000, OPERATIONS_PER_WORLD = 40000 };

struct world {
    struct tw_wheel *wheel;
    struct tw_geometry geometry;
    struct model model;
    struct object *objects;
    struct rng rng;
    uint64_t seed, number;
    uint32_t size;       /* objects in use */
    uint32_t scale;      /* the sizes of delays: an index into the kinds of pick_delay() */
    uint64_t operations; /* operations done in this world */
    uint64_t audit;      /* operations between two checks of the whole wheel */
    bool asks;           /* calls tw_wheel_next_exact(), so the wheel keeps bounds */
};

static struct object objects[OBJECTS_MAX];

static void write_text(void *arg, const char *text, size_t length)
{
    fwrite(text, 1, length, arg);
}

static void fail(const struct world *world, const char *what)
{
    fprintf(stderr, "FAILED with --seed %" PRIu64 ", world %" PRIu64 ", operation %" PRIu64 ": %s\n",
            world->seed, world->number, world->operations, what);
    fprintf(stderr, "overflow %d, slots/span:", (int)world->geometry.overflow);
    for (uint32_t l = 0; l < world->geometry.levels; l++)
        fprintf(stderr, " %u/%" PRIu64, world->geometry.level[l].slots, world->geometry.level[l].span);
    fprintf(stderr, "\n");
    tw_wheel_dump(world->wheel, write_text, stderr);
    exit(1);
}

static void expect(const struct world *world, bool holds, const char *what)
{
    if (!holds)
        fail(world, what);
}

/* ---- worlds ---------------------------------------------------------------------------------------------- */

/* One to four levels of 2 to 13 slots: unequal, most not powers of two, with and without lookahead. */
static struct tw_geometry random_geometry(struct rng *rng)
{
    struct tw_geometry g = {.levels = (uint32_t)(1 + rng_below(rng, 4)),
                            .overflow = (enum tw_overflow)rng_below(rng, 3)};
    uint64_t span = 1;
    for (uint32_t l = 0; l < g.levels; l++) {
        uint32_t slots = (uint32_t)(2 + rng_below(rng, 12));
        g.level[l] = (struct tw_level){.slots = slots, .span = span};
        span *= 2 + rng_below(rng, slots - 1);
    }
    return g;
}

static struct tw_geometry pick_geometry(struct rng *rng)
{
    switch (rng_below(rng, 10)) {
    case 0:
    case 1:
        return (struct tw_geometry)TW_GEOMETRY_DEFAULT;
    case 2:
        return (struct tw_geometry)TW_GEOMETRY_SMALL;
    case 3:
        return (struct tw_geometry)TW_GEOMETRY_SIMPLE((uint32_t)(2 + rng_below(rng, 5000)));
    case 4:
        return (struct tw_geometry)TW_GEOMETRY_HASHED((uint32_t)(2 + rng_below(rng, 5000)));
    case 5:
        return (struct tw_geometry)TW_GEOMETRY_GROWING((uint32_t)(2 + rng_below(rng, 40)));
    case 6:
        return (struct tw_geometry)TW_GEOMETRY_CLOCK;
    default:
        return random_geometry(rng);
    }
}

static uint64_t pick_start(struct rng *rng)
{
    const uint64_t starts[] = {0,
                               rng_below(rng, 100000),
                               UINT32_MAX,
                               (1ull << 36) - 50,
                               (1ull << 63) - 1,
                               UINT64_MAX - (1 << 20),
                               UINT64_MAX - rng_below(rng, 5000)};
    return starts[rng_below(rng, sizeof starts / sizeof *starts)];
}

/* Delays of several sizes: now, near slot borders, far, and up to the end of time. */
static uint64_t pick_delay(struct world *world)
{
    struct rng *rng = &world->rng;
    switch (rng_below(rng, 3 + world->scale)) {
    case 0:
        return rng_below(rng, 4);
    case 1:
        return rng_below(rng, 70);
    case 2:
        return rng_below(rng, 2000);
    case 3:
        return rng_below(rng, 70000);
    case 4:
        return rng_below(rng, 5000000);
    case 5:
        return (1ull << rng_below(rng, 40)) + rng_below(rng, 5) - 2;
    default:
        return rng_next(rng) >> rng_below(rng, 64);
    }
}

static uint64_t later(uint64_t now, uint64_t delay)
{
    return delay > UINT64_MAX - now ? UINT64_MAX : now + delay;
}

/* Ticks of one turn of the top. In the default geometry this is 2^64, so the product must not wrap. */
static uint64_t top_turn(const struct tw_geometry *g)
{
    const struct tw_level *top = &g->level[g->levels - 1];
    return top->span > UINT64_MAX / top->slots ? UINT64_MAX : top->span * top->slots;
}

static void begin(struct world *world, uint64_t seed, uint64_t number)
{
    memset(world, 0, sizeof *world);
    rng_init(&world->rng, seed * 1000003 + number);
    world->seed = seed;
    world->number = number;
    world->geometry = pick_geometry(&world->rng);
    world->scale = (uint32_t)rng_below(&world->rng, 5);
    world->size = number % 50 == 49 ? OBJECTS_MAX : (uint32_t)(1 + rng_below(&world->rng, 2000));
    if (rng_below(&world->rng, 3) == 0)
        world->size =
            (uint32_t)(2 + rng_below(&world->rng, 30)); /* few, so that no timer hides a mistake with another */
    if (top_turn(&world->geometry) < 20000 && world->size > 100)
        world->size = 100; /* a small ring meets every far timer once a turn: this is right, but slow */
    world->audit = world->size < 50 ? 8 : 20000;
    world->asks = rng_below(&world->rng, 3) != 0;
    world->objects = objects;
    memset(objects, 0, world->size * sizeof *objects);
    uint64_t start = pick_start(&world->rng);
    model_init(&world->model, start);
    if (tw_wheel_new(&world->wheel, &world->geometry, start) != 0)
        exit(2);
}

/* ---- operations ------------------------------------------------------------------------------------------ */

static struct object *any(struct world *world)
{
    return &world->objects[rng_below(&world->rng, world->size)];
}

/* Returns whether the wheel accepted the deadline. A refusal must be one that the geometry allows. */
static bool accepted(struct world *world, int error, uint64_t deadline)
{
    if (error == 0)
        return true;
    expect(world, error == TW_ERANGE, "refused with another error than TW_ERANGE");
    uint64_t delay = model_effective(&world->model, deadline) - world->model.now;
    expect(world, delay > tw_wheel_range(world->wheel), "refused inside the range");
    return false;
}

static void add(struct world *world, struct object *object)
{
    uint64_t delay = pick_delay(world), deadline = later(world->model.now, delay);
    bool relative = rng_below(&world->rng, 2);
    int error = relative ? tw_wheel_add_in(world->wheel, &object->timer, delay)
                         : tw_wheel_add_at(world->wheel, &object->timer, deadline);
    if (accepted(world, error, deadline))
        model_add(&world->model, object, deadline);
}

static void add_now(struct world *world, struct object *object)
{
    tw_wheel_add_now(world->wheel, &object->timer);
    model_add_now(&world->model, object);
}

static void move(struct world *world, struct object *object)
{
    uint64_t delay = pick_delay(world), deadline = later(world->model.now, delay);
    bool relative = rng_below(&world->rng, 2);
    int error = relative ? tw_wheel_move_in(world->wheel, &object->timer, delay)
                         : tw_wheel_move_at(world->wheel, &object->timer, deadline);
    if (accepted(world, error, deadline))
        model_move(&world->model, object, deadline);
}

static void cancel(struct world *world, struct object *object)
{
    expect(world, tw_wheel_cancel(world->wheel, &object->timer) == object->pending, "cancel told wrongly");
    if (object->pending)
        model_cancel(&world->model, object);
}

/* Moves a pending object to the memory of an object that is not pending. */
static void relocate(struct world *world, struct object *from, struct object *to)
{
    if (from->pending && !to->pending)
        model_relocate(&world->model, from, to);
}

/* Does things that a callback may do: re-arms the timer, and touches any other timer. */
static void meddle(struct world *world, struct object *fired)
{
    uint64_t what = rng_below(&world->rng, 10);
    if (what < 2)
        add(world, fired);
    else if (what >= 8)
        add_now(world, fired);
    else if (what == 2)
        cancel(world, any(world));
    else if (what == 3)
        move(world, any(world));
    else if (what == 4)
        relocate(world, any(world), any(world));
}

static void fired(struct world *world, struct tw_timer *timer)
{
    struct object *object = TW_CONTAINER(timer, struct object, timer);
    const char *wrong = model_fire(&world->model, object);
    if (wrong != NULL)
        fail(world, wrong);
    expect(world, !tw_timer_pending(timer), "still pending after it fired");
    meddle(world, object);
}

/* Compares the exact next deadline with the model's, once in `seldom` calls, in worlds that ask for it. */
static void check_exact(struct world *world, uint64_t seldom)
{
    if (world->asks && rng_below(&world->rng, seldom) == 0)
        expect(world, tw_wheel_next_exact(world->wheel) == model_earliest(&world->model),
               "next_exact is not the earliest deadline");
}

static void poll_whole(struct world *world, uint64_t now)
{
    struct tw_timer *timer;
    while ((timer = tw_wheel_poll(world->wheel, now)) != NULL) {
        fired(world, timer);
        check_exact(world, 64);
    }
}

/* A tick to visit up to: at the ends of time, around the first deadline, or anywhere. */
static uint64_t pick_until(struct world *world)
{
    switch (rng_below(&world->rng, 6)) {
    case 0:
        return world->model.now;
    case 1:
        return UINT64_MAX;
    case 2:
        return model_earliest(&world->model) - rng_below(&world->rng, 2);
    case 3:
        return rng_below(&world->rng, 2000);
    default:
        return later(world->model.now, pick_delay(world));
    }
}

/* Checks a visit now and then, and more rarely when there are many timers to visit. */
static void check_visit(struct world *world)
{
    if (rng_below(&world->rng, world->size <= 100 ? 16 : world->size) != 0)
        return;
    const char *wrong = model_visit_until(&world->model, world->wheel, pick_until(world));
    if (wrong != NULL)
        fail(world, wrong);
}

static void add_any_now(struct world *world)
{
    struct object *object = any(world);
    if (!object->pending)
        add_now(world, object);
}

static void poll_in_pieces(struct world *world, uint64_t now)
{
    enum tw_poll polled;
    do {
        struct tw_timer *timer;
        uint32_t given = (uint32_t)rng_below(&world->rng, 9), budget = given;
        polled = tw_wheel_poll_budget(world->wheel, now, &budget, &timer);
        expect(world, budget <= given, "the budget has grown");
        expect(world, (timer != NULL) == (polled == TW_POLL_DUE), "a timer without TW_POLL_DUE");
        if (polled == TW_POLL_MORE)
            model_more(&world->model);
        if (timer != NULL)
            fired(world, timer);
        else if (polled == TW_POLL_MORE && rng_below(&world->rng, 8) == 0)
            add_any_now(world);
        else if (polled == TW_POLL_MORE && rng_below(&world->rng, 8) == 0)
            move(world, any(world));
        else if (polled == TW_POLL_MORE && rng_below(&world->rng, 8) == 0)
            relocate(world, any(world), any(world));
        check_exact(world, 16);
        check_visit(world);
    } while (polled != TW_POLL_IDLE);
}

static void check_next(struct world *world)
{
    uint64_t earliest = model_earliest(&world->model), bound = tw_wheel_next_bound(world->wheel);
    expect(world, bound <= earliest || bound == world->model.now, "next_bound is after the earliest deadline");
    expect(world, world->model.count > 0 || bound == TW_NEVER, "next_bound sees work in an empty wheel");
    check_exact(world, 1);
}

static uint64_t pick_step(struct world *world)
{
    switch (rng_below(&world->rng, world->scale > 1 ? 5 : 4)) {
    case 0:
        return 1;
    case 1:
        return rng_below(&world->rng, 64);
    case 2:
        return rng_below(&world->rng, 1500);
    case 3:
        return world->model.now > 100 && rng_below(&world->rng, 4) == 0 ? -rng_below(&world->rng, 100) : 2;
    default:
        return rng_below(&world->rng, 64) == 0 ? pick_delay(world) : rng_below(&world->rng, 30000);
    }
}

static void poll(struct world *world)
{
    uint64_t step = pick_step(world);
    uint64_t now =
        (int64_t)step < 0 && (int64_t)step > -1000 ? world->model.now + step : later(world->model.now, step);
    if (rng_below(&world->rng, 16) == 0)
        check_next(world);
    check_visit(world);
    model_pass(&world->model, now);
    if (rng_below(&world->rng, 2))
        poll_whole(world, now);
    else
        poll_in_pieces(world, now);
    expect(world, model_idle(&world->model), "a timer was due and did not fire");
    expect(world, tw_wheel_now(world->wheel) == world->model.now, "the wheel's now is another");
}

static void drain(struct world *world)
{
    struct tw_timer *timer;
    while ((timer = tw_wheel_drain(world->wheel)) != NULL) {
        struct object *object = TW_CONTAINER(timer, struct object, timer);
        expect(world, object->pending, "drained, but it is not pending");
        model_cancel(&world->model, object);
    }
    expect(world, world->model.count == 0, "drain left a timer behind");
}

/* Any object; now and then the earliest, because mistakes are likely in the remembered earliest deadline. */
static struct object *any_or_earliest(struct world *world)
{
    struct object *first = rng_below(&world->rng, 6) == 0 ? model_first(&world->model) : NULL;
    return first != NULL ? first : any(world);
}

static void operate(struct world *world)
{
    struct object *object = any_or_earliest(world);
    uint64_t what = rng_below(&world->rng, 100);
    if (what < 2 && !object->pending)
        add_now(world, object);
    else if (what < 40 && !object->pending)
        add(world, object);
    else if (what < 65)
        move(world, object);
    else if (what < 77)
        cancel(world, object);
    else if (what < 80)
        relocate(world, object, any(world));
    else if (what < 99 || rng_below(&world->rng, 300) != 0)
        poll(world);
    else
        drain(world);
    check_exact(world, world->size <= 100 ? 2 : 40);
    world->operations++;
    expect(world, tw_wheel_count(world->wheel) == world->model.count, "the count is another");
    const char *broken = world->operations % world->audit == 0 ? tw_wheel_check(world->wheel) : NULL;
    if (broken != NULL)
        fail(world, broken);
}

/* ---- main ------------------------------------------------------------------------------------------------ */

static uint64_t number_after(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return strtoull(argv[i + 1], NULL, 0);
    return otherwise;
}

static void show_progress(uint64_t done, uint64_t fired_so_far, bool last)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%" PRIu64 " operations, %" PRIu64 " firings%s", done, fired_so_far,
                last ? "\n" : "");
}

int main(int argc, char **argv)
{
    uint64_t seed = number_after(argc, argv, "--seed", (uint64_t)time(NULL));
    uint64_t operations = number_after(argc, argv, "--operations", extent(500000, 6000000, 10000000));
    uint64_t seconds = number_after(argc, argv, "--seconds", 0);
    time_t end = time(NULL) + (time_t)seconds;
    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout);
    uint64_t done = 0, fired_in_all = 0;
    for (uint64_t number = 0; seconds > 0 ? time(NULL) < end : done < operations; number++) {
        struct world world;
        begin(&world, seed, number);
        while (world.operations < OPERATIONS_PER_WORLD)
            operate(&world);
        drain(&world);
        tw_wheel_free(world.wheel);
        done += world.operations;
        fired_in_all += world.model.fired;
        show_progress(done, fired_in_all, false);
    }
    show_progress(done, fired_in_all, true);
    printf("%" PRIu64 " operations, %" PRIu64 " firings, all as the model says\n", done, fired_in_all);
    return 0;
}
