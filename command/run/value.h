/* SPDX-License-Identifier: MIT
 *
 * The values of the tasks of `tickwheel run`, and who frees them.
 *
 * Two owners may hold a value:
 *
 * - Its task holds the value until the last call has been made, or the task was cancelled or handed over.
 * - The reader, which is the thread that reads lines, holds the value while it cancels or replaces the task.
 *
 * The owner that releases the value last frees it. One lock guards both marks (`task_holds`, `reader_holds`).
 * Keys are looked up under the same lock. So a task that is found still has calls to come, and has not
 * released its value.
 */
#ifndef COMMAND_VALUE_H
#define COMMAND_VALUE_H

#include "calendar.h"
#include "task_line.h"

#include <tickwheel/sched.h>

struct value {
    struct value *next; /* in the list of kept values */
    struct when first;
    uint64_t period_ns;        /* as the line gave it; 0: the task runs once */
    uint64_t due_ns, calls;    /* if kept: time and number of the calls still to come; TW_FOREVER: no end */
    uint64_t unprinted_due_ns; /* due time of the first call whose line could not be printed */
    uint64_t unprinted;        /* calls whose lines could not be printed, or whose commands were given up */
    uint64_t filing;           /* the number of its line, or of the line that has moved it */
    bool task_holds, reader_holds;
    bool kept;    /* in a list, because calls were not done; the list has taken over the task's hold */
    bool inside;  /* a call is between value_enter() and value_leave() */
    bool last;    /* the current or latest call is the last one of its task */
    bool ended;   /* the reader is cancelling the task */
    bool skipped; /* a call that had just begun found `ended` set, and did nothing */
    char id[];    /* terminated, then the payload, terminated */
};

/* Makes the value for the task of a line. The task holds it. Returns NULL if there is no memory. */
struct value *value_new(const struct line *line, const struct when *first);

/* Frees a value. Requires: its task was never added, or the value was kept. */
void value_free(struct value *value);

const char *value_payload(const struct value *value);

/* Begin and end a call. value_enter() returns false if the task has just been cancelled; then the caller does
 * nothing and does not call value_leave(). `first` receives the task's current first time. A call that was
 * not `done` is kept for the rest. */
bool value_enter(struct value *value, const struct tw_task *task, struct when *first);
void value_leave(struct value *value, const struct tw_task *task, bool done);

/* Cancels the task of an id without waiting for a call that is running. Returns: true if a call was still to
 * come. Threads: the reader only; no other thread adds, moves or cancels tasks. */
bool value_cancel(struct tw_sched *sched, const char *id);

/* Moves the task of an id. Returns false if the id names no task with a call to come. */
bool value_move(struct tw_sched *sched, const char *id, const struct when *when);

/* Keeps the value of a task that tw_sched_stop() hands over; a tw_sched_visit_fn. */
void value_keep(void *arg, const struct tw_task *task);

/* Returns when the first call of a kept value comes or should have come. */
uint64_t value_next_ns(const struct value *value);

/* Returns the list of all kept values in the order of their first calls; equal ones in the order of the lines.
 * Requires: all calls have returned. */
struct value *value_kept(void);

#endif
