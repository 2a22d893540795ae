/* SPDX-License-Identifier: MIT
 *
 * A plan: what was asked, and what comes of it for each preset.
 */
#ifndef COMMAND_PLAN_H
#define COMMAND_PLAN_H

#include "forecast.h"
#include "shape.h"

/* What the options said. Times in nanoseconds; what was not said is 0. */
struct plan_options {
    struct shape_options shape;
    double timers, rate;
    uint64_t tick_ns, max_ns, lifetime_ns;
    double redis_payload;
    bool sched, redis, json, levels;
};

enum { PLAN_PRESETS = 6, PLAN_NAME_SIZE = SHAPE_NAME_SIZE };

/* One way to do it. */
struct plan_choice {
    char name[PLAN_NAME_SIZE];
    struct tw_geometry geometry;
    struct layout layout;
    struct forecast forecast;
    bool refuses; /* delays of the asked length */
};

struct plan {
    const struct plan_options *options;
    uint64_t max_ticks;
    struct load load;
    struct plan_choice chosen;
    struct plan_choice preset[PLAN_PRESETS];
    uint32_t presets;     /* of them; a ring of `max` slots may not be possible */
    uint32_t recommended; /* one of them */
    const char *reason;
};

/* Bytes of a timer, and of tasks as src/sched and src/redis have them. */
enum { PLAN_TIMER = 32, PLAN_TASK = 64, PLAN_TASK_DETAILED = 112 };

/* Bytes of a task in Redis with a payload of that size and an id of 12 bytes, as measured. */
double plan_redis_bytes(double payload);

/* Reads the options.
 * Returns: -1 to go on, else an exit status: the help text was printed, or something was complained about. */
int plan_read(struct plan_options *options, int argc, char **argv);

/* Prints a plan for people, or as JSON. */
void plan_print(const struct plan *plan);
void plan_print_json(const struct plan *plan);

/* Prints the levels of each preset for a tick, as Markdown. */
void plan_print_levels(uint64_t tick_ns);

#endif
