/* SPDX-License-Identifier: MIT
 *
 * The task of a file that a line asks for.
 */
#ifndef COMMAND_DELAYED_H
#define COMMAND_DELAYED_H

#include "task_line.h"
#include "task_options.h"

/* Makes the task that a line of the kind TASK or EVERY asks for, if it is read now. The task points into the
 * line and the options. Also sets queue, id and due_ms for a line of the kind MOVE, and queue and id for
 * CANCEL.
 * Returns: NULL, or the error as a phrase. */
const char *delayed_make(const struct task_options *options, const struct line *line,
                         struct tw_store_delayed *task);

#endif
