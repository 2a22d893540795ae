/* SPDX-License-Identifier: MIT
 *
 * No tick refiles more timers than the pacing rule allows. The timers are counted, not timed, with a million
 * pending.
 *
 * The bound is computed here from values that a caller can see: the population of each level's next slot.
 *     sum over levels of  population / slack + 1   (a slot of at most 32 timers: all of it at once)
 * The old way, which refiles a whole slot at once, must exceed the same bound in the same test. Otherwise the
 * test could not fail.
 */
#include "tests/support/random.h"
#include <tickwheel/wheel.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MILLION = 1000000, SMALL_SLOT = 32 };

struct load {
    const char *name;
    uint64_t ticks; /* polled one by one */
    uint64_t (*delay)(struct rng *rng);
    uint32_t each_tick;          /* timers filed on each tick; 0: all at the start */
    uint64_t push_from, push_to; /* between these ticks each timer is moved once, to 30,000 ticks later */
};

static uint64_t uniform(struct rng *rng)
{
    return 1 + rng_below(rng, 60000);
}

static uint64_t constant(struct rng *rng)
{
    (void)rng;
    return 30000;
}

/* A log-normal delay in milliseconds: median 4 seconds, sigma 1.5, by Box and Muller, cut at 20 minutes. */
static uint64_t lognormal(struct rng *rng)
{
    double u = ((double)(rng_next(rng) >> 11) + 0.5) / 9007199254740992.0;
    double v = (double)(rng_next(rng) >> 11) / 9007199254740992.0;
    double delay = 4000 * exp(1.5 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
    return delay < 1 ? 1 : delay > 1200000 ? 1200000 : (uint64_t)delay;
}

static uint64_t soon(struct rng *rng)
{
    (void)rng;
    return 500;
}

static uint64_t one_tick(struct rng *rng)
{
    (void)rng;
    return 10000000;
}

/* The ticks in which a slot is refiled: its span, less the ticks that the level below needs first. */
static uint64_t slack(const struct tw_geometry *g, uint32_t l)
{
    return l == 1 ? g->level[1].span : g->level[l].span - g->level[l - 1].span - 1;
}

/* The number of timers that the rule allows. A slot starts to be refiled when the slot before it becomes
 * current; its population is counted then. On that tick the slot before it may still refile its last share. A
 * small slot is refiled whole on that tick. */
struct bound {
    const struct tw_geometry *g;
    uint64_t population[TW_GEOMETRY_LEVELS_MAX];
};

static uint64_t share(uint64_t population, uint64_t ticks)
{
    return population > SMALL_SLOT ? population / ticks + 1 : 0;
}

static uint64_t allowed(struct bound *bound, const struct tw_wheel *wheel, uint64_t tick)
{
    uint64_t sum = 0;
    for (uint32_t l = 1; l < bound->g->levels; l++) {
        const struct tw_level *level = &bound->g->level[l];
        sum += share(bound->population[l], slack(bound->g, l));
        if (tick % level->span != 0)
            continue;
        uint32_t next = (uint32_t)((tick / level->span + 1) % level->slots);
        bound->population[l] = tw_wheel_slot_count(wheel, l, next);
        if (bound->population[l] <= SMALL_SLOT)
            sum += bound->population[l];
    }
    return sum;
}

/* Pushes back a share of the timers on each tick from push_from to push_to. */
static void push(const struct load *load, struct tw_wheel *wheel, struct tw_timer *timers, uint64_t tick)
{
    if (tick < load->push_from || tick >= load->push_to)
        return;
    uint64_t ticks = load->push_to - load->push_from, done = tick - load->push_from;
    for (uint64_t i = MILLION * done / ticks; i < MILLION * (done + 1) / ticks; i++)
        tw_wheel_move_in(wheel, &timers[i], 30000);
}

struct outcome {
    uint64_t worst, allowed, exceeded, fired;
};

static uint64_t fire_all(struct tw_wheel *wheel, uint64_t now)
{
    uint64_t fired = 0;
    while (tw_wheel_poll(wheel, now) != NULL)
        fired++;
    return fired;
}

/* Runs a load on a wheel and compares each tick with the bound of the default geometry. */
static struct outcome run(const struct load *load, const struct tw_geometry *geometry, struct tw_timer *timers,
                          bool paced)
{
    struct tw_geometry g = TW_GEOMETRY_DEFAULT;
    struct bound bound = {.g = &g, .population = {0}};
    struct tw_wheel *wheel;
    struct rng rng;
    struct outcome outcome = {0};
    uint32_t filed = 0;
    rng_init(&rng, 5);
    memset(timers, 0, MILLION * sizeof *timers);
    if (tw_wheel_new(&wheel, geometry, 0) != 0)
        exit(2);
    for (uint64_t tick = 1; tick <= load->ticks; tick++) {
        for (uint32_t i = 0; filed < MILLION && (load->each_tick == 0 || i < load->each_tick); i++)
            tw_wheel_add_in(wheel, &timers[filed++], load->delay(&rng));
        push(load, wheel, timers, tick);
        uint64_t may = paced ? allowed(&bound, wheel, tick) : outcome.allowed;
        uint64_t before = tw_wheel_refiled(wheel);
        outcome.fired += fire_all(wheel, tick);
        uint64_t refiled = tw_wheel_refiled(wheel) - before;
        outcome.exceeded += paced && refiled > may;
        outcome.worst = refiled > outcome.worst ? refiled : outcome.worst;
        outcome.allowed = may > outcome.allowed ? may : outcome.allowed;
    }
    tw_wheel_free(wheel);
    return outcome;
}

/* The default geometry without lookahead: each ring spans one slot of the level above. */
static struct tw_geometry old_way(void)
{
    struct tw_geometry g = TW_GEOMETRY_DEFAULT;
    g.level[0].slots = 512;
    for (uint32_t l = 1; l < g.levels; l++)
        g.level[l].slots /= 2;
    return g;
}

int main(void)
{
    const struct load loads[] = {
        {"uniform over 60,000 ticks", 60000, uniform, 0, 0, 0},
        {"constant 30,000 ticks, filed as time goes by", 61000, constant, 33, 0, 0},
        {"lognormal", 1200000, lognormal, 0, 0, 0},
        {"all on one tick, 10,000,000 ticks ahead", 10000001, one_tick, 0, 0, 0},
        {"all on tick 30,000, pushed back just before", 61000, constant, 0, 29700, 29990},
        {"all on tick 30,000, pushed back early", 61000, constant, 0, 5000, 5290},
        {"all on tick 500, pushed back to 30,500", 61000, soon, 0, 100, 101},
    };
    struct tw_timer *timers = malloc(MILLION * sizeof *timers);
    int failures = 0;
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        struct outcome paced = run(&loads[i], NULL, timers, true);
        const struct tw_geometry rings = old_way();
        struct outcome old = run(&loads[i], &rings, timers, false);
        bool good = paced.exceeded == 0 && paced.fired == MILLION && old.worst > paced.allowed;
        printf("%-46s worst tick %" PRIu64 " of %" PRIu64 " allowed; the old way %" PRIu64 "; fired %" PRIu64
               " %s\n",
               loads[i].name, paced.worst, paced.allowed, old.worst, paced.fired, good ? "ok" : "FAILED");
        failures += !good;
    }
    free(timers);
    return failures != 0;
}
