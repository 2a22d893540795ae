/* SPDX-License-Identifier: MIT
 *
 * Reads lines as they arrive, from a file, a terminal or a pipe that stays open. While it waits, it also
 * listens to a second descriptor.
 */
#ifndef COMMAND_LINES_H
#define COMMAND_LINES_H

#include <stdbool.h>
#include <stdio.h>

struct lines;

enum { LINES_MAX = 1 << 20 }; /* bytes of the longest line, without its newline */

enum lines_got {
    LINES_LINE,
    LINES_LONG,   /* a line longer than LINES_MAX; *text is its beginning */
    LINES_NUL,    /* a line with NUL bytes; *text is its part before the first NUL */
    LINES_NONE,   /* the time is over, or the other descriptor can be read */
    LINES_END,    /* the end of the input */
    LINES_FAILED, /* reading failed; errno says why */
};

/* Opens a file, or standard input for "-". `other` is the second descriptor to listen to.
 * Returns: NULL if the file cannot be opened or there is no memory, with errno set. */
struct lines *lines_open(const char *path, int other);

/* Reads the next line. It has no newline, is terminated, and stays valid until the next call. Waits up to
 * `wait_ms`; -1: without limit. */
enum lines_got lines_next(struct lines *lines, int wait_ms, char **text);

/* Returns true if the next line has been read already, so that lines_next() will not wait. */
bool lines_more(const struct lines *lines);

/* Copies the lines that lines_next() has not returned to `out`, byte for byte. These are the lines in the
 * buffer and, of a regular file, all lines up to its end. Adds a newline if the last line has none.
 * Returns: false, with errno set, if reading failed. */
bool lines_rest(struct lines *lines, FILE *out);

void lines_close(struct lines *lines);

#endif
