/* SPDX-License-Identifier: MIT
 *
 * The lines that `tickwheel run` reads:
 *
 *     +1500ms ID PAYLOAD                    Runs once, 1500 ms after the line was read.
 *     @2026-12-01T09:00:00Z ID PAYLOAD      Runs once, at this time (UTC, of the years 1970 to 9999).
 *     every 5s [x3] [+1s|@TIME] ID PAYLOAD  Repeats; with x3, three times. First after 5 s, or as given.
 *     move ID +10m|@TIME                    Gives a pending task another time.
 *     cancel ID                             Cancels a pending task.
 *     wait 2s                               Reads the next line 2 s later.
 *
 * Empty lines and lines that start with '#' are skipped. ID is any word, PAYLOAD the rest of the line.
 */
#ifndef COMMAND_TASK_LINE_H
#define COMMAND_TASK_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A time since 1970, to the last millisecond of the year 9999. Nanoseconds alone, in 64 bits, would end in the
 * year 2554. */
struct instant {
    uint64_t s, ns; /* ns: less than a second */
};

enum line_kind { LINE_NOTHING, LINE_TASK, LINE_EVERY, LINE_MOVE, LINE_CANCEL, LINE_WAIT };

/* A parsed line. `id` and `payload` point into the line. */
struct line {
    enum line_kind kind;
    bool absolute;       /* the line names a date */
    struct instant at;   /* if `absolute`: TASK, MOVE: the time; EVERY: the first time */
    uint64_t time_ns;    /* if not, the duration from now on until then; WAIT: the duration */
    uint64_t period_ns;  /* EVERY */
    uint64_t times;      /* EVERY: the number of runs; 0: without end */
    const char *id;      /* terminated */
    const char *payload; /* terminated; empty if the line has no text */
};

/* Parses a line, which is terminated and has no newline. Writes terminators into it.
 * Returns: NULL, or the error as a phrase, for example "expected an id after the time". */
const char *line_parse(char *text, struct line *line);

/* Reads +DURATION or @TIME into `absolute`, and `at` or `time_ns` of the line. Returns NULL, or the error as
 * a phrase. */
const char *when_parse(const char *word, struct line *line);
#define WHEN_EXPECTED "expected a time such as +1500ms, +1h30m or @2026-12-01T09:00:00Z"

enum { TIME_SIZE = 32, DURATION_SIZE = 64 };

/* Returns the time so many milliseconds after 1970, or nanoseconds after another time. The last one is the
 * last millisecond of the year 9999. */
struct instant instant_of_ms(uint64_t ms);
struct instant instant_after(struct instant at, uint64_t ns);

/* Writes a time as 2026-12-01T09:00:00.000Z, or with nine decimals if milliseconds are not exact. */
void time_print(struct instant at, char text[TIME_SIZE]);

/* Writes a duration exactly, in the units ns us ms s m h d: 5400 s is 1h30m. */
void duration_print(uint64_t ns, char text[DURATION_SIZE]);

/* Reads a duration: numbers with units, such as 1h30m or 1.5s. Returns false if `text` is not a duration, or
 * exceeds 2^64 ns (584 years). */
bool duration_parse(const char *text, uint64_t *ns);

#endif
