/* SPDX-License-Identifier: MIT
 *
 * A file that appears whole or not at all.
 */
#ifndef COMMAND_OUTPUT_H
#define COMMAND_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* Writes `size` bytes as the file `path`; "-" is standard output. A regular file is written under another name
 * beside it and then takes its place; anything else (a device, a pipe) is written to as it is.
 * Returns: whether it worked; if not, it has been complained about and the old file is as it was. */
bool output_write(const char *path, const char *bytes, size_t size);

#endif
