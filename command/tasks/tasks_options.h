/* SPDX-License-Identifier: MIT
 *
 * The arguments of `tickwheel tasks`, and its help.
 */
#ifndef COMMAND_TASKS_OPTIONS_H
#define COMMAND_TASKS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel/store.h>

/* The actions on the tasks of a file. */
enum action {
    ACTION_SUMMARY,
    ACTION_LIST,
    ACTION_NEXT,
    ACTION_FORECAST,
    ACTION_DEAD,
    ACTION_REPLAY,
    ACTION_PROMOTE,
    ACTION_CANCEL,
    ACTION_MOVE,
    ACTION_PAUSE,
    ACTION_RESUME,
    ACTION_PURGE
};

struct tasks_options {
    const char *store;
    const char *queue; /* NULL: not given */
    enum action action;
    struct tw_bytes id; /* NULL: every task */
    uint64_t due_ms;    /* move, replay: the new time; without one now */
    unsigned condition; /* move: TW_CONDITION_GT, TW_CONDITION_LT, or 0 */
    uint64_t count;     /* list, dead: tasks of a queue; 0: all */
    uint64_t step_ms;   /* forecast */
    uint64_t steps;
    uint64_t older_ms; /* purge: how long ago a task died at least */
    bool json;
};

/* Reads the arguments. Returns: -1 to go on, else an exit status. */
int tasks_options_parse(int argc, char **argv, struct tasks_options *options);

#endif
