/* SPDX-License-Identifier: MIT
 *
 * The actions of `tickwheel tasks`. Each returns an exit status after it has printed its result, or an error.
 */
#ifndef COMMAND_TASKS_ACTION_H
#define COMMAND_TASKS_ACTION_H

#include "command.h"
#include "store_file.h"
#include "tasks_options.h"

#include <tickwheel/store.h>

/* An open file, and the options. */
struct tasks {
    const struct tasks_options *options;
    struct tw_store *store;
    char **queue; /* the names of the queues to show */
    size_t queues;
};

int tasks_list(const struct tasks *tasks);     /* list, next, dead */
int tasks_forecast(const struct tasks *tasks); /* forecast */
int tasks_summary(const struct tasks *tasks);  /* without a command */
int tasks_change(const struct tasks *tasks);   /* the other commands */

/* Prints the error of the call that failed last, and returns its exit status. Example: "the queue is as it
 * was". */
static inline int tasks_failed(const struct tasks *tasks, const char *undone)
{
    store_file_complain(tasks->store, "tickwheel tasks", tasks->options->store, undone);
    return COMMAND_WRONG;
}

#endif
