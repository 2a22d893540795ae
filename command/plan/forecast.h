/* SPDX-License-Identifier: MIT
 *
 * The work of a wheel under a load: on average, at worst, and the time that it takes on the machine of the
 * benchmark.
 */
#ifndef COMMAND_FORECAST_H
#define COMMAND_FORECAST_H

#include "layout.h"

/* A load. Deadlines are independent of each other. Times are in ticks. */
struct load {
    double timers; /* pending at any time */
    double rate;   /* timers added on a tick; as many leave the wheel, fired or cancelled */
    double max;    /* the longest delay */
};

struct forecast {
    double due;        /* timers due on a tick, on average, if none is cancelled */
    double due_worst;  /* on the fullest tick */
    double refiled;    /* at most so many timers refiled on a tick, on average */
    double worst;      /* timers refiled on the worst tick, by the pacing rule */
    double together;   /* timers refiled on the worst tick if all deadlines lie on one tick */
    double far;        /* timers beyond a turn of the top level, put back once in each turn */
    double unit_ns;    /* measured: to fire a timer, its refiling and a new add included */
    double pause_ns;   /* the worst tick: to fire and refile all timers that it has to */
    double measured;   /* the number of timers with which unit_ns was measured */
    bool extrapolated; /* `measured` is less than the timers of the load */
    double wakes;      /* of a thousand ticks, a sleeping caller has to wake on at most so many */
};

/* Forecasts the work. `preset` names the nearest row of the benchmark: "default", "small", "clock", "hashed"
 * or "growing"; any other name counts as "default". Cost: O(levels). */
struct forecast forecast_make(const struct layout *layout, const struct load *load, const char *preset);

/* The file of the repository from which unit_ns is taken. */
extern const char FORECAST_SOURCE[];

#endif
