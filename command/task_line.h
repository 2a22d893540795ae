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
#ifndef TW_TOOLS_TASK_LINE_H
#define TW_TOOLS_TASK_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The last time that a line can say, in 2554. */
#define TW_TIME_MAX_NS ((UINT64_MAX / 1000000000 - 1) * 1000000000 + 999999999)

enum tw_line_kind { TW_LINE_NOTHING, TW_LINE_TASK, TW_LINE_EVERY, TW_LINE_MOVE, TW_LINE_CANCEL, TW_LINE_WAIT };

/* A line, its words pointing into it. */
struct tw_line {
    enum tw_line_kind kind;
    bool absolute;      /* `time_ns` is since 1970, not from now */
    uint64_t time_ns;   /* TASK, MOVE: when; EVERY: the first; WAIT: how long */
    uint64_t period_ns; /* EVERY */
    uint64_t times;     /* EVERY: 0 without an end */
    const char *key;    /* terminated */
    const char *text;   /* terminated; empty where there is none */
};

/* Takes a line, terminated and without its newline, apart; it is changed in the process.
 * Returns: NULL, or what was expected instead of what is there, as a phrase. */
const char *tw_line_parse(char *text, struct tw_line *line);

enum { TW_TIME_SIZE = 32, TW_DURATION_SIZE = 64 };

/* Writes a time since 1970 as 2026-12-01T09:00:00.000Z; to the nanosecond where that is needed to say it exactly. */
void tw_time_print(uint64_t ns, char text[TW_TIME_SIZE]);

/* Writes a duration in the units above, exactly. */
void tw_duration_print(uint64_t ns, char text[TW_DURATION_SIZE]);

/* Reads a duration: numbers with units, 1h30m or 1.5s. False when it is none, or beyond 2^64 ns (584 years). */
bool tw_duration_parse(const char *text, uint64_t *ns);

#endif
