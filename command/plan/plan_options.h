/* SPDX-License-Identifier: MIT */
#ifndef COMMAND_PLAN_OPTIONS_H
#define COMMAND_PLAN_OPTIONS_H

#include "plan_types.h"

/* Reads the options.
 * Returns: -1 to go on, else an exit status: the help text was printed, or something was complained about. */
int plan_options_read(struct plan_options *options, int argc, char **argv);

#endif
