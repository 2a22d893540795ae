/* SPDX-License-Identifier: MIT
 *
 * The rest: the tasks that did not run and the lines that were not read when `tickwheel run` stops. It is
 * written as input for a later run.
 */
#ifndef COMMAND_REST_H
#define COMMAND_REST_H

#include "calendar.h"
#include "value.h"

#include <stdbool.h>
#include <stdio.h>

/* Checks at the start, as far as that is possible, that a file can be written at `path`. Prints an error and
 * returns false if it cannot. */
bool rest_check(const char *path);

/* Writes a task that did not run as a line. `now_ns` is the time of the clock at which the run stopped. */
void rest_task(const struct calendar *calendar, uint64_t now_ns, const struct value *value, FILE *out);

/* Copies an input file that was never opened, if it is a regular file or standard input. Prints an error and
 * returns false if it cannot be read. */
bool rest_file(const char *path, FILE *out);

/* Writes the whole rest to `path`; NULL means standard error. If `path` cannot be written, the rest goes to
 * standard error. Returns: false in that case, or if standard error cannot be written either. *on_stderr tells
 * whether the rest is on standard error. */
bool rest_write(const char *path, struct tw_bytes text, bool *on_stderr);

#endif
