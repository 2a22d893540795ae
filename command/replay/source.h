/* SPDX-License-Identifier: MIT
 *
 * A file as a stream of text, whether it is plain, gzip or zstd: the first bytes tell, not the name.
 */
#ifndef COMMAND_SOURCE_H
#define COMMAND_SOURCE_H

#include <stddef.h>
#include <sys/types.h>

struct source;

/* Opens a file, or standard input for "-".
 * Returns: NULL when it cannot be opened or there is no memory, with errno set. */
struct source *source_open(const char *path);

/* Reads some text, at most `size` bytes.
 * Returns: how many bytes; 0 at the end; -1 when reading or unpacking failed (source_problem says why). */
ssize_t source_read(struct source *source, char *text, size_t size);

/* What went wrong, as a phrase that follows "found": "gzip data that ends too early, expected the rest". */
const char *source_problem(const struct source *source);

/* How much of the file has been read, 0 to 1; -1 where the length is not known. */
double source_progress(const struct source *source);

/* Closes it. `source` may be NULL. */
void source_close(struct source *source);

#endif
