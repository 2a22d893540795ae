/* SPDX-License-Identifier: MIT
 *
 * The two times of `tickwheel run`. Lines name times of the calendar, which --speed lets run faster or slower
 * than real time. The scheduler has a clock of its own. Example: with --speed 60, a line "+1h" is due after
 * one minute of the clock.
 */
#ifndef COMMAND_CALENDAR_H
#define COMMAND_CALENDAR_H

#include "task_line.h"

#include <stdbool.h>
#include <stdint.h>

/* How calendar and clock relate: the value of both at the start, and how much faster the calendar runs. */
struct calendar {
    uint64_t clock_ns;
    struct instant wall;
    double speed;
};

/* A point in time from a line. */
struct when {
    uint64_t due_ns;     /* on the scheduler's clock; UINT64_MAX: beyond its end, after 584 years */
    struct instant wall; /* on the calendar; valid if `absolute` */
    bool absolute;       /* the line gave a date, not a duration */
};

/* Convert a duration of the calendar to a duration of the clock, and back, to the nearest nanosecond. Both
 * saturate. */
uint64_t calendar_scale(const struct calendar *calendar, uint64_t ns);
uint64_t calendar_unscale(const struct calendar *calendar, uint64_t ns);

/* Returns the calendar's duration from `now_ns` to `due_ns`: 0 if that has passed, and UINT64_MAX if `due_ns`
 * is the end of the clock, where a task never runs. */
uint64_t calendar_left(const struct calendar *calendar, uint64_t due_ns, uint64_t now_ns);

/* Converts a time of the clock to the calendar. The end of the clock is the end of the year 9999. */
struct instant calendar_wall(const struct calendar *calendar, uint64_t clock_ns);

/* Returns the time that a line names, if the line is read at `now_ns`. A date that has passed means now. */
struct when calendar_when(const struct calendar *calendar, const struct line *line, uint64_t now_ns);

/* Returns the calendar's time of a call that is due at `due_ns`. `first` is the first time of its task,
 * `period_ns` the period as the line gave it. If the line gave a date, the result is whole periods after that
 * date, so that no rounding error adds up. Example: the third call of "every 1h @2026-12-01T09:00:00Z" is due
 * at 11:00:00.000. */
struct instant calendar_due(const struct calendar *calendar, const struct when *first, uint64_t period_ns,
                            uint64_t due_ns);

#endif
