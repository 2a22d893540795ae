/* SPDX-License-Identifier: MIT
 *
 * The options that `tickwheel put` and `tickwheel run --store` have in common: how a task is put into a file.
 */
#ifndef COMMAND_TASK_OPTIONS_H
#define COMMAND_TASK_OPTIONS_H

#include "task_line.h"

#include <tickwheel/store.h>

#include <getopt.h>

#define TASK_QUEUE "default" /* the queue of tasks that are put without --queue */

/* The values of the options. All zero: none was given. */
struct task_options {
    const char *queue;              /* NULL: not given */
    uint32_t tries, factor, jitter; /* 0: not given */
    uint64_t backoff_ms, backoff_max_ms, max_late_ms;
    enum tw_missed missed;
    bool missed_given;
    unsigned conditions;
};

/* The codes of the options for getopt_long(), and their lines for its table.
 * TASK_OPTION_IF and TASK_OPTION_KEEPDUE have no line there, because only `put` has conditions. */
enum {
    TASK_OPTION_QUEUE = 0x1100,
    TASK_OPTION_TRIES,
    TASK_OPTION_BACKOFF,
    TASK_OPTION_FACTOR,
    TASK_OPTION_BACKOFF_MAX,
    TASK_OPTION_JITTER,
    TASK_OPTION_MAX_LATE,
    TASK_OPTION_MISSED,
    TASK_OPTION_IF,
    TASK_OPTION_KEEPDUE
};
/* clang-format off */
#define TASK_OPTIONS                                                   \
    {"queue", required_argument, NULL, TASK_OPTION_QUEUE},             \
    {"tries", required_argument, NULL, TASK_OPTION_TRIES},             \
    {"backoff", required_argument, NULL, TASK_OPTION_BACKOFF},         \
    {"factor", required_argument, NULL, TASK_OPTION_FACTOR},           \
    {"backoff-max", required_argument, NULL, TASK_OPTION_BACKOFF_MAX}, \
    {"jitter", required_argument, NULL, TASK_OPTION_JITTER},           \
    {"max-late", required_argument, NULL, TASK_OPTION_MAX_LATE},       \
    {"missed", required_argument, NULL, TASK_OPTION_MISSED}
/* clang-format on */

/* Returns whether `code` is that of one of these options. */
bool task_options_has(int code);

/* Takes the option of `code`, whose value is in optarg. Returns false after it has printed an error that
 * begins with `command`, for example "tickwheel put". */
bool task_options_take(struct task_options *options, const char *command, int code);

/* Checks the name of a queue, and prints an error like task_options_take(). A queue that is there already may
 * have a name of any bytes, because plain SQL does not check that they are UTF-8. */
bool task_options_queue(const char *command, const char *queue, bool any_bytes);

/* The text of a help that describes the options from tries to missed. */
extern const char TASK_OPTIONS_HELP[];

#endif
