/* SPDX-License-Identifier: MIT
 *
 * tickwheel plan: finds a wheel for a number of timers, its memory and its work on a tick.
 *
 * plan_options.c reads the options, layout.c and forecast.c do the arithmetic, plan_print.c and plan_json.c
 * print the result. This file compares the presets and recommends one.
 */
#include "figures.h"
#include "plan_types.h"
#include "weight.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HASHED_SLOTS = 512, GROWING_SLOTS = 64 };

/* ---- choices --------------------------------------------------------------------------------------------- */

static void consider(struct plan_choice *choice, const char *name, const struct tw_geometry *geometry,
                     const struct plan *plan)
{
    snprintf(choice->name, sizeof choice->name, "%s", name);
    choice->geometry = *geometry;
    layout_make(&choice->layout, geometry, plan->max_ticks);
    choice->refuses = plan->max_ticks > choice->layout.range;
    choice->forecast = forecast_make(&choice->layout, &plan->load, name);
}

static void consider_preset(struct plan *plan, const char *name, const struct tw_geometry *geometry)
{
    consider(&plan->preset[plan->presets++], name, geometry, plan);
}

/* A simple ring needs a slot for each tick of the longest delay. */
static void consider_simple(struct plan *plan)
{
    char name[SHAPE_NAME_SIZE];
    uint64_t slots = plan->max_ticks < 2 ? 2 : plan->max_ticks;
    if (slots > TW_GEOMETRY_SLOTS_MAX)
        slots = TW_GEOMETRY_SLOTS_MAX;
    snprintf(name, sizeof name, "simple:%u", (unsigned)slots);
    consider_preset(plan, name, &(struct tw_geometry)TW_GEOMETRY_SIMPLE((uint32_t)slots));
}

enum { DEFAULT, SMALL }; /* indices of these presets in plan->preset */

static void consider_presets(struct plan *plan)
{
    consider_preset(plan, "default", &(struct tw_geometry)TW_GEOMETRY_DEFAULT);
    consider_preset(plan, "small", &(struct tw_geometry)TW_GEOMETRY_SMALL);
    consider_preset(plan, "clock", &(struct tw_geometry)TW_GEOMETRY_CLOCK);
    consider_simple(plan);
    consider_preset(plan, "hashed:512", &(struct tw_geometry)TW_GEOMETRY_HASHED(HASHED_SLOTS));
    consider_preset(plan, "growing:64", &(struct tw_geometry)TW_GEOMETRY_GROWING(GROWING_SLOTS));
}

/* Recommends the small preset if the default one would take more memory than the timers in it, and one turn
 * of the small wheel takes the longest delay. Otherwise recommends the default preset. */
static void recommend(struct plan *plan)
{
    const struct layout *big = &plan->preset[DEFAULT].layout, *small = &plan->preset[SMALL].layout;
    bool few = plan->load.timers * WEIGHT_TIMER < (double)big->bytes;
    plan->recommended = few && plan->max_ticks <= small->turn ? SMALL : DEFAULT;
    if (plan->recommended == SMALL)
        plan->reason =
            "the default wheel would take more memory than its timers, and one turn of the small wheel "
            "takes the longest delay";
    else if (few)
        plan->reason = "it takes every delay; the small wheel would put the farthest timers back once a turn";
    else
        plan->reason = "it takes every delay, spreads its refiling, and takes less memory than its timers";
}

static int choose(struct plan *plan)
{
    struct shape shape;
    const struct shape_options *asked = &plan->options->shape;
    if (asked->preset == NULL && asked->geometry == NULL && asked->overflow == NULL) {
        plan->chosen = plan->preset[plan->recommended];
        return COMMAND_GOOD;
    }
    int status = shape_make(&shape, asked);
    if (status == COMMAND_GOOD)
        consider(&plan->chosen, shape.name, &shape.geometry, plan);
    return status;
}

/* ---- the load -------------------------------------------------------------------------------------------- */

static uint64_t ticks_up(uint64_t ns, uint64_t tick_ns)
{
    return ns / tick_ns + (ns % tick_ns != 0);
}

/* Little's law (Operations Research 9, 1961): the number of pending timers is the number added on a tick times
 * the ticks that a timer stays. No timer stays longer than the longest delay, or shorter than a tick. */
static int make_load(struct plan *plan)
{
    const struct plan_options *o = plan->options;
    double second = 1e9 / (double)o->tick_ns, least = o->timers / (double)plan->max_ticks;
    plan->load.timers = o->timers;
    plan->load.max = (double)plan->max_ticks;
    plan->load.rate = least;
    if (o->lifetime_ns > 0)
        plan->load.rate = o->timers / ((double)o->lifetime_ns / (double)o->tick_ns);
    if (o->rate > 0)
        plan->load.rate = o->rate / second;
    if (plan->load.rate >= least * (1 - 1e-9) && plan->load.rate <= o->timers * (1 + 1e-9))
        return COMMAND_GOOD;
    complain("tickwheel plan: --rate: expected %.6g to %.6g timers a second, found %.6g. With %.6g timers "
             "pending, the lowest rate is that of delays of --max, the highest that of delays of --tick",
             least * second, o->timers * second, o->rate, o->timers);
    return COMMAND_INPUT;
}

static int check_refusal(const struct plan_choice *chosen, const struct plan *plan)
{
    double tick = (double)plan->options->tick_ns;
    if (!chosen->refuses)
        return COMMAND_GOOD;
    complain(
        "tickwheel plan: the wheel \"%s\" refuses (TW_ERANGE) delays of more than %s ticks (%s); --max is %s "
        "ticks (%s). Try another --preset, or --overflow rounds",
        chosen->name, figure_count(chosen->layout.range).text, figure_time(chosen->layout.range, tick).text,
        figure_count(plan->max_ticks).text, figure_time(plan->max_ticks, tick).text);
    return COMMAND_WRONG;
}

int command_plan(int argc, char **argv)
{
    struct plan_options options = {.timers = 0};
    struct plan plan = {.options = &options};
    int status = plan_options_read(&options, argc, argv);
    if (status >= 0)
        return status;
    if (options.levels) {
        plan_print_levels(options.tick_ns);
        return COMMAND_GOOD;
    }
    plan.max_ticks = ticks_up(options.max_ns, options.tick_ns);
    if ((status = make_load(&plan)) != COMMAND_GOOD)
        return status;
    consider_presets(&plan);
    recommend(&plan);
    if ((status = choose(&plan)) != COMMAND_GOOD ||
        (status = check_refusal(&plan.chosen, &plan)) != COMMAND_GOOD)
        return status;
    (options.json ? plan_json : plan_print)(&plan);
    return COMMAND_GOOD;
}
