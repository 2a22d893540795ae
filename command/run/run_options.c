/* SPDX-License-Identifier: MIT */
#include "run_options.h"

#include "command.h"
#include "job.h"
#include "rest.h"
#include "stats_socket.h"

#include <stdio.h>
#include <stdlib.h>

static const char HELP_HEAD[] =
    "usage: tickwheel run [OPTIONS] [FILE...]\n"
    "       tickwheel run --store FILE [OPTIONS] [FILE...]\n"
    "\n"
    "Reads tasks from the files, or from standard input, line by line. Runs each task\n"
    "when it is due:\n"
    "\n"
    "  +1500ms order:42 notify unpaid         run once, 1.5 s from now\n"
    "  @2026-12-01T09:00:00Z order:42 text    run once, at this time (UTC)\n"
    "  every 5s x3 beat text                  run three times, 5 s apart\n"
    "  every 5s beat text                     run for ever, 5 s apart\n"
    "  every 5s x3 +1s beat text              three times, the first after 1 s\n"
    "  every 5s x3 @TIME beat text            three times, the first at TIME\n"
    "  move order:42 +10m                     give a pending task another time\n"
    "  cancel order:42                        cancel a pending task\n"
    "  wait 2s                                read the next line 2 s later\n"
    "\n"
    "Empty lines and lines that begin with # are skipped. An id (order:42) names one\n"
    "task: a later line with the same id replaces that task. The units of time are\n"
    "ns us ms s m h d, as in 1h30m and 1.5s. A due task prints its time, how many\n"
    "microseconds late it is, its id and its payload. After the end of the input,\n"
    "tickwheel run waits for the last task. Example, a task that is due in 5 s:\n"
    "\n"
    "  echo '+5s tea the tea is ready' | tickwheel run\n"
    "\n"
    "  --exec CMD      for each task, run CMD in a shell instead of printing. CMD\n"
    "                  gets the id and the payload on its standard input, and\n"
    "                  TICKWHEEL_ID, TICKWHEEL_PAYLOAD, TICKWHEEL_DUE and\n"
    "                  TICKWHEEL_LATE_US in its environment; a payload of more\n"
    "                  than 100000 bytes is on the standard input only\n"
    "  --jobs N        run at most N commands at once, 1 to 1024 (default 4)\n"
    "  --timeout TIME  a command that runs for longer, 1ms to 365d, gets SIGTERM and,\n"
    "                  a second later, SIGKILL, with its whole process group. It has\n"
    "                  failed, whatever its exit status (default: none)\n"
    "  --grace TIME    at a signal to stop, wait at most so long for the commands\n"
    "                  that run, 0s to 1d (default: until they end)\n"
    "  --speed N       let time run N times faster, 0.001 to 1000000 (default 1)\n"
    "  --rest FILE     at the end, write the tasks that did not run and the lines\n"
    "                  that were not read to FILE; `tickwheel run FILE` continues\n"
    "                  with them (default: standard error)\n"
    "  --stats PATH    open a Unix socket at PATH, where `tickwheel top --stats PATH`\n"
    "                  reads statistics; other users may not read it\n"
    "  --strict        stop at the first malformed line, with status 2; without\n"
    "                  --strict, the line is skipped and the status is 1\n"
    "  --quiet         print no summary\n"
    "\n"
    "SIGINT (Ctrl-C), SIGTERM and SIGHUP stop it cleanly: it waits for running\n"
    "commands and then writes the rest, as --rest says. If standard output cannot be\n"
    "written, it stops in the same way. Under nohup it goes on at a SIGHUP. At a\n"
    "second signal, or when --grace is over, running commands get SIGTERM and, a\n"
    "second later or at a third signal, SIGKILL. Their tasks are then a part of the\n"
    "rest, or wait in the file of --store as if they had not been called. A line that\n"
    "nobody reads for a second after a signal is not printed: its task is a part of\n"
    "the rest, or waits in the file, and the status is 1. The same holds for the rest\n"
    "on standard error.\n";

static const char HELP_STORE[] =
    "\n"
    "With --store, tasks live in an SQLite file and survive the end of the process,\n"
    "kill -9 and a crash of the machine included. Each line that is read is a row of\n"
    "the file before it counts. The run calls the tasks of the file that are due,\n"
    "whoever has put them (`tickwheel put`, any program). Tasks that fell due while\n"
    "nobody ran come at once, in order. Only one process runs the tasks of a file. A\n"
    "task is called at least once: if the process dies in a call, the next run calls\n"
    "again. After kill -9, a command of --exec that still runs goes on, beside the\n"
    "next attempt. A command of --exec that does not end with status 0 has failed.\n"
    "It is tried again, and after the last of --tries the task is dead: it stays in\n"
    "the file with its error, for `tickwheel tasks`. A first failure and a death are\n"
    "told on standard error, at most ten in a minute. The run ends when the input has\n"
    "ended and no task waits or runs any more; tasks of a paused queue wait until\n"
    "`tickwheel tasks --store FILE resume` ends the pause. Example, after a crash:\n"
    "\n"
    "  tickwheel run --store shop.db </dev/null\n"
    "\n"
    "  --store FILE    the SQLite file, made if it does not exist. --rest, --speed\n"
    "                  and --stats have no use with it\n"
    "  --queue NAME    put lines into this queue, and run only its tasks (default:\n"
    "                  put into the queue \"default\", and run the tasks of every\n"
    "                  queue)\n"
    "  --stay          do not end when the last task has run; for a service, for\n"
    "                  which other processes put tasks. A terminal is then read only\n"
    "                  if it is named: -\n"
    "  --standby       while another process runs the tasks of the file, wait, and\n"
    "                  take over when that process ends\n";

static const char HELP_TAIL[] =
    "\n"
    "With --store, CMD also gets TICKWHEEL_QUEUE and TICKWHEEL_ATTEMPT, from 1. An\n"
    "id or a payload with NUL bytes is on its standard input only. The options from\n"
    "tries to missed count for the lines that this run reads: a task in the file has\n"
    "its own.\n"
    "\n"
    "Exit status:\n"
    "  0  success, also when commands failed or a signal stopped it;\n"
    "  1  lines were skipped, or the output or the rest cannot be written, or the\n"
    "     scheduler, the commands or the socket of --stats cannot be started; or the\n"
    "     file of --store cannot be read or written, is damaged, or was removed or\n"
    "     replaced, or the tasks in it cannot be counted at the end, or another\n"
    "     process runs them;\n"
    "  2  arguments are wrong, a file cannot be read, or --strict stopped it.\n";

static const char COMMAND[] = "tickwheel run";

static bool parse_speed(const char *text, double *speed)
{
    char *end;
    *speed = strtod(text, &end);
    if (end != text && *end == '\0' && *speed >= 0.001 && *speed <= 1e6)
        return true;
    return option_refuse(COMMAND, "--speed", "a number from 0.001 to 1000000", text);
}

enum {
    OPTION_EXEC = 1,
    OPTION_JOBS,
    OPTION_TIMEOUT,
    OPTION_GRACE,
    OPTION_SPEED,
    OPTION_REST,
    OPTION_STATS,
    OPTION_STORE,
    OPTION_STAY,
    OPTION_STANDBY,
    OPTION_STRICT,
    OPTION_QUIET
};

static bool take_flag(int code, struct run_options *options)
{
    options->stay |= code == OPTION_STAY;
    options->standby |= code == OPTION_STANDBY;
    options->strict |= code == OPTION_STRICT;
    options->quiet |= code == OPTION_QUIET;
    return true;
}

static bool take_option(int code, void *arg)
{
    struct run_options *options = arg;
    if (task_options_has(code))
        return task_options_take(&options->task, COMMAND, code);
    switch (code) {
    case OPTION_EXEC:
        options->exec = optarg;
        return true;
    case OPTION_JOBS:
        return option_number(COMMAND, "--jobs", 1, JOBS_MAX, &options->jobs);
    case OPTION_TIMEOUT:
        return option_ms(COMMAND, "--timeout", 1, JOB_TIMEOUT_MAX_MS, &options->timeout_ms);
    case OPTION_GRACE:
        options->has_grace = true;
        return option_ms(COMMAND, "--grace", 0, JOB_DAY_MS, &options->grace_ms);
    case OPTION_SPEED:
        return parse_speed(optarg, &options->speed);
    case OPTION_REST:
        options->rest = optarg;
        return true;
    case OPTION_STATS:
        options->stats = optarg;
        return stats_address("tickwheel run: --stats", optarg, &(struct sockaddr_un){0});
    case OPTION_STORE:
        options->store = optarg;
        return true;
    default:
        return take_flag(code, options);
    }
}

static void help(void)
{
    printf("%s%s%s%s", HELP_HEAD, HELP_STORE, TASK_OPTIONS_HELP, HELP_TAIL);
}

/* ---- options that exclude each other --------------------------------------------------------------------- */

/* Refuses the first of some options that was given. */
struct excluded {
    const char *name;
    bool given;
};

static bool exclude(const struct excluded *options, size_t count, const char *why)
{
    for (size_t i = 0; i < count; i++)
        if (options[i].given) {
            complain("tickwheel run: %s %s", options[i].name, why);
            return false;
        }
    return true;
}

static bool check(const struct run_options *options)
{
    const struct task_options *task = &options->task;
    const struct excluded with_store[] = {{"--queue", task->queue != NULL},
                                          {"--tries", task->tries > 0},
                                          {"--backoff", task->backoff_ms > 0},
                                          {"--factor", task->factor > 0},
                                          {"--backoff-max", task->backoff_max_ms > 0},
                                          {"--jitter", task->jitter > 0},
                                          {"--missed", task->missed_given},
                                          {"--max-late", task->max_late_ms > 0},
                                          {"--stay", options->stay},
                                          {"--standby", options->standby}};
    const struct excluded with_exec[] = {{"--timeout", options->timeout_ms > 0},
                                         {"--grace", options->has_grace}};
    if (options->exec == NULL && !exclude(with_exec, sizeof with_exec / sizeof with_exec[0], "needs --exec"))
        return false;
    if (options->store == NULL)
        return exclude(with_store, sizeof with_store / sizeof with_store[0], "needs --store");
    return exclude(&(struct excluded){"--rest", options->rest != NULL}, 1,
                   "has no use with --store: every task is in the file") &&
           exclude(&(struct excluded){"--speed", options->speed != 1}, 1,
                   "has no use with --store: the times in the file are those of the clock") &&
           exclude(&(struct excluded){"--stats", options->stats != NULL}, 1,
                   "has no use with --store: `tickwheel top --store` reads the file");
}

int run_options_parse(int argc, char **argv, struct run_options *options)
{
    static const struct option LONG[] = {{"exec", required_argument, NULL, OPTION_EXEC},
                                         {"jobs", required_argument, NULL, OPTION_JOBS},
                                         {"timeout", required_argument, NULL, OPTION_TIMEOUT},
                                         {"grace", required_argument, NULL, OPTION_GRACE},
                                         {"speed", required_argument, NULL, OPTION_SPEED},
                                         {"rest", required_argument, NULL, OPTION_REST},
                                         {"stats", required_argument, NULL, OPTION_STATS},
                                         {"store", required_argument, NULL, OPTION_STORE},
                                         TASK_OPTIONS,
                                         {"stay", no_argument, NULL, OPTION_STAY},
                                         {"standby", no_argument, NULL, OPTION_STANDBY},
                                         {"strict", no_argument, NULL, OPTION_STRICT},
                                         {"quiet", no_argument, NULL, OPTION_QUIET},
                                         {"help", no_argument, NULL, OPTION_HELP},
                                         {NULL, 0, NULL, 0}};
    static const struct option_reader READER = {":h", LONG, take_option, help};
    options->jobs = JOBS_DEFAULT;
    options->speed = 1;
    int status = options_read(&READER, argc, argv, options);
    if (status >= 0)
        return status;
    if (!check(options))
        return COMMAND_INPUT;
    if (options->rest != NULL && !rest_check(options->rest))
        return COMMAND_INPUT;
    return -1;
}
