/* SPDX-License-Identifier: MIT
 *
 * How late the recorded system fired its timers. The "f" records of a trace tell when it did.
 */
#ifndef COMMAND_LATENESS_H
#define COMMAND_LATENESS_H

#include "record.h"

struct lateness {
    uint64_t fired; /* "f" records of a timer that was armed */
    uint64_t late;  /* "f" records after the timer's deadline */
    uint64_t max;   /* ticks that the latest was late */
    double sum;     /* ticks that all were late together */
};

/* Adds the "f" records of a trace. Returns: 0, or -1 if there is no memory. */
int lateness_read(struct lateness *lateness, const struct trace *trace);

#endif
