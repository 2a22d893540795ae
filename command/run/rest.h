/* SPDX-License-Identifier: MIT
 *
 * What `tickwheel run` leaves behind: what did not run, as input to go on with.
 */
#ifndef TW_TOOLS_REST_H
#define TW_TOOLS_REST_H

#include "calendar.h"
#include "value.h"

#include <stdbool.h>
#include <stdio.h>

/* Whether a file can be put at `path`, as far as can be told beforehand; if not, it has been complained about. */
bool tw_rest_check(const char *path);

/* Writes a kept task as a line; `now_ns` of the clock is when it all ended. */
void tw_rest_task(const struct tw_calendar *calendar, uint64_t now_ns, const struct tw_value *value, FILE *out);

/* Copies a file that was never opened, if it is one with an end. False: it could not be read, with a complaint. */
bool tw_rest_file(const char *path, FILE *out);

/* Writes the whole to `path` (NULL: standard error). If it cannot be written there, it goes to standard error.
 * Returns: whether it went to where it should; *on_stderr tells where it is. */
bool tw_rest_write(const char *path, const char *text, size_t size, bool *on_stderr);

#endif
