/* SPDX-License-Identifier: MIT
 *
 * The times of `tickwheel run`: the calendar's, which lines are written in and which may run faster than time
 * does, and those of the scheduler's clock.
 */
#ifndef COMMAND_CALENDAR_H
#define COMMAND_CALENDAR_H

#include "task_line.h"

#include <stdbool.h>
#include <stdint.h>

/* How the two go together: where both stood at the start, and how much faster the calendar runs. */
struct calendar {
    uint64_t clock_ns, wall_ns;
    double speed;
};

/* A point in time as a line gave it. */
struct when {
    uint64_t due_ns;  /* on the scheduler's clock */
    uint64_t wall_ns; /* `absolute`: on the calendar */
    bool absolute;
};

/* A duration of the calendar as one of the clock, and back to the nearest nanosecond. Both saturate. */
uint64_t calendar_scale(const struct calendar *calendar, uint64_t ns);
uint64_t calendar_unscale(const struct calendar *calendar, uint64_t ns);

/* How long it is until a time of the clock, which may be its end: what is due then never runs. */
uint64_t calendar_left(const struct calendar *calendar, uint64_t due_ns, uint64_t now_ns);

/* A time of the clock on the calendar; at the latest the last one that a line can say. */
uint64_t calendar_wall(const struct calendar *calendar, uint64_t clock_ns);

/* When a line that is read at `now_ns` means; a date that has passed means now. */
struct when calendar_when(const struct calendar *calendar, const struct line *line, uint64_t now_ns);

/* The calendar's time of a call due at `due_ns`, of a task with that first time and (unscaled) period: whole
 * periods after the date that was given, if one was, so that nothing is lost in rounding. */
uint64_t calendar_due(const struct calendar *calendar, const struct when *first, uint64_t period_ns,
                      uint64_t due_ns);

#endif
