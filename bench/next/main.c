/* SPDX-License-Identifier: MIT
 *
 * The cost of asking a wheel for its next deadline in each iteration of an event loop. In a round each load
 * runs four times, on the same wheel of TW_GEOMETRY_DEFAULT and with the same random choices:
 *
 *   - without a question
 *   - with tw_wheel_next_bound() in each iteration
 *   - with tw_wheel_next_exact() in each iteration
 *   - with every tw_wheel_next_exact() timed by itself, to find the longest call
 *
 * The cost of a question is the time of its run minus the time of the run without a question, divided by the
 * iterations. In the names of this file an iteration is a turn.
 *
 *   next_bench [--timers N] [--rounds N] [--quick]      a line for each load and round, tab-separated
 */
#include "../random.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/wheel.h>
#include <time.h>

enum { SPREAD = 60000, BEAT = 30000, PERIOD = 1000, HOUR = 3600000 };

/* Objects of one cache line, visited in random order, as a server visits connections and requests. */
struct object {
    struct tw_timer timer;
    uint64_t payload[4];
};

enum asking { NOTHING, BOUND, EXACT, EXACT_TIMED, ASKINGS };

struct load {
    const char *name;
    void (*prepare)(void);
    uint64_t (*run)(uint64_t turns); /* nanoseconds of the clock */
    uint64_t turns, quick;
};

static struct object *objects;
static struct tw_wheel *wheel;
static uint32_t timers = 1000000;
static enum asking asking;
static uint64_t sum, longest, asked_ns, asked; /* the times of single questions */

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID,
                  &now); /* does not count the time that other programs use the core */
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline void ask(void)
{
    if (asking == BOUND)
        sum += tw_wheel_next_bound(wheel);
    else if (asking == EXACT)
        sum += tw_wheel_next_exact(wheel);
    if (asking != EXACT_TIMED)
        return;
    uint64_t begin = clock_ns();
    sum += tw_wheel_next_exact(wheel);
    uint64_t ns = clock_ns() - begin;
    longest = ns > longest ? ns : longest;
    asked_ns += ns;
    asked++;
}

static inline struct tw_timer *any(void)
{
    return &objects[random_below(timers)].timer;
}

static void fill(uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < timers; i++)
        tw_wheel_add_in(wheel, &objects[i].timer, first + random_below(count));
}

/* ---- the loads ------------------------------------------------------------------------------------------- */

static void prepare_spread(void)
{
    fill(1, SPREAD);
}

/* An iteration is a tick. Each due timer fires and is filed again with a random delay. */
static uint64_t run_steady(uint64_t turns)
{
    uint64_t begin = clock_ns();
    for (uint64_t tick = 1; tick <= turns; tick++) {
        struct tw_timer *timer;
        while ((timer = tw_wheel_poll(wheel, tick)) != NULL)
            tw_wheel_add_in(wheel, timer, 1 + random_below(SPREAD));
        ask();
    }
    return clock_ns() - begin;
}

/* An iteration cancels one random timer and files it again, as fill() does. */
static uint64_t run_refiling(uint64_t turns, uint32_t first, uint32_t count)
{
    uint64_t begin = clock_ns();
    for (uint64_t i = 0; i < turns; i++) {
        struct tw_timer *timer = any();
        tw_wheel_cancel(wheel, timer);
        tw_wheel_add_in(wheel, timer, first + random_below(count));
        ask();
    }
    return clock_ns() - begin;
}

static uint64_t run_churn(uint64_t turns)
{
    return run_refiling(turns, 1, SPREAD);
}

/* Idle timeouts of 30 s, each pushed back about once a second. They were filed some time ago, anywhere in the
 * next 29 s. */
static void prepare_beats(void)
{
    fill(1, BEAT - PERIOD);
    for (uint32_t i = 0; i < timers; i++)
        tw_wheel_move_in(wheel, &objects[i].timer, BEAT - PERIOD + 1 + random_below(PERIOD));
}

/* Files expired timeouts again, as if a new connection replaced the silent one. */
static void poll_beats(uint64_t tick)
{
    struct tw_timer *timer;
    while ((timer = tw_wheel_poll(wheel, tick)) != NULL)
        tw_wheel_add_in(wheel, timer, BEAT);
}

/* An iteration is a tick, in which each timer is pushed back with a probability of one in a thousand. */
static uint64_t run_heartbeat(uint64_t turns)
{
    uint64_t begin = clock_ns();
    for (uint64_t tick = 1; tick <= turns; tick++) {
        poll_beats(tick);
        for (uint32_t i = 0; i < timers / PERIOD; i++)
            tw_wheel_move_in(wheel, any(), BEAT);
        ask();
    }
    return clock_ns() - begin;
}

/* The same timers, but an iteration pushes back one timer. */
static uint64_t run_each(uint64_t turns)
{
    uint64_t begin = clock_ns();
    for (uint64_t i = 0; i < turns; i++) {
        if (i % (timers / PERIOD) == 0)
            poll_beats(1 + i / (timers / PERIOD));
        tw_wheel_move_in(wheel, any(), BEAT);
        ask();
    }
    return clock_ns() - begin;
}

/* An iteration pushes back the timer with the earliest deadline. Each timer is pushed back once in ten
 * seconds, as by clients that ping at a fixed interval. */
static uint64_t run_in_order(uint64_t turns)
{
    uint64_t per_tick = timers / 10000 > 0 ? timers / 10000 : 1, begin = clock_ns();
    for (uint64_t i = 0; i < turns; i++) {
        if (i % per_tick == 0)
            poll_beats(1 + i / per_tick);
        tw_wheel_move_in(wheel, &objects[i % timers].timer, BEAT);
        ask();
    }
    return clock_ns() - begin;
}

static void prepare_in_order(void)
{
    for (uint32_t i = 0; i < timers; i++)
        tw_wheel_add_in(wheel, &objects[i].timer, BEAT - 10000 + (uint64_t)i * 10000 / timers);
}

/* All timers lie in one or two slots of level 2, a minute or more away. */
static void prepare_minute(void)
{
    fill(140000, 1000);
}

static uint64_t run_minute(uint64_t turns)
{
    return run_refiling(turns, 140000, 1000);
}

static void prepare_equal(void)
{
    fill(HOUR, 1);
}

static uint64_t run_equal(uint64_t turns)
{
    return run_refiling(turns, HOUR, 1);
}

static const struct load loads[] = {
    {"steady", prepare_spread, run_steady, 30000, 10000},
    {"churn", prepare_spread, run_churn, 2000000, 300000},
    {"heartbeat", prepare_beats, run_heartbeat, 6000, 1500},
    {"heartbeat, one a turn", prepare_beats, run_each, 6000000, 1500000},
    {"in order", prepare_in_order, run_in_order, 2000000, 300000},
    {"far, random", prepare_minute, run_minute, 2000000, 300000},
    {"far, equal", prepare_equal, run_equal, 2000000, 300000},
};

/* ---- main ------------------------------------------------------------------------------------------------ */

/* The time that it takes to read the clock twice. */
static double clock_cost_ns(void)
{
    enum { PAIRS = 100000 };
    uint64_t ns = 0;
    for (int i = 0; i < PAIRS; i++) {
        uint64_t begin = clock_ns();
        ns += clock_ns() - begin;
    }
    return (double)ns / PAIRS;
}

static uint64_t run_once(const struct load *load, enum asking how, uint64_t turns)
{
    if (tw_wheel_new(&wheel, NULL, 0) != 0)
        exit(2);
    memset(objects, 0, timers * sizeof *objects);
    random_state = 42;
    load->prepare();
    asking = how;
    longest = 0;
    ask(); /* the first call looks through all timers filed before, which the loop does not pay for */
    uint64_t first = longest;
    longest = asked_ns = asked = 0;
    uint64_t ns = load->run(turns);
    if (how == EXACT_TIMED)
        printf("\t%.1f\t%.3f\t%.3f", (double)asked_ns / (double)asked - clock_cost_ns(), (double)first / 1e6,
               (double)longest / 1e6);
    tw_wheel_free(wheel);
    return ns;
}

static void run_load(const struct load *load, int round, bool quick)
{
    uint64_t ns[ASKINGS], turns = quick ? load->quick : load->turns;
    for (int how = NOTHING; how < EXACT_TIMED; how++)
        ns[how] = run_once(load, (enum asking)how, turns);
    printf("%s\t%" PRIu32 "\t%d\t%" PRIu64, load->name, timers, round, turns);
    for (int how = NOTHING; how < EXACT_TIMED; how++)
        printf("\t%.1f", (double)ns[how] / (double)turns);
    printf("\t%.1f\t%.1f", ((double)ns[BOUND] - (double)ns[NOTHING]) / (double)turns,
           ((double)ns[EXACT] - (double)ns[NOTHING]) / (double)turns);
    run_once(load, EXACT_TIMED, turns);
    printf("\n");
    fflush(stdout);
}

static uint64_t number_after(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return strtoull(argv[i + 1], NULL, 0);
    return otherwise;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--build") == 0) {
        printf("compiler: %s\nflags: %s\n", __VERSION__, BENCH_FLAGS);
        return 0;
    }
    bool quick = argc > 1 && strcmp(argv[argc - 1], "--quick") == 0;
    timers = (uint32_t)number_after(argc, argv, "--timers", timers);
    int rounds = (int)number_after(argc, argv, "--rounds", quick ? 1 : 5);
    if (timers < PERIOD || (objects = malloc(timers * sizeof *objects)) == NULL)
        return 2;
    printf("load\ttimers\tround\tturns\tturn ns, asking nothing\tturn ns, asking for the bound\tturn ns, "
           "asking for the "
           "exact\tbound ns\texact ns\tquestion ns\tfirst exact ms\tlongest exact ms\n");
    for (int round = 1; round <= rounds; round++)
        for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
            run_load(&loads[i], round, quick);
    return sum == 0;
}
