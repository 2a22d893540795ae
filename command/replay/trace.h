/* SPDX-License-Identifier: MIT
 *
 * A recorded trace of timer operations in memory. docs/trace-format.md describes the file.
 */
#ifndef TW_TOOLS_TRACE_H
#define TW_TOOLS_TRACE_H

#include <stddef.h>
#include <stdint.h>

enum { TW_TRACE_ID_MAX = 16777215, TW_TRACE_NOTE_SIZE = 96 };

/* What a record does: the letters of the format. */
enum { TW_RECORD_ADD = 'a', TW_RECORD_MOVE = 'm', TW_RECORD_CANCEL = 'c', TW_RECORD_FIRED = 'f' };

struct tw_record {
    uint64_t tick;
    uint64_t deadline; /* of `a` and `m` */
    uint64_t line;     /* where it stands in the file, for messages */
    uint32_t id;
    char what;
};

struct tw_trace {
    const char *path;                /* for messages: as the user gave it, or "standard input" */
    const char *name;                /* for titles: without folders */
    char source[TW_TRACE_NOTE_SIZE]; /* the notes of these names, empty when there are none */
    char tick[TW_TRACE_NOTE_SIZE];
    double tick_ns; /* 0 when the trace does not say how long a tick is */
    uint64_t first_tick, last_tick;
    uint32_t ids; /* one more than the largest id; 0 when there are no records */
    size_t count, room;
    struct tw_record *records;
};

/* Reads a whole trace ("-" is standard input) and checks every line.
 * Returns: an exit status; what is wrong has been complained about, and then the trace is empty. */
int tw_trace_load(struct tw_trace *trace, const char *path);

/* Takes out the remarks about what the recorded system fired: the rest is what a wheel is to do. */
void tw_trace_drop_remarks(struct tw_trace *trace);

void tw_trace_free(struct tw_trace *trace);

#endif
