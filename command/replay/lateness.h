/* SPDX-License-Identifier: MIT
 *
 * How late the recorded system fired its timers, by its own remarks in the trace ("f" records).
 */
#ifndef COMMAND_LATENESS_H
#define COMMAND_LATENESS_H

#include "trace.h"

struct lateness {
    uint64_t fired; /* remarks about a timer that was armed then */
    uint64_t late;  /* those after the deadline then in force */
    uint64_t early; /* those before it; they count as 0 ticks late */
    double mean;    /* ticks */
    uint64_t p99, max;
};

/* Reads the remarks of a trace. Returns: 0, or -1 when there is no memory. */
int lateness_read(struct lateness *lateness, const struct trace *trace);

#endif
