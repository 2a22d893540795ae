/* SPDX-License-Identifier: MIT
 *
 * A command that runs: its process and its outputs. They come to us by pipes and go on to our own outputs, and
 * the end of its standard error is kept for the error of a failed attempt.
 */
#ifndef COMMAND_CHILD_H
#define COMMAND_CHILD_H

#include "job.h"

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <task/limits.h>

enum { CHILD_TAIL = TW__TASK_ERROR_MAX, CHILD_WATCHES = 2 };

/* Bytes of an output that have been read and have not gone on yet: a terminal may take fewer. */
struct child_part {
    char bytes[PIPE_BUF];
    size_t from, size;
};

/* Zeroed: no command runs. */
struct child {
    pid_t process; /* 0: none */
    int pipe[2];   /* the ends that we read of its standard output and its standard error; -1: none */
    int writer[2]; /* the ends that the command writes to, while we hold them too; -1: we do not */
    struct child_part part[2];
    char tail[CHILD_TAIL];
    uint64_t
        errors; /* bytes of its standard error so far; the last CHILD_TAIL of them are in the ring `tail` */
};

/* Starts a command. `output`: its standard output comes by a pipe too; else it is our own. `hold`: we hold the
 * ends of the pipes open that the command writes to, until it has ended. That takes a descriptor for each pipe,
 * and saves a wake-up: else the pipe hangs up just before SIGCHLD comes. Returns 0 or an errno. */
int child_start(struct child *child, struct job *job, bool output, bool hold);

/* Passes on a part that is left, and adds the descriptors to watch. While our own output has no room, that one,
 * and not the command's pipe: then the command waits as if it wrote there itself, and we do not. `room`: had
 * our standard output and our standard error room when this round began? Returns their number, at most
 * CHILD_WATCHES. */
size_t child_watch(struct child *child, const bool room[2], struct pollfd *fds);

/* Passes on the outputs that have arrived at a descriptor, if it belongs to this command. */
void child_pass(struct child *child, int fd);

enum child_state {
    CHILD_RUNS,
    CHILD_WAITS, /* it has ended, and a part of its outputs waits for a reader of ours */
    CHILD_ENDED
};

/* Looks whether the command has ended, without waiting. If so, sends SIGTERM to the processes that are left in
 * its group, unless `leave`, passes on the rest of its outputs, and closes the pipes; *status receives the
 * status of waitpid(). */
enum child_state child_look(struct child *child, bool leave, int *status);

/* Sends a signal to the command and to all processes of its group. */
void child_signal(const struct child *child, int number);

/* Writes the error of a command that has failed: `ended` (job.h) and the end of its standard error, as UTF-8
 * of at most TW__TASK_ERROR_MAX bytes, terminated. Returns its size. */
size_t child_error(const struct child *child, const char *ended, char error[TW__TASK_ERROR_MAX + 1]);

#endif
