/* SPDX-License-Identifier: MIT */
#include "job.h"

#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    ADDED = 4,
    TEXT_MAX = 100000 /* bytes of a text in the environment; Linux refuses a variable of 128 KiB */
};

static const char TEXT[] = "TICKWHEEL_TEXT=";

/* Makes the task's variables. Returns their number, or -1 if there is no memory. Unused elements are NULL. */
static int variables_of(const struct job *job, char *added[ADDED])
{
    int count = 0;
    memset(added, 0, ADDED * sizeof *added);
    if (asprintf(&added[count++], "TICKWHEEL_KEY=%s", job->key) < 0 ||
        asprintf(&added[count++], "TICKWHEEL_DUE=%s", job->due) < 0 ||
        asprintf(&added[count++], "TICKWHEEL_LATE_US=%" PRIu64, job->late_us) < 0 ||
        (strlen(job->text) <= TEXT_MAX && asprintf(&added[count++], "%s%s", TEXT, job->text) < 0)) {
        added[count - 1] = NULL;
        return -1;
    }
    return count;
}

/* Makes the environment: the task's variables, then ours. If a name occurs twice, the first variable counts.
 * Our own TICKWHEEL_TEXT is left out, because a task with a long text sets no variable to override it. */
static char **environment_of(const struct job *job, char *added[ADDED])
{
    size_t count = 0, at = 0;
    int made = variables_of(job, added);
    while (environ[count] != NULL)
        count++;
    char **all = made < 0 ? NULL : malloc((count + ADDED + 1) * sizeof *all);
    if (all == NULL)
        return NULL;
    for (int i = 0; i < made; i++)
        all[at++] = added[i];
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], TEXT, sizeof TEXT - 1) != 0)
            all[at++] = environ[i];
    all[at] = NULL;
    return all;
}

/* Puts the line into a file without a name. With a pipe, a command that does not read would block the
 * writer. */
static int line_file(const struct job *job)
{
    int fd = memfd_create("tickwheel-job", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    if (dprintf(fd, "%s%s%s\n", job->key, *job->text != '\0' ? " " : "", job->text) < 0 ||
        lseek(fd, 0, SEEK_SET) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* Starts the shell in a process group of its own. So Ctrl-C on a terminal reaches only us, and we can wait
 * for the running commands. Returns 0 or an errno. */
static int start(const struct job *job, char **environment, int line, pid_t *child)
{
    char *words[] = {"sh", "-c", (char *)job->command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, line, STDIN_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    int error = posix_spawn(child, "/bin/sh", &actions, &attributes, words, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static bool succeeded(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool job_run(const struct job *job)
{
    char *added[ADDED];
    pid_t child;
    char **environment = environment_of(job, added);
    int line = line_file(job), error = environment == NULL ? ENOMEM : line < 0 ? errno : 0;
    if (error == 0)
        error = start(job, environment, line, &child);
    if (error != 0)
        complain("tickwheel run: the command of task %s cannot be started: %s", job->key, strerror(error));
    if (line >= 0)
        close(line);
    for (int i = 0; i < ADDED; i++)
        free(added[i]);
    free(environment);
    return error == 0 && succeeded(child);
}
