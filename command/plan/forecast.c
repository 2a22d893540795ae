/* SPDX-License-Identifier: MIT
 *
 * Expected work.
 *
 * Assumption: deadlines are independent of each other, and no denser far away than near. Each tick gets
 * `rate` timers, and some of them leave the wheel before it comes. Take a stretch of `span` ticks that begins
 * `ahead` ticks from now. It holds at most the smallest of
 *
 * - rate * span timers,
 * - the timers whose deadlines lie between `ahead` and `max`,
 * - timers * span / (ahead + span).
 *
 * This stretch is the slot that level l hands down next. It hands down one slot in every `span` ticks.
 *
 * Worst work.
 *
 * The pacing rule (docs/wheel.md) divides the timers filed in a slot, including those since cancelled, by the
 * slack. On average, at most rate * span timers are filed in a slot: the timers added for its ticks.
 * Bernstein's inequality bounds how far chance exceeds this average (Boucheron, Lugosi and Massart,
 * "Concentration Inequalities", 2013, chapter 2). A Poisson variable of mean m exceeds
 * m + sqrt(2 m x) + x / 3 with a probability of at most exp(-x). It stays below m - sqrt(2 m x) with a
 * probability that is no greater. With x = 28 this is one in 1.4e12 for each slot.
 */
#include "forecast.h"

#include "text.h"

#include <math.h>

enum { SMALL_SLOT = 32, ROWS = 4 };

static const double CHANCE = 28; /* x: minus the logarithm of the probability of a fuller slot */

const char FORECAST_SOURCE[] = "bench/results/2026-11-21-wheel/wheel.tsv";

/* The row "steady" of that file: fire a timer and add it again, including its refiling in between. A test
 * compares these numbers with the file. */
static const double SIZES[ROWS] = {1e3, 1e5, 1e6, 1e7};
static const struct measured {
    const char *preset;
    double ns[ROWS];
} MEASURED[] = {
    {"default", {103.061, 30.459, 31.842, 113.305}}, {"small", {215.743, 91.969, 91.498, 67.508}},
    {"clock", {178.496, 72.246, 66.048, 42.189}},    {"hashed", {152.439, 129.743, 130.144, 140.027}},
    {"growing", {149.399, 67.697, 64.798, 59.912}},
};

/* ---- chance ---------------------------------------------------------------------------------------------- */

static double at_most(double mean, double all)
{
    return fmin(floor(mean + sqrt(2 * mean * CHANCE) + CHANCE / 3), all);
}

static double at_least(double mean)
{
    return fmax(0, mean - sqrt(2 * mean * CHANCE));
}

/* ---- refiling -------------------------------------------------------------------------------------------- */

/* Timers that a level hands down on a tick, on average. */
static double flow(const struct layout_level *level, const struct load *load)
{
    double span = (double)level->span, ahead = (double)level->ahead;
    double within = fmin(fmax(load->max - ahead, 0) / span, 1);
    return fmin(load->rate * within, load->timers / (ahead + span));
}

/* Timers that lie beyond a turn of the top level. Each turn meets them and puts them back. */
static double far_timers(const struct layout *layout, const struct load *load)
{
    double turn = (double)layout->turn;
    if (layout->turn == 0 || layout->range < UINT64_MAX || load->max <= turn)
        return 0;
    return load->timers * (1 - turn / load->max);
}

static double far_per_tick(const struct layout *layout, const struct load *load)
{
    return layout->turn == 0 ? 0 : far_timers(layout, load) / (double)layout->turn;
}

/* Returns an upper bound of the timers filed in a slot of level l, on average. Only the top level has far
 * timers. If timers may be cancelled, whole turns may pass in which none fires, and the wheel skips such
 * turns. The timers that are filed and cancelled meanwhile count until the slot is emptied, so the bound is
 * then all timers of the load. */
static double filed(const struct layout *layout, uint32_t l, const struct load *load)
{
    double far = l + 1 == layout->levels ? far_per_tick(layout, load) : 0;
    bool cancels = load->rate > load->timers / load->max * (1 + 1e-9);
    if (far > 0 && cancels)
        return load->timers;
    return fmin((double)layout->level[l].span * (load->rate + far), load->timers);
}

/* The most timers that a level refiles on one tick, if `mean` timers are filed in each slot. One tick may
 * refile the last part of a slot and all of the next slot, if the next slot is small. */
static double share(const struct layout_level *level, double mean, double all)
{
    double most = at_most(mean, all);
    if (level->slack == 0)
        return most;
    double paced = most > SMALL_SLOT ? floor(most / (double)level->slack) + 1 : 0;
    return paced + (at_least(mean) <= SMALL_SLOT ? fmin(most, SMALL_SLOT) : 0);
}

/* A wheel of one level looks at all timers in the slot of a tick, due or not. */
static void forecast_ring(struct forecast *f, const struct layout *layout, const struct load *load)
{
    double passed = load->rate + far_per_tick(layout, load);
    f->refiled = fmin(passed, load->timers);
    f->worst = at_most(f->refiled, load->timers);
    f->together = load->timers;
}

static void forecast_levels(struct forecast *f, const struct layout *layout, const struct load *load)
{
    f->refiled = far_per_tick(layout, load);
    for (uint32_t l = 1; l < layout->used; l++) {
        const struct layout_level *level = &layout->level[l];
        f->refiled += flow(level, load);
        f->worst += share(level, filed(layout, l, load), load->timers);
        f->together += level->slack == 0
                           ? load->timers
                           : floor(load->timers / (double)level->slack) + 1 + fmin(load->timers, SMALL_SLOT);
    }
}

/* ---- time ------------------------------------------------------------------------------------------------ */

/* Takes the measurement with as many timers as the load, or the next larger one; for a larger load, the
 * largest. */
static void take_measured(struct forecast *f, double timers, const char *preset)
{
    const struct measured *row = MEASURED;
    for (size_t i = 0; i < sizeof MEASURED / sizeof *MEASURED; i++)
        if (text_begins(preset, MEASURED[i].preset))
            row = &MEASURED[i];
    int size = 0;
    while (size + 1 < ROWS && SIZES[size] < timers)
        size++;
    f->unit_ns = row->ns[size];
    f->measured = SIZES[size];
    f->extrapolated = timers > SIZES[size];
}

/* A sleeping caller wakes for ticks with due timers and for slots to refile. Each timer causes at most one
 * wake-up on its tick and one on each level. */
static double wake_ups(const struct forecast *f)
{
    return fmin(1 - exp(-f->due) + f->refiled, 1);
}

struct forecast forecast_make(const struct layout *layout, const struct load *load, const char *preset)
{
    struct forecast f = {.due = load->rate, .far = far_timers(layout, load)};
    f.due_worst = at_most(load->rate, load->timers);
    if (layout->levels == 1)
        forecast_ring(&f, layout, load);
    else
        forecast_levels(&f, layout, load);
    take_measured(&f, load->timers, preset);
    f.pause_ns =
        ((layout->levels == 1 ? 0 : f.due_worst) + f.worst) * f.unit_ns; /* a ring looks at both at once */
    f.wakes = 1000 * wake_ups(&f);
    return f;
}
