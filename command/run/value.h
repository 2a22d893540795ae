/* SPDX-License-Identifier: MIT
 *
 * The values of `tickwheel run`'s tasks, and who frees them.
 *
 * A value is held by its task until the last call has been made, or until the task was cancelled or handed
 * over, and by the reader while it deals with the task; who lets go of it last frees it. Both are noted under
 * one lock, under which keys are looked up, too: a task that is found has calls to come, so it has not let go
 * of its value.
 */
#ifndef COMMAND_VALUE_H
#define COMMAND_VALUE_H

#include "calendar.h"
#include "task_line.h"

#include <tickwheel/sched.h>

struct value {
    struct value *next; /* among those that are kept */
    struct when first;
    uint64_t period_ns;        /* as it was written; 0: once */
    uint64_t due_ns, calls;    /* kept: the calls that are still to come, or TW_FOREVER, and when */
    uint64_t unprinted_due_ns; /* the first of the calls whose line could not be printed */
    uint64_t unprinted;        /* how many there were */
    bool task_holds, reader_holds;
    bool kept;    /* for calls that were not done; the list has the task's hold */
    bool inside;  /* a call is under way, and has got here */
    bool last;    /* that call, or the one before, was the last */
    bool ended;   /* the reader cancels the task */
    bool skipped; /* which came in time for a call that had just begun */
    char key[];   /* terminated, then the text, terminated */
};

/* Makes the value of a line's task, held by that task; NULL: no memory. */
struct value *value_new(const struct line *line, const struct when *first);

/* Frees one whose task was never added, or that was kept. */
void value_free(struct value *value);

const char *value_text(const struct value *value);

/* The beginning and the end of a call. False: the task was cancelled just now, there is nothing to do and no
 * end. `first` receives the first time as it stands; a call that was not `done` is kept. */
bool value_enter(struct value *value, const struct tw_task *task, struct when *first);
void value_leave(struct value *value, const struct tw_task *task, bool done);

/* Cancels the task of a key without waiting for a call under way. Returns: whether a call was still to come.
 * Threads: one; only the reader adds, moves and cancels. */
bool value_cancel(struct tw_sched *sched, const char *key);

/* Moves it. False: the key names no task that is still to run. */
bool value_move(struct tw_sched *sched, const char *key, const struct when *when);

/* Keeps the value of a task that is handed over; a tw_hand_fn. */
void value_keep(void *arg, const struct tw_task *task);

/* What was kept, linked, once all calls have returned: the calls that were not done first. */
struct value *value_kept(void);

#endif
