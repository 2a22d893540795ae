/* SPDX-License-Identifier: MIT
 *
 * The arguments of `tickwheel top`, and its help.
 */
#ifndef COMMAND_TOP_OPTIONS_H
#define COMMAND_TOP_OPTIONS_H

#include "link/link_options.h"

#include <stdbool.h>
#include <stdint.h>

#define TOP_INTERVAL_MIN_NS UINT64_C(100000000)
#define TOP_INTERVAL_MAX_NS UINT64_C(3600000000000)

struct top_options {
    const char *stats; /* path of a scheduler's socket; NULL: read a Redis server */
    const char *store; /* a file of tasks; NULL: not given */
    struct link_options link;
    const char *queue; /* of the server or the file; NULL: all */
    uint64_t interval_ns;
    bool once, json, ascii;
};

/* Reads the arguments. Returns: -1 to go on, else an exit status. */
int top_options_parse(int argc, char **argv, struct top_options *options);

#endif
