/* SPDX-License-Identifier: MIT */
#ifndef COMMAND_PLAN_PRINT_H
#define COMMAND_PLAN_PRINT_H

#include "plan_types.h"

/* Prints a plan for people. */
void plan_print(const struct plan *plan);

/* Prints the levels of each preset as Markdown, for ticks of `tick_ns`. */
void plan_print_levels(uint64_t tick_ns);

#endif
