/* SPDX-License-Identifier: MIT
 *
 * A plan: what was asked, and what comes of it for each preset.
 */
#ifndef COMMAND_PLAN_TYPES_H
#define COMMAND_PLAN_TYPES_H

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

#endif
