/* SPDX-License-Identifier: MIT
 *
 * The commands of `tickwheel run --exec` that run now. One thread waits for their ends, and ends those that
 * take too long.
 */
#ifndef COMMAND_CHILDREN_H
#define COMMAND_CHILDREN_H

#include "job.h"

struct children;

/* Receives the end of a command, on the thread that waits. `error` is NULL if it has done its work, and else
 * names the exit status, the signal or the timeout. */
typedef void children_ended_fn(void *arg, void *task, const char *error);

/* Makes room for `most` commands at once. A command that runs for timeout_ms has failed: it gets SIGTERM and,
 * JOB_KILL_MS later, SIGKILL; 0: it may run for ever. SIGCHLD is blocked in the calling thread from now on.
 * Requires: every other thread blocks SIGCHLD.
 * Returns: NULL if there is no memory, no descriptor or no thread, with errno set. */
struct children *children_new(size_t most, uint64_t timeout_ms, children_ended_fn *ended, void *arg);

/* Starts a command. Its end is reported with `task`, perhaps before this call has returned.
 * Requires: fewer than `most` commands run. Threads: any. Returns: 0 or an errno. */
int children_start(struct children *children, const struct job *job, void *task);

/* Ends the thread. Requires: no command runs. */
void children_free(struct children *children);

#endif
