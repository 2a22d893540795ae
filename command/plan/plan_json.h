/* SPDX-License-Identifier: MIT */
#ifndef COMMAND_PLAN_JSON_H
#define COMMAND_PLAN_JSON_H

#include "plan_types.h"

/* Prints a plan as one line of JSON. */
void plan_json(const struct plan *plan);

#endif
