/* SPDX-License-Identifier: MIT
 *
 * The arguments of `tickwheel run`, and its help.
 */
#ifndef COMMAND_RUN_OPTIONS_H
#define COMMAND_RUN_OPTIONS_H

#include "task_options.h"

#include <stdbool.h>
#include <stdint.h>

struct run_options {
    const char *exec, *rest, *stats, *store; /* NULL: not given */
    struct task_options task;                /* with --store: how lines are put */
    uint64_t jobs;
    uint64_t timeout_ms; /* of a command; 0: none */
    uint64_t grace_ms;   /* if has_grace */
    double speed;
    bool stay, standby; /* with --store */
    bool strict, quiet, has_grace;
};

/* Reads the options and leaves `optind` at the first file. Returns: -1 to go on, else an exit status. */
int run_options_parse(int argc, char **argv, struct run_options *options);

#endif
