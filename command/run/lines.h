/* SPDX-License-Identifier: MIT
 *
 * Lines as they come: from a file, a terminal or a pipe that stays open, with an ear for something else meanwhile.
 */
#ifndef TW_TOOLS_LINES_H
#define TW_TOOLS_LINES_H

#include <stdbool.h>
#include <stdio.h>

struct tw_lines;

enum { TW_LINES_MAX = 1 << 20 }; /* bytes of the longest line, without its newline */

enum tw_lines_got {
    TW_LINES_LINE,
    TW_LINES_LONG,   /* a longer line, of which *text is the beginning */
    TW_LINES_NUL,    /* a line with NUL bytes, of which *text is what is before the first */
    TW_LINES_NONE,   /* the time is over, or the other descriptor has something */
    TW_LINES_END,    /* of the input */
    TW_LINES_FAILED, /* reading did; errno says why */
};

/* A pipe that neither end of waits on. False when there is none. */
bool tw_lines_pipe(int ends[2]);

/* Opens a file, or standard input for "-"; `other` is a descriptor to listen to besides.
 * Returns: NULL when it cannot be opened or there is no memory, with errno set. */
struct tw_lines *tw_lines_open(const char *path, int other);

/* The next line, terminated, without its newline, valid until the next call. Waits up to `wait_ms`; -1: for ever. */
enum tw_lines_got tw_lines_next(struct tw_lines *lines, int wait_ms, char **text);

/* True when the next line is there already. */
bool tw_lines_more(const struct tw_lines *lines);

/* Copies what has not been given out to `out`, byte for byte: what is there already and, of a regular file, everything up
 * to its end; after a last line without a newline, that is added. Returns: false, with errno set, when reading failed. */
bool tw_lines_rest(struct tw_lines *lines, FILE *out);

void tw_lines_close(struct tw_lines *lines);

#endif
