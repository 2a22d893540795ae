/* SPDX-License-Identifier: MIT
 *
 * The arguments of `tickwheel work`, and its help.
 */
#ifndef COMMAND_WORK_OPTIONS_H
#define COMMAND_WORK_OPTIONS_H

#include "link/link_options.h"

#include <stdbool.h>
#include <stdint.h>
#include <task/limits.h>

enum { WORK_NAME = TW__TASK_WORKER_MAX + 1 };

struct work_options {
    struct link_options link;
    const char *store; /* NULL: a server */
    const char *exec;
    char name[WORK_NAME];
    uint64_t jobs, lease_ms, grace_ms;
    uint64_t timeout_ms; /* of a command; 0: none */
    uint64_t back_ms;    /* how long a task waits whose command says that it is too early */
    bool has_grace, leave, quiet;
    char **queue;
    size_t queues;
};

/* Reads the options and the queues. Returns: -1 to go on, else an exit status. */
int work_options_parse(int argc, char **argv, struct work_options *options);

#endif
