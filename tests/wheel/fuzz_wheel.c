/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the wheel: bytes are operations, and the model judges each of them.
 *
 * The first byte chooses the geometry, the second the start tick. The top bit of the second byte decides
 * whether the run calls tw_wheel_next_exact(), after which a wheel keeps bounds. Then each operation takes
 * one byte for its kind and its timer, and one to three bytes for its delay.
 */
#include "../support/fuzz.h"
#include "../support/model.h"

#include <string.h>

enum { OBJECTS = 24, CHECK_EVERY = 64 };

struct input {
    const uint8_t *at;
    size_t left;
};

struct run {
    struct tw_wheel *wheel;
    struct model model;
    struct object objects[OBJECTS];
    bool asks;
};

static uint8_t take(struct input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

/* A number of any size from few bytes: a mantissa of eight bits and an exponent. */
static uint64_t take_delay(struct input *input)
{
    uint8_t first = take(input);
    if (first < 0xC0)
        return first;
    return (uint64_t)take(input) << (first & 0x3F);
}

static struct tw_geometry take_geometry(struct input *input)
{
    uint8_t kind = take(input);
    switch (kind & 7) {
    case 0:
        return (struct tw_geometry)TW_GEOMETRY_DEFAULT;
    case 1:
        return (struct tw_geometry)TW_GEOMETRY_SMALL;
    case 2:
        return (struct tw_geometry)TW_GEOMETRY_SIMPLE(2u + (kind >> 3));
    case 3:
        return (struct tw_geometry)TW_GEOMETRY_HASHED(2u + (kind >> 3));
    case 4:
        return (struct tw_geometry)TW_GEOMETRY_GROWING(2u + (kind >> 3));
    case 5:
        return (struct tw_geometry)TW_GEOMETRY_CLOCK;
    default:
        break;
    }
    struct tw_geometry g = {.levels = 1 + (kind >> 3 & 3), .overflow = (enum tw_overflow)(kind >> 5 & 3)};
    if (g.overflow > TW_OVERFLOW_GROW)
        g.overflow = TW_OVERFLOW_ROUNDS;
    uint64_t span = 1;
    for (uint32_t l = 0; l < g.levels; l++) {
        uint8_t byte = take(input);
        uint32_t slots = 2 + (byte & 7);
        g.level[l] = (struct tw_level){.slots = slots, .span = span};
        span *= 2 + (byte >> 3) % (slots - 1);
    }
    return g;
}

static uint64_t take_start(struct input *input, bool *asks)
{
    static const uint64_t starts[] = {
        0, UINT32_MAX, 1ull << 36, (1ull << 63) - 1, UINT64_MAX - (1 << 20), UINT64_MAX - 300};
    uint8_t byte = take(input);
    *asks = byte < 0x80;
    return starts[byte % (sizeof starts / sizeof *starts)];
}

static uint64_t later(uint64_t now, uint64_t delay)
{
    return delay > UINT64_MAX - now ? UINT64_MAX : now + delay;
}

static bool taken(struct run *run, int error, uint64_t deadline)
{
    uint64_t delay = model_effective(&run->model, deadline) - run->model.now;
    fuzz_require(error == 0 || (error == TW_ERANGE && delay > tw_wheel_range(run->wheel)), "refused wrongly");
    return error == 0;
}

static void fire(struct run *run, struct tw_timer *timer, struct input *input)
{
    struct object *object = TW_CONTAINER(timer, struct object, timer);
    const char *wrong = model_fire(&run->model, object);
    fuzz_require(wrong == NULL, wrong);
    if (input->left > 0 && (*input->at & 3) == 2) { /* the callback files the timer for now */
        take(input);
        tw_wheel_add_now(run->wheel, timer);
        model_add_now(&run->model, object);
    } else if (input->left > 0 && (*input->at & 1)) { /* the callback re-arms the timer */
        uint64_t deadline = later(run->model.now, take_delay(input));
        if (taken(run, tw_wheel_add_at(run->wheel, timer, deadline), deadline))
            model_add(&run->model, object, deadline);
    }
}

static void poll(struct run *run, struct input *input, uint32_t budget_each)
{
    uint64_t now = later(run->model.now, take_delay(input));
    struct tw_timer *timer;
    enum tw_poll polled;
    uint64_t earliest = model_earliest(&run->model), bound = tw_wheel_next_bound(run->wheel);
    fuzz_require(bound <= earliest || bound == run->model.now, "next_bound is late");
    fuzz_require(run->model.count > 0 || bound == TW_NEVER, "next_bound sees work in an empty wheel");
    if (run->asks)
        fuzz_require(tw_wheel_next_exact(run->wheel) == earliest, "next_exact is wrong");
    const char *wrong = model_visit_until(&run->model, run->wheel, now);
    fuzz_require(wrong == NULL, wrong);
    model_pass(&run->model, now);
    do {
        uint32_t budget = budget_each;
        polled = tw_wheel_poll_budget(run->wheel, now, &budget, &timer);
        if (polled == TW_POLL_MORE)
            model_more(&run->model);
        if (timer != NULL)
            fire(run, timer, input);
        wrong = model_visit_until(&run->model, run->wheel, later(now, now >> 1));
        fuzz_require(wrong == NULL, wrong);
    } while (polled != TW_POLL_IDLE);
    fuzz_require(model_idle(&run->model), "a timer was due and did not fire");
}

/* The plain poll, at a later tick or an earlier one: a clock that goes back is held. */
static void poll_plainly(struct run *run, struct input *input, bool back)
{
    uint64_t now = back ? run->model.now - run->model.now / 3 : later(run->model.now, take_delay(input));
    struct tw_timer *timer;
    if (!back)
        model_pass(&run->model, now);
    while ((timer = tw_wheel_poll(run->wheel, now)) != NULL)
        fire(run, timer, input);
    fuzz_require(model_idle(&run->model), "a timer was due and did not fire");
    fuzz_require(tw_wheel_now(run->wheel) == run->model.now, "the clock is another");
}

/* A poll with a budget of 0 returns no timer. */
static void poll_with_nothing(struct run *run)
{
    struct tw_timer *timer;
    uint32_t none = 0;
    enum tw_poll polled = tw_wheel_poll_budget(run->wheel, run->model.now, &none, &timer);
    fuzz_require(polled != TW_POLL_DUE && timer == NULL, "no budget, a timer");
    if (polled == TW_POLL_MORE)
        model_more(&run->model);
    else
        fuzz_require(model_idle(&run->model), "a timer is due, and the poll says that none is");
}

/* Calls that the other operations do not make. */
static void operate_rarely(struct run *run, struct object *object, struct input *input, uint8_t byte)
{
    struct tw_timer *timer;
    uint64_t delay = take_delay(input);
    switch (byte >> 3 & 3) {
    case 0:
        if (taken(run, tw_wheel_move_in(run->wheel, &object->timer, delay), later(run->model.now, delay)))
            model_move(&run->model, object, later(run->model.now, delay));
        break;
    case 1:
        poll_with_nothing(run);
        break;
    case 2:
        timer = tw_wheel_drain(run->wheel);
        fuzz_require((timer != NULL) == (run->model.count > 0), "drain is not complete");
        if (timer != NULL)
            model_cancel(&run->model, TW_CONTAINER(timer, struct object, timer));
        break;
    default:
        poll_plainly(run, input, true);
    }
}

static void operate(struct run *run, struct input *input)
{
    uint8_t byte = take(input);
    struct object *object = &run->objects[(byte >> 3) % OBJECTS];
    uint64_t deadline;
    switch (byte & 7) {
    case 2:
        if (!object->pending) {
            tw_wheel_add_now(run->wheel, &object->timer);
            model_add_now(&run->model, object);
            break;
        } /* fallthrough */
    case 0:
    case 1:
        deadline = later(run->model.now, take_delay(input));
        if (taken(run, tw_wheel_move_at(run->wheel, &object->timer, deadline), deadline))
            model_move(&run->model, object, deadline);
        break;
    case 3:
        fuzz_require(tw_wheel_cancel(run->wheel, &object->timer) == object->pending, "cancel told wrongly");
        if (object->pending)
            model_cancel(&run->model, object);
        break;
    case 4:
        poll(run, input, 1 + (byte >> 3));
        break;
    case 5:
        poll(run, input, UINT32_MAX);
        break;
    case 6:
        operate_rarely(run, object, input, byte);
        break;
    default:
        poll_plainly(run, input, false);
        break;
    }
    fuzz_require(tw_wheel_count(run->wheel) == run->model.count, "the count is another");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {.at = data, .left = size};
    struct tw_geometry geometry = take_geometry(&input);
    static struct run run;
    memset(&run, 0, sizeof run);
    uint64_t start = take_start(&input, &run.asks);
    model_init(&run.model, start);
    fuzz_require(tw_wheel_new(&run.wheel, &geometry, start) == 0, "no wheel");
    for (uint32_t i = 1; input.left > 0; i++) {
        operate(&run, &input);
        if (i % CHECK_EVERY == 0 || input.left == 0)
            fuzz_require(tw_wheel_check(run.wheel) == NULL, "an invariant is broken");
    }
    tw_wheel_free(run.wheel);
    return 0;
}
