/* SPDX-License-Identifier: MIT
 *
 * The command of --exec, which is run for each task.
 */
#ifndef COMMAND_JOB_H
#define COMMAND_JOB_H

#include <stdbool.h>
#include <stdint.h>

struct job {
    const char *command; /* for the shell */
    const char *key, *text, *due;
    uint64_t late_us;
};

/* Runs the command and waits until it ends. Threads: any.
 * Returns: true if the command ended with status 0. If it cannot be started, prints an error and returns
 * false. */
bool job_run(const struct job *job);

#endif
