/* SPDX-License-Identifier: MIT
 *
 * A command that is run for a task.
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

/* Runs it and waits for its end. From any thread. Returns: whether it ended with status 0; if it could not be
 * started, that has been complained about. */
bool job_run(const struct job *job);

#endif
