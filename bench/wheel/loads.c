/* SPDX-License-Identifier: MIT
 *
 * The loads: which object, which delay, in which order, and which timers must have fired at the end. Every
 * choice is made before an engine starts. So no engine pays for random numbers, and all engines get the same
 * load. The expected firings are computed object by object, without a timer structure. So the mistake of a
 * structure cannot hide in the expectation.
 */
#include "bench.h"

#include "../random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNIFORM_TICKS = 1800000, /* half an hour of milliseconds */
    DAY_TICKS = 86400000,
    BEAT_PERIOD = 1000,   /* every object gets a heartbeat about once in so many ticks, ... */
    BEATS_PER_TICK = 100, /* ... or more often, so that there are at least so many heartbeats in a tick */
    MIX_LIFE = 400, /* mean ticks from request to answer: a few per cent of the 1 s timeouts fire, 2 % of all */
    TAIL_EXACT = 1000 /* with at most so many timers, the firings at the end are checked tick by tick */
};

/* ---- random numbers ------------------------------------------------------------------------------------- */

/* A random number in (0, 1). */
static double random_unit(void)
{
    return ((double)(random_next() >> 12) + 0.5) / 4503599627370496.0;
}

static double random_normal(void)
{
    return sqrt(-2 * log(random_unit())) * cos(6.283185307179586 * random_unit());
}

static uint32_t random_lognormal(void)
{
    double delay = 1000 * exp(2 * random_normal());
    return delay < 1 ? 1 : delay > DAY_TICKS ? DAY_TICKS : (uint32_t)delay;
}

static uint32_t *array(size_t count)
{
    return bench_alloc(count * sizeof(uint32_t));
}

static uint32_t *permutation(uint32_t n)
{
    uint32_t *p = array(n);
    random_order(p, n);
    return p;
}

static uint32_t *uniform_array(size_t count, uint32_t low, uint32_t n)
{
    uint32_t *a = array(count);
    for (size_t i = 0; i < count; i++)
        a[i] = low + random_below(n);
    return a;
}

/* ---- the choices ----------------------------------------------------------------------------------------- */

/* Repeats a small load so often that its time can be measured. */
static void repeat(struct load *load, uint64_t ops)
{
    load->repeats = ops > load->timers ? (uint32_t)(ops / load->timers) : 1;
    load->ops = (uint64_t)load->repeats * load->timers;
}

static void make_adds(struct load *load, bool quick)
{
    repeat(load, quick ? 300000 : 2000000);
    load->delay = array(load->ops);
    for (uint64_t k = 0; k < load->ops; k++) {
        if (load->workload == ADD_UNIFORM)
            load->delay[k] = 1 + random_below(UNIFORM_TICKS);
        else
            load->delay[k] = load->workload == ADD_CONSTANT ? BEAT_TICKS : random_lognormal();
    }
}

static void make_cancels(struct load *load, bool quick)
{
    repeat(load, quick ? 300000 : 2000000);
    load->order = permutation(load->timers);
    load->delay = uniform_array(load->ops, 1, SPREAD_TICKS);
}

static void make_churn(struct load *load, bool quick)
{
    load->ops = quick ? 1000000 : 4000000;
    load->order = uniform_array(load->ops, 0, load->timers);
    load->delay = uniform_array(load->ops, 1, SPREAD_TICKS);
    load->first = uniform_array(load->timers, 1, SPREAD_TICKS);
}

/* In a system that has run for a while, a timer has been pushed back many times since it was filed, the last
 * time within the last period. So each timer is first filed anywhere in the next 30 s, and then moved to its
 * present deadline. */
static void make_heartbeat(struct load *load, bool quick)
{
    uint64_t per_tick =
        load->timers / BEAT_PERIOD > BEATS_PER_TICK ? load->timers / BEAT_PERIOD : BEATS_PER_TICK;
    load->ops = quick ? 1000000 : 4000000;
    load->ticks = load->ops / per_tick;
    load->order = uniform_array(load->ops, 0, load->timers);
    load->first = uniform_array(load->timers, 1, BEAT_TICKS - BEAT_PERIOD);
    load->second = uniform_array(load->timers, BEAT_TICKS - BEAT_PERIOD + 1, BEAT_PERIOD);
    load->rearm = REARM_CONSTANT;
}

static void make_steady(struct load *load, bool quick)
{
    uint64_t few = load->timers <= 1000 ? STEADY_TICKS_MAX : load->timers <= 100000 ? 60000 : 30000;
    load->ticks = load->timers > 1000000 ? 3000 : quick ? few / 2 : few;
    load->first = uniform_array(load->timers, 1, SPREAD_TICKS);
    load->rearm = REARM_UNIFORM;
}

static void make_expire(struct load *load, bool quick)
{
    repeat(load, quick || load->workload == EXPIRE_TICK ? 2000 : 1000000);
    load->ticks = SPREAD_TICKS;
    load->delay = uniform_array(load->ops, 1, SPREAD_TICKS);
}

static uint32_t random_timeout(void)
{
    static const uint32_t classes[] = {1000, 5000, 30000, 60000};
    return classes[random_below(4)];
}

/* The rest of a timeout whose request started some time ago, in a system that has run for a while. */
static uint32_t random_rest(void)
{
    for (;;) {
        double rest = random_timeout() + MIX_LIFE * log(random_unit());
        if (rest >= 1)
            return (uint32_t)rest;
    }
}

static void make_mix(struct load *load, bool quick)
{
    load->ops = quick ? 1000000 : 4000000;
    load->ticks = load->ops * MIX_LIFE / load->timers;
    load->order = uniform_array(load->ops, 0, load->timers);
    load->delay = array(load->ops);
    for (uint64_t k = 0; k < load->ops; k++)
        load->delay[k] = random_timeout();
    load->first = array(load->timers);
    for (uint32_t i = 0; i < load->timers; i++)
        load->first[i] = random_rest();
    load->rearm = REARM_CLASSES;
}

static void make_choices(struct load *load, bool quick)
{
    load->repeats = 1;
    switch (load->workload) {
    case ADD_UNIFORM:
    case ADD_CONSTANT:
    case ADD_LOGNORMAL:
        make_adds(load, quick);
        break;
    case CANCEL_RANDOM:
        make_cancels(load, quick);
        break;
    case HEARTBEAT:
        make_heartbeat(load, quick);
        break;
    case STEADY:
        make_steady(load, quick);
        break;
    case EXPIRE_TICK:
    case EXPIRE_JUMP:
        make_expire(load, quick);
        break;
    case MIX:
        make_mix(load, quick);
        break;
    case NEXT_FAR:
        load->ops = quick ? 1000000 : 10000000;
        break;
    case QUIET:
        load->ops = quick ? 200000 : 1000000;
        break;
    case EMPTY:
        load->ops = load->repeats = 100;
        break;
    default: /* the floors visit the same objects as churn */
        make_churn(load, quick);
    }
}

/* ---- the expected firings -------------------------------------------------------------------------------- */

#define NEVER UINT64_MAX

/* Counts the firings of one object's timer until a tick. */
static void settle(struct load *load, uint64_t *deadline, uint32_t id, uint64_t tick)
{
    while (*deadline <= tick) {
        tally_add(&load->expected, *deadline, id);
        *deadline = load->rearm == REARM_NONE ? NEVER : *deadline + rearm_delay(load->rearm, id, *deadline);
    }
}

/* Repeated expiry: each repeat begins on the tick on which the last one ended. */
static void expect_expiry(struct load *load)
{
    for (uint64_t k = 0; k < load->ops; k++) {
        uint64_t begin = k / load->timers * SPREAD_TICKS;
        uint64_t tick = load->workload == EXPIRE_JUMP ? begin + SPREAD_TICKS : begin + load->delay[k];
        tally_add(&load->expected, tick, load->visit[k % load->timers]);
    }
}

/* The deadlines of the timers at the beginning of the timed part. */
static void first_deadlines(const struct load *load, uint64_t *deadline)
{
    const uint32_t *from = load->second != NULL ? load->second : load->first;
    for (uint32_t i = 0; i < load->timers; i++)
        deadline[i] = from != NULL ? from[i] : NEVER;
}

/* Goes through the operations and updates the deadlines. */
static void expect_ops(struct load *load, uint64_t *deadline)
{
    bool clocked = load->workload == HEARTBEAT || load->workload == MIX;
    uint64_t tick = 0, done = clocked ? 0 : load->ops;
    for (uint64_t k = 0; k < load->ops; k++) {
        while (k >= done)
            done = load_done(load, ++tick);
        uint32_t id = load->order[k];
        settle(load, &deadline[id], id, tick);
        deadline[id] = tick + (load->workload == HEARTBEAT ? BEAT_TICKS : load->delay[k]);
    }
    if (clocked)
        for (uint32_t i = 0; i < load->timers; i++)
            settle(load, &deadline[i], i, load->ticks);
}

/* Steady runs its ticks twice: once for the mean, once for the slowest tick. */
static void expect_steady(struct load *load, uint64_t *deadline)
{
    for (uint32_t i = 0; i < load->timers; i++)
        settle(load, &deadline[i], i, load->ticks);
    load->ops = load->expected.fired;
    for (uint32_t i = 0; i < load->timers; i++)
        settle(load, &deadline[i], i, 2 * load->ticks);
}

static int compare_ticks(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* With at most TAIL_EXACT timers there are two stops for each deadline: on the tick before, where the timer
 * must not fire, and on the tick itself. With more timers there is one stop, after all deadlines. */
static void make_stops(struct load *load, const uint64_t *deadline)
{
    bool exact = load->timers <= TAIL_EXACT;
    uint64_t last = SPREAD_TICKS;
    load->stops = bench_alloc((exact ? 2 * (size_t)load->timers + 1 : 1) * sizeof *load->stops);
    for (uint32_t i = 0; i < load->timers; i++) {
        if (deadline[i] == NEVER)
            continue;
        last = deadline[i] > last ? deadline[i] : last;
        if (exact) {
            load->stops[load->stop_count++] = deadline[i] - 1;
            load->stops[load->stop_count++] = deadline[i];
        }
    }
    load->stops[load->stop_count++] = last;
    qsort(load->stops, load->stop_count, sizeof *load->stops, compare_ticks);
    for (uint32_t i = 0; i < load->timers; i++)
        if (deadline[i] != NEVER)
            tally_add(&load->expected, exact ? deadline[i] : last, i);
}

static void expect(struct load *load, bool tail)
{
    if (load->workload == EXPIRE_TICK || load->workload == EXPIRE_JUMP) {
        expect_expiry(load);
        return;
    }
    uint64_t *deadline = bench_alloc(load->timers * sizeof *deadline);
    first_deadlines(load, deadline);
    if (load->workload == STEADY)
        expect_steady(load, deadline);
    else if (load->workload >= ADD_UNIFORM && load->workload <= ADD_LOGNORMAL)
        for (uint32_t i = 0; i < load->timers; i++)
            deadline[load->visit[i]] = load->delay[load->ops - load->timers + i];
    else if (load->order != NULL && load->workload != CANCEL_RANDOM)
        expect_ops(load, deadline);
    if (tail)
        make_stops(load, deadline);
    free(deadline);
}

struct load *load_make(enum workload workload, uint32_t timers, uint64_t seed, bool quick, bool tail)
{
    struct load *load = bench_alloc(sizeof *load);
    memset(load, 0, sizeof *load);
    random_state = seed * UINT64_C(0xD1342543DE82EF95) + (uint64_t)workload;
    load->workload = workload;
    load->timers = timers;
    load->visit = permutation(timers);
    make_choices(load, quick);
    if (workload >= ADD_UNIFORM && workload <= MIX)
        expect(load, tail);
    return load;
}

void load_free(struct load *load)
{
    free(load->visit);
    free(load->order);
    free(load->first);
    free(load->second);
    free(load->delay);
    free(load->stops);
    free(load);
}
