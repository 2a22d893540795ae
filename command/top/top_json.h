/* SPDX-License-Identifier: MIT
 *
 * A reading as JSON; docs/top.md has the keys.
 */
#ifndef COMMAND_TOP_JSON_H
#define COMMAND_TOP_JSON_H

#include "frame.h"

/* Prints the latest reading as one object on one line. False: no memory. */
bool top_json(const struct history *history, FILE *out);

#endif
