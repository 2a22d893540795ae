/* SPDX-License-Identifier: MIT
 *
 * The commands of `tickwheel run --store --exec` that run now. One thread waits for their ends.
 */
#ifndef COMMAND_CHILDREN_H
#define COMMAND_CHILDREN_H

#include "job.h"

struct children;

/* Receives the end of a command, on the thread that waits. `error` is NULL if it ended with status 0, and else
 * names the status or the signal. */
typedef void children_ended_fn(void *arg, void *task, const char *error);

/* Makes room for `most` commands at once. Requires: the process has no other children.
 * Returns: NULL if there is no memory or no thread. */
struct children *children_new(size_t most, children_ended_fn *ended, void *arg);

/* Starts a command. Its end is reported with `task`, perhaps before this call has returned.
 * Requires: fewer than `most` commands run. Threads: any. Returns: 0 or an errno. */
int children_start(struct children *children, const struct job *job, void *task);

/* Ends the thread. Requires: no command runs. */
void children_free(struct children *children);

#endif
