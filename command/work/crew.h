/* SPDX-License-Identifier: MIT
 *
 * The commands of a worker: a place for each of --jobs, the heartbeat of its task, its timeout, and its end.
 */
#ifndef COMMAND_CREW_H
#define COMMAND_CREW_H

#include "source.h"

#include <poll.h>

struct crew;

/* The end of the work for a task. `error`: of RESULT_FAILED. */
typedef void crew_ended_fn(void *arg, struct taken *taken, enum result result, const char *error);
/* A third of the lease is over, and the command runs. */
typedef void crew_beat_fn(void *arg, struct taken *taken);

struct crew_options {
    const char *exec;
    size_t jobs;
    uint64_t beat_ms;
    uint64_t timeout_ms; /* a command that runs for so long is ended, and has failed; 0: none */
    bool output;         /* the standard output of commands comes through this process */
    bool leave;          /* the processes that a command leaves behind run on */
    crew_ended_fn *ended;
    crew_beat_fn *beat;
    void *arg;
};

/* Returns NULL if there is no memory. */
struct crew *crew_new(const struct crew_options *options, struct timers *timers);
/* Requires: no command runs. */
void crew_free(struct crew *crew);

/* Returns the number of free places, and of commands that run. */
size_t crew_places(const struct crew *crew);
size_t crew_running(const struct crew *crew);

/* Starts the command for a task. Requires: a place is free.
 * Returns: 0, or the errno with which the command cannot be started. */
int crew_start(struct crew *crew, struct taken *taken);

/* Adds the descriptors to watch. Returns their number, at most CHILD_WATCHES for each place. */
size_t crew_watch(struct crew *crew, struct pollfd *fds);

/* Passes on the outputs that have arrived, after a poll of these descriptors. */
void crew_pass(struct crew *crew, const struct pollfd *fds, size_t count);

/* Looks which commands have ended; after SIGCHLD. */
void crew_reap(struct crew *crew);

/* Gives the commands up that run: sends them a signal, now and for the second time SIGKILL. The task of a
 * command that does not end with status 0 or 75 from now on is RESULT_BACK. */
void crew_give_up(struct crew *crew, int number);

#endif
