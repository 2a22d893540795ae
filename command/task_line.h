/* SPDX-License-Identifier: MIT
 *
 * The lines that `tickwheel run` reads:
 *
 *     +1500ms KEY TEXT                   once, so long after the line was read
 *     @2026-12-01T09:00:00Z KEY TEXT     once, at that time
 *     every 5s [x3] [+1s|@TIME] KEY TEXT again and again; x3: three times; first after 5s, or when told
 *     move KEY +10m|@TIME                another time for a task that is pending
 *     cancel KEY
 *     wait 2s                            goes on reading after that
 *
 * An empty line, and one that starts with '#', says nothing. KEY is any word, TEXT the rest of the line.
 */
#ifndef COMMAND_TASK_LINE_H
#define COMMAND_TASK_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The last time that a line can say, in 2554. */
#define TIME_MAX_NS ((UINT64_MAX / 1000000000 - 1) * 1000000000 + 999999999)

enum line_kind { LINE_NOTHING, LINE_TASK, LINE_EVERY, LINE_MOVE, LINE_CANCEL, LINE_WAIT };

/* A line, its words pointing into it. */
struct line {
    enum line_kind kind;
    bool absolute;      /* `time_ns` is since 1970, not from now */
    uint64_t time_ns;   /* TASK, MOVE: when; EVERY: the first; WAIT: how long */
    uint64_t period_ns; /* EVERY */
    uint64_t times;     /* EVERY: 0 without an end */
    const char *key;    /* terminated */
    const char *text;   /* terminated; empty where there is none */
};

/* Takes a line, terminated and without its newline, apart; it is changed in the process.
 * Returns: NULL, or what was expected instead of what is there, as a phrase. */
const char *line_parse(char *text, struct line *line);

enum { TIME_SIZE = 32, DURATION_SIZE = 64 };

/* Writes a time since 1970 as 2026-12-01T09:00:00.000Z; to the nanosecond where that is needed to say it
 * exactly. */
void time_print(uint64_t ns, char text[TIME_SIZE]);

/* Writes a duration in the units above, exactly. */
void duration_print(uint64_t ns, char text[DURATION_SIZE]);

/* Reads a duration: numbers with units, 1h30m or 1.5s. False when it is none, or beyond 2^64 ns (584 years). */
bool duration_parse(const char *text, uint64_t *ns);

#endif
