/* SPDX-License-Identifier: MIT
 *
 * A run of tasks, and its engine: the place where its tasks wait. run.c is the loop of every run. memory.c is
 * the engine of a run whose tasks are in memory, and file.c that of --store. calls.c makes the calls of both.
 */
#ifndef COMMAND_ENGINE_H
#define COMMAND_ENGINE_H

#include "batch.h"
#include "calendar.h"
#include "children.h"
#include "reader.h"
#include "run_options.h"
#include "tally.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct run {
    const struct run_options *options;
    struct calendar calendar;
    struct reader reader;
    struct tally *tally;
    struct children *children; /* NULL: there is no --exec */
    int wake[2];               /* signals and calls write a byte */
    volatile sig_atomic_t signalled;
    volatile sig_atomic_t waits; /* the stop waits for commands: a signal ends them */
    _Atomic bool input_ended;    /* each call wakes the loop from now on */
    _Atomic bool stuck;          /* a line could not be printed */
    _Atomic bool damaged;        /* the file is, or was replaced */
    bool failed;                 /* lines cannot be put into the file */
    bool all_read;               /* the last input was read to its end */
    struct batch_tally lines;    /* by their effect, when the engine has stopped */
    uint64_t replaced;           /* tasks that a later line has replaced, if the engine knows */

    /* For an engine whose tasks do not survive the run. */
    FILE *unread;     /* receives the lines that are not read; NULL: they are left in the input */
    uint64_t wait_ns; /* the part of an interrupted `wait` that is left */
    bool rest_above;  /* the rest is on standard error: the lines after it are to begin with '#' */
};

/* For the status line. */
struct run_now {
    char before[64]; /* what only this engine knows, first in the line */
    uint64_t under_way;
    uint64_t next_ms; /* the first task that waits is due in so long; 0: not known, UINT64_MAX: none waits */
};

struct engine {
    /* Begins a run, and makes run->children. Returns false after it has printed an error. */
    bool (*start)(struct run *run);
    /* Takes a line of the kinds TASK, EVERY, MOVE or CANCEL. Returns NULL, or an error as a phrase. */
    const char *(*take)(const struct line *line);
    /* Keeps the lines that were taken, and tells news. Returns false if they cannot be kept. */
    bool (*settle)(void);
    void (*look)(struct run_now *now);
    /* Returns whether the run has a task that waits or is under way. */
    bool (*busy)(void);
    /* Ends the calls, and keeps the tasks for a later run. Returns false if some are lost, or may run twice. */
    bool (*stop)(void);
    /* Prints how many tasks are left, and how to go on with them; `out` NULL: only counts. Returns false if
     * they cannot be counted. */
    bool (*left)(FILE *out);
    /* Frees everything, also after a start that has failed. */
    void (*end)(void);
};

#endif
