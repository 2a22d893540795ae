/* SPDX-License-Identifier: MIT
 *
 * Reads a plain or zstd file as a stream of text. The first bytes of the file tell its format, not its name.
 */
#ifndef COMMAND_SOURCE_H
#define COMMAND_SOURCE_H

#include <stddef.h>
#include <sys/types.h>

struct source;

/* Opens a file, or standard input for "-".
 * Returns: NULL if it cannot be opened or there is no memory, with errno set. */
struct source *source_open(const char *path);

/* Reads some text, at most `size` bytes.
 * Returns: the number of bytes; 0 at the end; -1 if reading or unpacking failed (source_problem() tells
 * why). */
ssize_t source_read(struct source *source, char *text, size_t size);

/* Returns the error as a phrase that follows "found": "zstd data that ends too early, expected the rest of
 * it". */
const char *source_problem(const struct source *source);

/* Closes it. `source` may be NULL. */
void source_close(struct source *source);

#endif
