/* SPDX-License-Identifier: MIT
 *
 * A recorded trace of timer operations in memory. docs/trace-format.md describes the file.
 */
#ifndef COMMAND_TRACE_H
#define COMMAND_TRACE_H

#include <stddef.h>
#include <stdint.h>

enum { TRACE_ID_MAX = 16777215, TRACE_NOTE_SIZE = 96 };

/* What a record does: the letters of the format. */
enum { RECORD_ADD = 'a', RECORD_MOVE = 'm', RECORD_CANCEL = 'c', RECORD_FIRED = 'f' };

struct record {
    uint64_t tick;
    uint64_t deadline; /* of `a` and `m` */
    uint64_t line;     /* where it stands in the file, for messages */
    uint32_t id;
    char what;
};

struct trace {
    const char *path;             /* for messages: as the user gave it, or "standard input" */
    const char *name;             /* for titles: without folders */
    char source[TRACE_NOTE_SIZE]; /* the notes of these names, empty when there are none */
    char tick[TRACE_NOTE_SIZE];
    double tick_ns; /* 0 when the trace does not say how long a tick is */
    uint64_t first_tick, last_tick;
    uint32_t ids; /* one more than the largest id; 0 when there are no records */
    size_t count, room;
    struct record *records;
};

/* Reads a whole trace ("-" is standard input) and checks every line.
 * Returns: an exit status; what is wrong has been complained about, and then the trace is empty. */
int trace_load(struct trace *trace, const char *path);

/* Takes out the remarks about what the recorded system fired: the rest is what a wheel is to do. */
void trace_drop_remarks(struct trace *trace);

void trace_free(struct trace *trace);

#endif
