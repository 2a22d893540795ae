/* SPDX-License-Identifier: MIT
 *
 * The commands of `tickwheel run --exec` that run now. One thread waits for their ends, and ends a
 * command that takes too long.
 */
#ifndef COMMAND_CHILDREN_H
#define COMMAND_CHILDREN_H

#include "job.h"

struct children;

enum children_end {
    CHILDREN_DONE,
    CHILDREN_FAILED,
    CHILDREN_GIVEN_UP, /* it was ended by children_give_up(), or by the end of the grace */
    CHILDREN_ENDS
};

/* Receives the end of a command, on the thread that waits. `error`, of CHILDREN_FAILED, names the exit status,
 * the signal or the timeout. */
typedef void children_ended_fn(void *arg, void *task, enum children_end end, const char *error);

/* Makes room for `most` commands at once. A command that runs for timeout_ms has failed: it gets SIGTERM and,
 * JOB_KILL_MS later, SIGKILL, as its whole process group does; then it has ended. 0: it may run for ever.
 * `ended` NULL: for children_run(). SIGCHLD is blocked in the calling thread from now on.
 * Requires: every other thread blocks SIGCHLD.
 * Returns: NULL if there is no memory, no descriptor or no thread, with errno set. */
struct children *children_new(size_t most, uint64_t timeout_ms, children_ended_fn *ended, void *arg);

/* Starts a command. Its end is reported with `task`, perhaps before this call has returned.
 * Requires: fewer than `most` commands run. Threads: any. Returns: 0 or an errno. */
int children_start(struct children *children, const struct job *job, void *task);

/* Starts a command and waits for its end. Requires: `ended` was NULL, and fewer than `most` commands run.
 * Threads: any. Returns: 0, and its end in *end; or an errno. */
int children_run(struct children *children, const struct job *job, enum children_end *end);

/* Returns how many commands run. */
size_t children_running(struct children *children);

/* Gives the commands up that run and that begin later: SIGTERM and, JOB_KILL_MS later or at the second call,
 * SIGKILL. A command that ends with status 0 has done its work. Threads: any, and signal handlers. */
void children_give_up(struct children *children);

/* The same when grace_ms have passed. */
void children_give_up_after(struct children *children, uint64_t grace_ms);

/* Ends the thread. Requires: no command runs. */
void children_free(struct children *children);

#endif
