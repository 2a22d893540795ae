/* SPDX-License-Identifier: MIT
 *
 * A recorded trace of timer operations in memory. docs/trace-format.md describes the file.
 */
#ifndef COMMAND_RECORD_H
#define COMMAND_RECORD_H

#include <stddef.h>
#include <stdint.h>

enum { TRACE_ID_MAX = 16777215, TRACE_NOTE_SIZE = 96 };

/* The operations of a record, with their letters in the file. */
enum { RECORD_ADD = 'a', RECORD_MOVE = 'm', RECORD_CANCEL = 'c', RECORD_FIRED = 'f' };

struct record {
    uint64_t tick;
    uint64_t deadline; /* of `a` and `m` */
    uint64_t line;     /* line number in the file, for messages */
    uint32_t id;
    char what;
};

struct trace {
    const char *path;             /* for messages: as the user gave it, or "standard input" */
    const char *name;             /* for titles: without folders */
    char source[TRACE_NOTE_SIZE]; /* value of the note "# source:", or empty */
    char tick[TRACE_NOTE_SIZE];   /* value of the note "# tick:", or empty */
    double tick_ns;               /* length of a tick; 0 if the trace does not tell it */
    uint64_t first_tick, last_tick;
    uint32_t ids; /* one more than the largest id; 0 if there are no records */
    size_t count, room;
    struct record *records;
};

/* Reads a whole trace ("-" is standard input) and checks every line.
 * Returns: an exit status; unless it is COMMAND_GOOD, an error has been printed and the trace is empty. */
int trace_load(struct trace *trace, const char *path);

/* Removes the "f" records, which tell when the recorded system fired. The other records are the wheel's
 * input. */
void trace_drop_remarks(struct trace *trace);

void trace_free(struct trace *trace);

#endif
