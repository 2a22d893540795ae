/* SPDX-License-Identifier: MIT
 *
 * A plan: the options and, for each preset, its layout and forecast. Its other files read the options and print
 * the plan.
 */
#ifndef COMMAND_PLAN_TYPES_H
#define COMMAND_PLAN_TYPES_H

#include "forecast.h"
#include "shape.h"

/* The options. Times are in nanoseconds; an option that was not given is 0. */
struct plan_options {
    struct shape_options shape;
    double timers, rate;
    uint64_t tick_ns, max_ns, lifetime_ns;
    double redis_payload;
    bool sched, redis, json, levels;
};

enum { PLAN_PRESETS = 6, PLAN_NAME_SIZE = SHAPE_NAME_SIZE };

/* One wheel for the load. */
struct plan_choice {
    char name[PLAN_NAME_SIZE];
    struct tw_geometry geometry;
    struct layout layout;
    struct forecast forecast;
    bool refuses; /* the longest delay of the load is beyond the wheel's range */
};

struct plan {
    const struct plan_options *options;
    uint64_t max_ticks;
    struct load load;
    struct plan_choice chosen;
    struct plan_choice preset[PLAN_PRESETS];
    uint32_t presets;     /* number of used elements of `preset` */
    uint32_t recommended; /* index in `preset` */
    const char *reason;
};

/* Reads the options.
 * Returns: -1 to go on, or an exit status after it has printed the help text or an error. */
int plan_options_read(struct plan_options *options, int argc, char **argv);

/* Print a plan: for people, and as one line of JSON. */
void plan_print(const struct plan *plan);
void plan_json(const struct plan *plan);

/* Prints the levels of each preset as Markdown, for ticks of `tick_ns`. */
void plan_print_levels(uint64_t tick_ns);

#endif
