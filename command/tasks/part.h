/* SPDX-License-Identifier: MIT
 *
 * A part of what is shown: it is read in one look at the file, of many queues if they are small, and written
 * when it has been read. So a pager that is slow to read does not hold a transaction open, which would keep
 * SQLite from shortening its log.
 */
#ifndef COMMAND_PART_H
#define COMMAND_PART_H

#include "tasks_action.h"

#include <stdio.h>

struct part {
    void (*read)(void *arg); /* prints into `out` until the part is full, or there is no more */
    void *arg;
    FILE *out;
    bool failed; /* a look has failed */
    bool lost;   /* there was no memory */
};

/* Whether nothing more is to be read into this part. */
bool part_full(const struct part *part);

/* Reads a part and writes it to standard output. `undone`: as for tasks_failed(). Returns false after it has
 * printed an error. */
bool part_write(struct part *part, const struct tasks *tasks, const char *undone);

#endif
