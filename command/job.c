/* SPDX-License-Identifier: MIT */
#include "job.h"

#include "clock.h"
#include "command.h"
#include "output.h"
#include "screen.h"
#include "task_line.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

extern char **environ;

enum {
    TEXT_MAX = 100000, /* bytes of a text in the environment; Linux refuses a variable of 128 KiB */
    NUMBER = 24,       /* a number as text, terminated */
    PART = 4096        /* bytes of the standard input that are written together */
};

static const uint64_t MS_NS = 1000000;

/* The variables of a task. */
enum variable { ID, PAYLOAD, DUE, LATE_US, MISSED_PERIODS, QUEUE, ATTEMPT, TOKEN, VARIABLES };
static const char PREFIX[] = "TICKWHEEL_"; /* of all of them */
static const char *const NAMES[VARIABLES] = {
    [ID] = "TICKWHEEL_ID=",       [PAYLOAD] = "TICKWHEEL_PAYLOAD=",
    [DUE] = "TICKWHEEL_DUE=",     [LATE_US] = "TICKWHEEL_LATE_US=",
    [QUEUE] = "TICKWHEEL_QUEUE=", [ATTEMPT] = "TICKWHEEL_ATTEMPT=",
    [TOKEN] = "TICKWHEEL_TOKEN=", [MISSED_PERIODS] = "TICKWHEEL_MISSED_PERIODS="};

/* ---- the environment ------------------------------------------------------------------------------------- */

/* The environment of a command, in one allocation: the pointers, and behind them the task's variables. */
struct environment {
    char **all;
    size_t count;
    char *end; /* of the variables so far */
};

/* Whether a variable can hold bytes. Others are on the standard input only. */
static bool fits(struct tw_bytes bytes)
{
    return bytes.size <= TEXT_MAX && memchr(bytes.data, '\0', bytes.size) == NULL;
}

static void add(struct environment *to, struct tw_bytes bytes)
{
    memcpy(to->end, bytes.data, bytes.size);
    to->end += bytes.size;
}

static void set(struct environment *to, enum variable variable, struct tw_bytes value)
{
    if (!fits(value))
        return;
    to->all[to->count++] = to->end;
    add(to, tw_text(NAMES[variable]));
    add(to, value);
    *to->end++ = '\0';
}

static void set_number(struct environment *to, enum variable variable, uint64_t number)
{
    char text[NUMBER];
    snprintf(text, sizeof text, "%" PRIu64, number);
    set(to, variable, tw_text(text));
}

static void set_variables(const struct job *job, struct environment *to)
{
    set(to, ID, job->id);
    set(to, PAYLOAD, job->payload);
    set(to, DUE, tw_text(job->due));
    if (job->late_us != TW_NEVER)
        set_number(to, LATE_US, job->late_us);
    set_number(to, MISSED_PERIODS, job->missed_periods);
    if (job->queue == NULL)
        return;
    set(to, QUEUE, tw_text(job->queue));
    set_number(to, ATTEMPT, job->attempt);
    set(to, TOKEN, job->token);
}

/* Returns the most bytes that the task's variables take. */
static size_t room_for(const struct job *job)
{
    const struct tw_bytes text[] = {job->id, job->payload, job->token, tw_text(job->due),
                                    tw_text(job->queue != NULL ? job->queue : "")};
    size_t room = 0;
    for (int i = 0; i < VARIABLES; i++)
        room += strlen(NAMES[i]) + NUMBER;
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        room += text[i].size <= TEXT_MAX ? text[i].size : 0;
    return room;
}

static bool is_of_a_task(const char *variable)
{
    if (!text_begins(variable, PREFIX))
        return false;
    for (int i = 0; i < VARIABLES; i++)
        if (text_begins(variable, NAMES[i]))
            return true;
    return false;
}

/* Makes the environment: the task's variables, then ours without the variables of a task, which a task with a
 * long text, for example, does not set. Returns NULL if there is no memory. */
static char **environment_of(const struct job *job)
{
    size_t ours = 0;
    while (environ[ours] != NULL)
        ours++;
    size_t pointers = (ours + VARIABLES + 1) * sizeof(char *);
    char **all = malloc(pointers + room_for(job));
    if (all == NULL)
        return NULL;
    struct environment to = {.all = all, .end = (char *)all + pointers};
    set_variables(job, &to);
    for (size_t i = 0; i < ours; i++)
        if (!is_of_a_task(environ[i]))
            all[to.count++] = environ[i];
    all[to.count] = NULL;
    return all;
}

/* ---- the standard input ---------------------------------------------------------------------------------- */

/* Bytes that are written together. */
struct input {
    int fd;
    bool good; /* no write has failed */
    size_t size;
    char bytes[PART];
};

static void flush(struct input *input)
{
    input->good = input->good && output_bytes(input->fd, (struct tw_bytes){input->bytes, input->size});
    input->size = 0;
}

static void write_text(struct input *input, struct tw_bytes text)
{
    if (text.size > PART - input->size)
        flush(input);
    if (text.size > PART) {
        input->good = input->good && output_bytes(input->fd, text);
        return;
    }
    memcpy(input->bytes + input->size, text.data, text.size);
    input->size += text.size;
}

static bool write_lines(int fd, const struct job *job)
{
    struct input input;
    input.fd = fd;
    input.good = true;
    input.size = 0;
    write_text(&input, job->id);
    write_text(&input, tw_text(job->payload.size > 0 ? " " : ""));
    write_text(&input, job->payload);
    write_text(&input, tw_text("\n"));
    for (size_t i = 0; i < job->more_count; i++) {
        write_text(&input, job->more[i]);
        write_text(&input, tw_text("\n"));
    }
    flush(&input);
    return input.good;
}

/* Puts the lines into a file without a name. With a pipe, a command that does not read would block the
 * writer. */
static int input_file(const struct job *job)
{
    int fd = memfd_create("tickwheel-job", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    if (write_lines(fd, job) && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

/* ---- the process ----------------------------------------------------------------------------------------- */

/* The signals that a command gets with their usual effect. It is in the background of a terminal, and that must
 * not stop it when it prints there (`stty tostop`): as screen.c does, it ignores SIGTTOU then. */
static sigset_t usual_signals(void)
{
    sigset_t usual;
    sigfillset(&usual);
    if (isatty(STDOUT_FILENO) || isatty(STDERR_FILENO))
        sigdelset(&usual, SIGTTOU);
    return usual;
}

/* Starts the shell in a process group of its own. So Ctrl-C on a terminal reaches only us, and we can wait
 * for the running commands. Returns 0 or an errno. */
static int spawn(const struct job *job, char **environment, int input, pid_t *child)
{
    char *words[] = {"sh", "-c", (char *)job->command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, usual = usual_signals();
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (job->output > 0)
        posix_spawn_file_actions_adddup2(&actions, job->output, STDOUT_FILENO);
    if (job->errors > 0)
        posix_spawn_file_actions_adddup2(&actions, job->errors, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    int error = posix_spawn(child, "/bin/sh", &actions, &attributes, words, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int job_start(const struct job *job, pid_t *child)
{
    char **environment = environment_of(job);
    int input = input_file(job), error = environment == NULL ? ENOMEM : input < 0 ? errno : 0;
    if (error == 0)
        error = spawn(job, environment, input, child);
    if (input >= 0)
        close(input);
    free(environment);
    return error;
}

bool job_error_passes(int error)
{
    return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

struct tw_bytes job_token(uint64_t token, char text[JOB_TOKEN + 1])
{
    snprintf(text, JOB_TOKEN + 1, "%0*" PRIx64, JOB_TOKEN, token);
    return tw_text(text);
}

uint64_t job_late_us(uint64_t from_ms)
{
    if (from_ms == TW_NEVER)
        return TW_NEVER;
    uint64_t now_us = clock_ns(CLOCK_REALTIME) / 1000;
    return now_us / 1000 >= from_ms ? now_us - from_ms * 1000 : 0;
}

const char *job_ended(int status, char text[JOB_ENDED])
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NULL;
    if (WIFEXITED(status))
        snprintf(text, JOB_ENDED, "exit status %d", WEXITSTATUS(status));
    else
        snprintf(text, JOB_ENDED, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return text;
}

bool job_not_yet(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == EX_TEMPFAIL;
}

const char *job_timed_out(uint64_t timeout_ms, char text[JOB_ENDED])
{
    char time[DURATION_SIZE];
    duration_print(timeout_ms * MS_NS, time);
    snprintf(text, JOB_ENDED, "timed out after %s", time);
    return text;
}

void job_tell_waiting(const char *command, size_t running, bool grace, bool signalled)
{
    if (running == 0)
        return;
    screen_hide();
    complain("%s: waiting for %zu running command%s; a %ssignal%s ends %s", command, running,
             running == 1 ? "" : "s", signalled ? "second " : "", grace ? ", or the end of --grace," : "",
             running == 1 ? "it" : "them");
}
