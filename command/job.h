/* SPDX-License-Identifier: MIT
 *
 * The command of --exec, which is started for each task: its environment, its standard input, how long it may
 * run, and how it ended.
 */
#ifndef COMMAND_JOB_H
#define COMMAND_JOB_H

#include <tickwheel/task.h>
#include <tickwheel/wheel.h>

#include <stdbool.h>
#include <sys/types.h>

enum {
    JOB_ENDED = 80,
    JOB_TOKEN = 16,    /* hexadecimal digits of a token */
    JOB_KILL_MS = 1000 /* a command that is to end has so long from SIGTERM to SIGKILL */
};

struct job {
    const char *command;         /* for the shell */
    struct tw_bytes id, payload; /* their data is never NULL */
    const char *due;
    uint64_t late_us;            /* TW_NEVER: not known */
    uint64_t missed_periods;     /* further periods for which the call stands */
    const char *queue;           /* NULL: the task is in no queue */
    uint64_t attempt;            /* of a task in a queue */
    struct tw_bytes token;       /* of that attempt: JOB_TOKEN digits */
    const struct tw_bytes *more; /* more texts; each is a line of its own on the standard input */
    size_t more_count;
    int output, errors; /* descriptors for its standard output and standard error; 0: ours */
};

/* Starts the command, in a process group of its own. Returns 0 and its process, or an errno. Threads: any. */
int job_start(const struct job *job, pid_t *child);

/* Returns whether an error of job_start() passes by itself: the system has no process or no memory now. Then
 * the task has not failed. */
bool job_error_passes(int error);

/* Writes a token as a server and SQL do. Returns its digits, in `text`. */
struct tw_bytes job_token(uint64_t token, char text[JOB_TOKEN + 1]);

/* Returns how late a call is now whose lateness counts from then, in microseconds. TW_NEVER: it is not known
 * from when, and so is the result. */
uint64_t job_late_us(uint64_t from_ms);

/* Returns NULL if a status of waitpid() is that of a command that succeeded, and else `text`, which names the
 * exit status or the signal. */
const char *job_ended(int status, char text[JOB_ENDED]);

/* Returns whether a status of waitpid() is exit status 75, EX_TEMPFAIL: the command says that it is too
 * early. */
bool job_not_yet(int status);

/* Returns `text`, which says that a command has run for its whole time. */
const char *job_timed_out(uint64_t timeout_ms, char text[JOB_ENDED]);

/* Says that a stop waits for the commands that run, if there are any. `command` begins the line; `grace`: the
 * wait has an end; `signalled`: a signal has begun the stop, so that the next one is the second. */
void job_tell_waiting(const char *command, size_t running, bool grace, bool signalled);

/* The ranges of the options of commands: --jobs, at once; --timeout; --grace and --lease. */
enum { JOBS_DEFAULT = 4, JOBS_MAX = 1024, JOB_DAY_MS = 86400000 };
#define JOB_TIMEOUT_MAX_MS (UINT64_C(365) * JOB_DAY_MS)

#endif
