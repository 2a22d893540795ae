/* SPDX-License-Identifier: MIT
 *
 * The command of --exec, which is run for each task.
 */
#ifndef COMMAND_JOB_H
#define COMMAND_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct job {
    const char *command;    /* for the shell */
    const char *key, *text; /* any bytes */
    size_t key_size, text_size;
    const char *due;
    uint64_t late_us;
    const char *queue; /* NULL: the task is in no queue */
    uint32_t attempt;  /* of a task in a queue */
};

/* Starts the command. Returns 0 and its process, or an errno. Threads: any. */
int job_start(const struct job *job, pid_t *child);

/* Runs the command and waits until it ends. Threads: any.
 * Returns: true if the command ended with status 0. If it cannot be started, prints an error and returns
 * false. */
bool job_run(const struct job *job);

#endif
