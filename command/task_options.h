/* SPDX-License-Identifier: MIT
 *
 * The options that `tickwheel put` and `tickwheel run --store` have in common: how a task is put into a file.
 */
#ifndef COMMAND_TASK_OPTIONS_H
#define COMMAND_TASK_OPTIONS_H

#include "command.h"

#include <tickwheel/store.h>

#define TASK_QUEUE "default" /* the queue of tasks that are put without --queue */

/* The values of the options. All zero: none was given. */
struct task_options {
    const char *queue;                                                               /* NULL: not given */
    uint64_t tries, factor_percent, backoff_ms, backoff_max_ms, jitter, max_late_ms; /* 0: not given */
    enum tw_missed missed;
    bool missed_given;
    unsigned conditions; /* `put` alone has options for them */
};

/* Adds the options to a table. */
void task_options_add(struct option_table *table, struct task_options *options);

/* Takes a name of a queue into a const char *: that of a queue which may be there already. */
bool task_options_take_queue(const struct option_row *row);

/* Checks the name of a queue. Returns false after it has printed an error that begins with `command`. A queue
 * that is there already may have a name of any bytes, because plain SQL does not check that they are UTF-8. */
bool task_options_queue(const char *command, const char *queue, bool any_bytes);

/* The text of a help that describes the options from tries to missed. */
extern const char TASK_OPTIONS_HELP[];

#endif
