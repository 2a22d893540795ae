/* SPDX-License-Identifier: MIT
 *
 * A plan: what was asked, and what comes of it for each preset.
 */
#ifndef TW_TOOLS_PLAN_H
#define TW_TOOLS_PLAN_H

#include "forecast.h"
#include "shape.h"

/* What the options said. Times in nanoseconds; what was not said is 0. */
struct tw_plan_options {
    struct tw_shape_options shape;
    double timers, rate;
    uint64_t tick_ns, max_ns, lifetime_ns;
    double redis_payload;
    bool sched, redis, json, levels;
};

enum { TW_PLAN_PRESETS = 6, TW_PLAN_NAME_SIZE = TW_SHAPE_NAME_SIZE };

/* One way to do it. */
struct tw_plan_choice {
    char name[TW_PLAN_NAME_SIZE];
    struct tw_geometry geometry;
    struct tw_layout layout;
    struct tw_forecast forecast;
    bool refuses; /* delays of the asked length */
};

struct tw_plan {
    const struct tw_plan_options *options;
    uint64_t max_ticks;
    struct tw_load load;
    struct tw_plan_choice chosen;
    struct tw_plan_choice preset[TW_PLAN_PRESETS];
    uint32_t presets;     /* of them; a ring of `max` slots may not be possible */
    uint32_t recommended; /* one of them */
    const char *reason;
};

/* Bytes of a timer, and of tasks as src/sched and src/redis have them. */
enum { TW_PLAN_TIMER = 32, TW_PLAN_TASK = 64, TW_PLAN_TASK_DETAILED = 112 };

/* Bytes of a task in Redis with a payload of that size and an id of 12 bytes, as measured. */
double tw_plan_redis_bytes(double payload);

/* Reads the options.
 * Returns: -1 to go on, else an exit status: the help text was printed, or something was complained about. */
int tw_plan_read(struct tw_plan_options *options, int argc, char **argv);

/* Prints a plan for people, or as JSON. */
void tw_plan_print(const struct tw_plan *plan);
void tw_plan_print_json(const struct tw_plan *plan);

/* Prints the levels of each preset for a tick, as Markdown. */
void tw_plan_print_levels(uint64_t tick_ns);

#endif
