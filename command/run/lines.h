/* SPDX-License-Identifier: MIT
 *
 * Lines as they come: from a file, a terminal or a pipe that stays open, with an ear for something else
 * meanwhile.
 */
#ifndef COMMAND_LINES_H
#define COMMAND_LINES_H

#include <stdbool.h>
#include <stdio.h>

struct lines;

enum { LINES_MAX = 1 << 20 }; /* bytes of the longest line, without its newline */

enum lines_got {
    LINES_LINE,
    LINES_LONG,   /* a longer line, of which *text is the beginning */
    LINES_NUL,    /* a line with NUL bytes, of which *text is what is before the first */
    LINES_NONE,   /* the time is over, or the other descriptor has something */
    LINES_END,    /* of the input */
    LINES_FAILED, /* reading did; errno says why */
};

/* A pipe that neither end of waits on. False when there is none. */
bool lines_pipe(int ends[2]);

/* Opens a file, or standard input for "-"; `other` is a descriptor to listen to besides.
 * Returns: NULL when it cannot be opened or there is no memory, with errno set. */
struct lines *lines_open(const char *path, int other);

/* The next line, terminated, without its newline, valid until the next call. Waits up to `wait_ms`; -1: for
 * ever. */
enum lines_got lines_next(struct lines *lines, int wait_ms, char **text);

/* True when the next line is there already. */
bool lines_more(const struct lines *lines);

/* Copies what has not been given out to `out`, byte for byte: what is there already and, of a regular file,
 * everything up to its end; after a last line without a newline, that is added. Returns: false, with errno set,
 * when reading failed. */
bool lines_rest(struct lines *lines, FILE *out);

void lines_close(struct lines *lines);

#endif
