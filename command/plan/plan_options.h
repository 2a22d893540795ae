/* SPDX-License-Identifier: MIT */
#ifndef COMMAND_PLAN_OPTIONS_H
#define COMMAND_PLAN_OPTIONS_H

#include "plan_types.h"

/* Reads the options.
 * Returns: -1 to go on, or an exit status after it has printed the help text or an error. */
int plan_options_read(struct plan_options *options, int argc, char **argv);

#endif
