/* SPDX-License-Identifier: MIT
 *
 * Where the tasks of a worker come from: a server (source_server.c) or a file (source_file.c). A source belongs
 * to the thread that runs the worker, and never waits: the worker polls the source's descriptors and calls its
 * `turn` after each poll.
 */
#ifndef COMMAND_SOURCE_H
#define COMMAND_SOURCE_H

#include "job.h"
#include "timers.h"
#include "work_options.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SOURCE_WATCHES = 2, SOURCE_STATUS = 700 };

/* One attempt of a task that the worker has. The source makes and frees it. */
struct taken {
    const char *queue;
    struct tw_bytes id;
    const struct tw_bytes *value; /* the payload */
    size_t values;
    uint64_t due_ms, attempt, missed_periods;
    uint64_t late_from_ms; /* its lateness counts from here; TW_NEVER: not known */
    struct tw_bytes token; /* of this attempt */
    bool not_yours;        /* the task is not this worker's any more */
};

/* How the work for a task has ended. */
enum result {
    RESULT_DONE,
    RESULT_FAILED,
    RESULT_BACK,   /* it was not done: the task is ready again, and the attempt does not count */
    RESULT_NOT_YET /* it was too early: the task waits for the time of --back, and the attempt does not count */
};

/* How the source has taken a result. */
enum outcome { OUTCOME_DONE, OUTCOME_FAILED, OUTCOME_DEAD, OUTCOME_BACK, OUTCOME_NOT_YOURS, OUTCOMES };

/* What a source tells the worker. */
struct source_events {
    void (*ready)(void *arg, const char *address); /* once, before it takes the first task */
    size_t (*places)(void *arg);                   /* how many tasks the worker can begin now */
    void (*taken)(void *arg, struct taken *taken); /* the worker begins with it */
    /* once, if the task is not this worker's any more; the worker answers nevertheless */
    void (*not_yours)(void *arg, struct taken *taken);
    /* `error`: of a task that has failed or is dead, as it was answered; it may be NULL */
    void (*settled)(void *arg, const struct taken *taken, enum outcome outcome, const char *error);
    void (*failed)(void *arg); /* it has printed why no task can be taken any more */
    void *arg;
};

struct source;

/* The functions of a kind of source. */
struct source_kind {
    /* Adds the descriptors to watch. Returns their number, at most SOURCE_WATCHES. */
    size_t (*watch)(struct source *source, struct pollfd *fds);
    /* Goes on, after a poll. */
    void (*turn)(struct source *source);
    /* Asks whether a task is ours still and, if it is, keeps it so for the time of --lease. */
    void (*touch)(struct source *source, struct taken *taken);
    /* Takes a result, and `taken` with it. `error`: of RESULT_FAILED, terminated. */
    void (*answer)(struct source *source, struct taken *taken, enum result result, const char *error);
    /* Takes no more tasks from now on. */
    void (*stop)(struct source *source);
    /* Returns whether it has stopped, and has told the outcome of each answer. */
    bool (*at_rest)(const struct source *source);
    /* Writes a phrase for the status line, for example "connected to 127.0.0.1:7379". */
    void (*tell)(const struct source *source, char text[SOURCE_STATUS]);
    /* Frees the source. Returns whether the results of all tasks are recorded, and a file is not broken; false:
     * it has said why. */
    bool (*free)(struct source *source);
};

/* The beginning of each source. */
struct source {
    const struct source_kind *kind;
    const struct work_options *options;
    struct timers *timers;
    struct source_events events;
};

/* Makes a source of a server. For a file it is command_work_store() (command.h). Returns NULL after it has
 * printed an error. */
struct source *source_server(const struct work_options *options, struct timers *timers,
                             const struct source_events *events);

#endif
