/* SPDX-License-Identifier: MIT
 *
 * Reads lines of tasks (task_line.h) as they arrive, and hands each to a command. A malformed line is named on
 * standard error, counted and skipped.
 */
#ifndef COMMAND_READER_H
#define COMMAND_READER_H

#include "task_line.h"

#include <stdio.h>

/* The command sets the members up to `arg`. */
struct reader {
    const char *command; /* for errors: "tickwheel run" */
    int wake;            /* a descriptor; while it can be read, the reader does not wait for input */
    bool strict;         /* stop at the first malformed line */
    const char *(*take)(void *arg, const struct line *line); /* returns NULL, or an error as a phrase */
    int (*idle)(void *arg); /* no line has arrived: returns how many ms to wait at most, -1: without limit */
    bool (*stopping)(void *arg); /* true: read no more lines */
    void (*hide)(void);          /* makes room on the terminal for an error; NULL: nothing */
    void *arg;
    const char *path; /* the file that is being read */
    uint64_t number;  /* of the line that was read last, from 1 */
    uint64_t bad_lines;
    bool stopped; /* `strict` has stopped the reading */
    bool ended;   /* the file has been read to its end */
};

/* Reads a file, or standard input for "-", until its end or until the reader is to stop. If it stops, copies
 * the lines that it has not handed over to `unread` (lines.h), unless `unread` is NULL.
 * Returns: false if the file cannot be read; the error is printed. */
bool reader_read(struct reader *reader, const char *path, FILE *unread);

#endif
