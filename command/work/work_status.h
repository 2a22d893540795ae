/* SPDX-License-Identifier: MIT
 *
 * The messages of `tickwheel work`: the status line, the counts at the end, and a task that is not this
 * worker's any more. While it works, messages are left out if nobody reads standard error: a worker does not
 * wait for a reader.
 */
#ifndef COMMAND_WORK_STATUS_H
#define COMMAND_WORK_STATUS_H

#include "news.h"
#include "source.h"

enum { WORK_STATUS_MS = 250 }; /* between two updates of the status line */

/* Results by their outcomes. */
struct work_counts {
    uint64_t of[OUTCOMES];
};

/* Says that the worker begins. */
void work_say_ready(const struct work_options *options, const char *address);

/* Says that a task whose command runs is not this worker's any more. */
void work_say_not_yours(const struct taken *taken);

/* Says that an attempt has failed, or that the task is dead; of tasks of a server. `error` may be NULL. */
void work_say_failed(struct news *news, const struct taken *taken, bool dead, const char *error);

/* Shows the status line, if there is one. `stopping`: no more tasks are taken. */
void work_show_status(const struct source *source, const struct work_counts *counts, size_t running,
                      bool stopping);

/* Prints the counts at the end. */
void work_say_stopped(const struct work_counts *counts);

#endif
