/* SPDX-License-Identifier: MIT
 *
 * Writes a reading as JSON. docs/top.md lists the keys.
 */
#ifndef COMMAND_TOP_JSON_H
#define COMMAND_TOP_JSON_H

#include "frame.h"

/* Prints the latest reading as one object on one line. Returns false if there is no memory. */
bool top_json(const struct history *history, FILE *out);

#endif
