/* SPDX-License-Identifier: MIT
 *
 * tickwheel: the command. Each subcommand has a file of its own; this file picks the subcommand.
 */
#include "command.h"

#include <tickwheel/version.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] = "usage: tickwheel COMMAND [ARGUMENTS]\n"
                           "\n"
                           "  run [FILE...]              run delayed tasks: files, a pipe, an SQLite file\n"
                           "  put --store FILE WHEN ID   put a task into an SQLite file\n"
                           "  tasks --store FILE         show and change the tasks of an SQLite file\n"
                           "  restore --store FILE       call no task of a restored file, until told\n"
                           "  work QUEUE... --exec CMD   run a command for each task of a server or a file\n"
                           "  top                        show the load of a server, a scheduler or a file\n"
                           "  trace replay|draw TRACE    run a recorded trace of timers, or draw the wheel\n"
                           "  plan --timers N --tick T --max T\n"
                           "                             find the wheel for a load, and its costs\n"
                           "  help                       print this text\n"
                           "  --version                  print the version\n"
                           "\n"
                           "`tickwheel COMMAND --help` describes a command. Example, a task due in 5 s:\n"
                           "\n"
                           "    echo '+5s tea the tea is ready' | tickwheel run\n";

static int help(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fputs(HELP, stdout);
    return COMMAND_GOOD;
}

static int version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("tickwheel " TW_VERSION);
    return COMMAND_GOOD;
}

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
} COMMANDS[] = {
    {"run", command_run},
    {"put", command_put},
    {"tasks", command_tasks},
    {"restore", command_restore},
    {"work", command_work},
    {"top", command_top},
    {"trace", command_trace},
    {"plan", command_plan},
    {"help", help},
    {"--help", help},
    {"-h", help},
    {"--version", version},
};

static int run(int argc, char **argv)
{
    if (argc < 2) {
        fputs(HELP, stderr);
        return COMMAND_INPUT;
    }
    for (size_t i = 0; i < sizeof COMMANDS / sizeof COMMANDS[0]; i++)
        if (strcmp(argv[1], COMMANDS[i].name) == 0)
            return COMMANDS[i].run(argc - 1, argv + 1);
    complain("tickwheel: there is no command \"%s\" (try: tickwheel help)", argv[1]);
    return COMMAND_INPUT;
}

/* A parent hands its ignored and blocked signals down. With SIGCHLD ignored, the system forgets how a command
 * has ended; a blocked SIGTERM would never come. A file that may not grow any more (`ulimit -f`) is an error of
 * the write, EFBIG, and no reason to die. */
static void begin_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN);
}

/* A parent may close descriptors too. Opens /dev/null in their place, so that no other file gets their numbers:
 * standard input for writing, the outputs for reading. So using such a descriptor fails, as it should. */
static void hold_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    begin_signals();
    hold_descriptors();
    int status = run(argc, argv);
    /* Output is buffered, so a full disk may show only in this last write. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == COMMAND_GOOD) {
        complain("tickwheel: standard output cannot be written: %s", strerror(errno));
        return COMMAND_WRONG;
    }
    return status;
}
