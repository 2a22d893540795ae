/* SPDX-License-Identifier: MIT
 *
 * A reading as JSON; docs/top.md has the keys.
 */
#ifndef TW_TOOLS_TOP_JSON_H
#define TW_TOOLS_TOP_JSON_H

#include "frame.h"

/* Prints the latest reading as one object on one line. False: no memory. */
bool tw_top_json(const struct tw_history *history, FILE *out);

#endif
