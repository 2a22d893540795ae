/* SPDX-License-Identifier: MIT
 *
 * What a wheel will have to do under a load: on average, at worst, and how long that takes on the machine that
 * the benchmark ran on.
 */
#ifndef COMMAND_FORECAST_H
#define COMMAND_FORECAST_H

#include "layout.h"

/* So many timers pending, none with a delay above `max`, deadlines independent of each other. Times are in
 * ticks. */
struct load {
    double timers;
    double rate; /* timers added on a tick; as many leave it, fired or cancelled */
    double max;
};

struct forecast {
    double due;        /* timers due on a tick, on average, if none is cancelled */
    double due_worst;  /* on the fullest tick */
    double refiled;    /* timers refiled on a tick, on average: at most */
    double worst;      /* on the worst tick, by the pacing rule */
    double together;   /* on the worst tick when all deadlines lie on one tick */
    double far;        /* timers beyond a turn of the top, met once in each */
    double unit_ns;    /* measured: a timer fired, its refiling and a new add included */
    double pause_ns;   /* the worst tick: everything due on it and refiled on it */
    double measured;   /* the number of timers for which unit_ns was measured */
    bool extrapolated; /* that is fewer than the load has */
    double wakes;      /* ticks, of a thousand, on which a sleeping caller has to wake: at most */
};

/* `preset` names the row of the benchmark that is nearest: "default", "small", "clock", "hashed" or "growing";
 * anything else is taken for the default. Cost: O(levels). */
struct forecast forecast_make(const struct layout *layout, const struct load *load, const char *preset);

/* Where unit_ns comes from: a file of the repository. */
extern const char FORECAST_SOURCE[];

#endif
