/* SPDX-License-Identifier: MIT
 *
 * What `tickwheel run` leaves behind: what did not run, as input to go on with.
 */
#ifndef COMMAND_REST_H
#define COMMAND_REST_H

#include "calendar.h"
#include "value.h"

#include <stdbool.h>
#include <stdio.h>

/* Whether a file can be put at `path`, as far as can be told beforehand; if not, it has been complained
 * about. */
bool rest_check(const char *path);

/* Writes a kept task as a line; `now_ns` of the clock is when it all ended. */
void rest_task(const struct calendar *calendar, uint64_t now_ns, const struct value *value, FILE *out);

/* Copies a file that was never opened, if it is one with an end. False: it could not be read, with a
 * complaint. */
bool rest_file(const char *path, FILE *out);

/* Writes the whole to `path` (NULL: standard error). If it cannot be written there, it goes to standard error.
 * Returns: whether it went to where it should; *on_stderr tells where it is. */
bool rest_write(const char *path, const char *text, size_t size, bool *on_stderr);

#endif
