/* SPDX-License-Identifier: MIT
 *
 * Runs a load on a real wheel and counts its work, to check the forecast of `tickwheel plan`. No times are
 * measured.
 *
 *     plan_load where OVERFLOW LEVELS NOW DELAY...              Prints the level on which each delay is filed.
 *     plan_load run MODE OVERFLOW LEVELS TIMERS MAX TICKS SEED  Prints the work of a load, as JSON.
 *     plan_load sleep ...                                       The same; polls only when the wheel has work.
 *
 * LEVELS is slots:span,slots:span,... Modes:
 *     constant   Each timer that fires is filed again with a delay of MAX.
 *     uniform    Each timer that fires is filed again with a random delay, 1 to MAX.
 *     cancel:C   As constant; besides, on each tick C random timers are cancelled and filed again.
 *     together   All timers are filed at once with a delay of MAX.
 * The first deadlines are random and chosen so that the load is the same from the first tick on.
 */
#include "tests/support/level.h"
#include "tests/support/random.h"
#include <tickwheel/wheel.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wheel/private.h>

enum { START = 123456789 }; /* not a multiple of a slot's span */

static size_t grown;

static void *grow(void *arg, void *old, size_t size)
{
    (void)arg;
    if (old != NULL) {
        free(old);
        return NULL;
    }
    grown += size;
    return malloc(size);
}

static struct tw_wheel *make(const char *overflow, const char *levels, uint64_t now, size_t *bytes)
{
    struct tw_geometry g = {.levels = 0, .overflow = TW_OVERFLOW_REJECT};
    struct tw_wheel *wheel;
    g.overflow = strcmp(overflow, "grow") == 0     ? TW_OVERFLOW_GROW
                 : strcmp(overflow, "rounds") == 0 ? TW_OVERFLOW_ROUNDS
                                                   : TW_OVERFLOW_REJECT;
    for (char *at = (char *)(uintptr_t)levels; *at != '\0'; at += *at == ',') {
        g.level[g.levels].slots = (uint32_t)strtoul(at, &at, 10);
        g.level[g.levels++].span = strtoull(at + 1, &at, 10);
    }
    *bytes = tw_wheel_size(&g);
    if (tw_wheel_new(&wheel, &g, now) != 0)
        exit(2);
    tw__wheel_on_grow(wheel, grow, NULL);
    return wheel;
}

/* ---- where ----------------------------------------------------------------------------------------------- */

static void print_place(const char *overflow, const char *levels, uint64_t now, uint64_t delay)
{
    size_t bytes;
    struct tw_wheel *wheel = make(overflow, levels, now, &bytes);
    struct tw_timer timer;
    tw_timer_init(&timer);
    int level = -1;
    if (tw_wheel_add_in(wheel, &timer, delay) == 0)
        for (uint32_t l = 0; l < tw_wheel_levels(wheel); l++)
            if (level_info(wheel, l).filed > 0)
                level = (int)l;
    printf("%d\n", level);
    tw_wheel_free(wheel);
}

/* ---- run ------------------------------------------------------------------------------------------------- */

struct load {
    const char *mode;
    uint64_t timers, max, ticks, cancels, wakes;
    bool sleeps;
    struct tw_timer *timer;
    struct rng rng;
};

static double fraction(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) / 9007199254740992.0;
}

/* The delay that a timer still has at the start. */
static uint64_t first_delay(struct load *load)
{
    double max = (double)load->max, u = fraction(&load->rng);
    if (load->mode[0] == 't')
        return load->max;
    if (load->mode[0] == 'u') /* the density falls to 0 at max */
        return 1 + (uint64_t)((max - 1) * (1 - sqrt(1 - u)));
    if (load->cancels == 0)
        return 1 + (uint64_t)((max - 1) * u);
    double leave = (double)load->cancels / (double)load->timers; /* ages are exponential, cut off at max */
    return load->max - (uint64_t)(-log(1 - u * (1 - exp(-leave * max))) / leave * 0.999999);
}

static uint64_t next_delay(struct load *load)
{
    return load->mode[0] == 'u' ? 1 + rng_below(&load->rng, load->max) : load->max;
}

static void file(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t delay)
{
    if (tw_wheel_add_in(wheel, timer, delay) != 0) {
        fprintf(stderr, "plan_load: the wheel refused a delay of %" PRIu64 "\n", delay);
        exit(1);
    }
}

static void cancel_some(struct load *load, struct tw_wheel *wheel)
{
    for (uint64_t i = 0; i < load->cancels; i++) {
        struct tw_timer *timer = &load->timer[rng_below(&load->rng, load->timers)];
        tw_wheel_cancel(wheel, timer);
        file(wheel, timer, load->max);
    }
}

static uint64_t fire(struct load *load, struct tw_wheel *wheel, uint64_t now)
{
    uint64_t fired = 0;
    if (load->sleeps && tw_wheel_next_bound(wheel) > now)
        return 0;
    load->wakes++;
    for (struct tw_timer *timer; (timer = tw_wheel_poll(wheel, now)) != NULL; fired++) {
        if (tw_timer_deadline(timer) != now) {
            fprintf(stderr, "plan_load: fired at %" PRIu64 ", due at %" PRIu64 "\n", now,
                    tw_timer_deadline(timer));
            exit(1);
        }
        if (load->mode[0] != 't')
            file(wheel, timer, next_delay(load));
    }
    return fired;
}

static int run(struct load *load, const char *overflow, const char *levels)
{
    size_t bytes;
    struct tw_wheel *wheel = make(overflow, levels, START, &bytes);
    uint64_t worst = 0, due = 0, fired = 0;
    for (uint64_t i = 0; i < load->timers; i++)
        file(wheel, &load->timer[i], first_delay(load));
    for (uint64_t tick = 1; tick <= load->ticks; tick++) {
        cancel_some(load, wheel);
        uint64_t before = tw_wheel_refiled(wheel), now = fire(load, wheel, START + tick);
        uint64_t refiled = tw_wheel_refiled(wheel) - before;
        worst = refiled > worst ? refiled : worst;
        due = now > due ? now : due;
        fired += now;
    }
    printf("{\"worst\": %" PRIu64 ", \"due_worst\": %" PRIu64 ", \"fired\": %" PRIu64 ", \"refiled\": %" PRIu64
           ", \"bytes\": %zu, \"levels\": %" PRIu32 ", \"wakes\": %" PRIu64 "}\n",
           worst, due, fired, tw_wheel_refiled(wheel), bytes + grown, tw_wheel_levels(wheel), load->wakes);
    tw_wheel_free(wheel);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 4 && strcmp(argv[1], "where") == 0) {
        for (int i = 5; i < argc; i++)
            print_place(argv[2], argv[3], strtoull(argv[4], NULL, 10), strtoull(argv[i], NULL, 10));
        return 0;
    }
    if (argc != 9 || (strcmp(argv[1], "run") != 0 && strcmp(argv[1], "sleep") != 0))
        return 2;
    struct load load = {.mode = argv[2],
                        .sleeps = argv[1][0] == 's',
                        .timers = strtoull(argv[5], NULL, 10),
                        .max = strtoull(argv[6], NULL, 10),
                        .ticks = strtoull(argv[7], NULL, 10)};
    if (strncmp(load.mode, "cancel:", 7) == 0)
        load.cancels = strtoull(load.mode + 7, NULL, 10);
    rng_init(&load.rng, strtoull(argv[8], NULL, 10));
    load.timer = calloc(load.timers, sizeof *load.timer);
    int status = load.timer == NULL ? 2 : run(&load, argv[3], argv[4]);
    free(load.timer);
    return status;
}
