/* SPDX-License-Identifier: MIT
 *
 * Writes a file that appears whole or not at all.
 */
#ifndef COMMAND_OUTPUT_H
#define COMMAND_OUTPUT_H

#include <tickwheel/task.h>

#include <stdbool.h>

/* Writes all bytes to a descriptor. Returns false, with errno set, if that fails. */
bool output_bytes(int fd, struct tw_bytes bytes);

/* Writes bytes to the file `path`; "-" is standard output. A regular file is written under another
 * name in the same folder and then renamed. A device or a pipe is written to directly.
 * Returns: true on success. On failure it prints an error, and the old file is unchanged. */
bool output_write(const char *path, struct tw_bytes bytes);

#endif
