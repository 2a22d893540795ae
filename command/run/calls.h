/* SPDX-License-Identifier: MIT
 *
 * The calls of a run: the lines that it prints, and its commands. Threads: any.
 */
#ifndef COMMAND_CALLS_H
#define COMMAND_CALLS_H

#include "engine.h"
#include "job.h"

/* Wakes the loop after a call, if that waits for the last one. `stop`: in any case. */
void calls_wake(struct run *run, bool stop);

/* Returns whether the run is to stop. Threads: the main thread. */
bool calls_stop(struct run *run);

/* Begins a call: counts it, as tally_call() does, and without --exec prints its line. Bytes that are not
 * printable are escaped if the task is in a queue; else the line is as it was read. Returns false if the line
 * cannot be printed: then the run stops. */
bool calls_begin(struct run *run, const struct job *job, bool before_run);

#endif
