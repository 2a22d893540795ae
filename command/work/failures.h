/* SPDX-License-Identifier: MIT
 *
 * Which calls of a server's tasks have failed here. The number of an attempt does not tell: earlier attempts
 * may have ended with their workers, or were given back. And a worker may have no right to look at a task.
 */
#ifndef COMMAND_FAILURES_H
#define COMMAND_FAILURES_H

#include "source.h"

enum { FAILURES = 4096 }; /* the last ones; a call that was forgotten counts as new */

/* Zeroed memory knows of none. */
struct failures {
    uint64_t call[FAILURES]; /* a hash of its queue, id and due time, at a place that it decides */
};

/* Notes that an attempt has failed. Returns whether it is the first one of its call that has failed here. */
bool failures_note(struct failures *failures, const struct taken *taken);

#endif
