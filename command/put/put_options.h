/* SPDX-License-Identifier: MIT
 *
 * The arguments of `tickwheel put`, and its help.
 */
#ifndef COMMAND_PUT_OPTIONS_H
#define COMMAND_PUT_OPTIONS_H

#include "task_options.h"

struct put_options {
    const char *store;
    struct task_options task;
    uint64_t period_ns, times; /* 0: not given */
    bool ack, strict, quiet;
};

/* Reads the options and leaves `optind` at the first argument. Returns: -1 to go on, else an exit status. */
int put_options_parse(int argc, char **argv, struct put_options *options);

#endif
