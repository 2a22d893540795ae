/* SPDX-License-Identifier: MIT */
#include "run_options.h"

#include "job.h"
#include "rest.h"
#include "stats_socket.h"

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
    "                  TICKWHEEL_ID, TICKWHEEL_PAYLOAD, TICKWHEEL_DUE,\n"
    "                  TICKWHEEL_LATE_US and TICKWHEEL_MISSED_PERIODS (further\n"
    "                  periods for which the call stands) in its environment; a\n"
    "                  payload of more than 100000 bytes is on the standard input\n"
    "                  only\n"
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
    "ended and no task waits or is at work any more; tasks of a paused queue wait\n"
    "until `tickwheel tasks --store FILE resume` ends the pause. Example, after a\n"
    "crash:\n"
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
    "With --store, CMD also gets TICKWHEEL_QUEUE, TICKWHEEL_ATTEMPT, from 1, and\n"
    "TICKWHEEL_TOKEN, of this attempt alone. An id or a payload with NUL bytes is on\n"
    "its standard input only. The options from tries to missed count for the lines\n"
    "that this run reads: a task in the file has its own.\n"
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

static bool take_speed(const struct option_row *row)
{
    double *speed = row->to;
    char *end;
    *speed = strtod(optarg, &end);
    return (end != optarg && *end == '\0' && *speed >= 0.001 && *speed <= 1e6) ||
           option_refuse(row, "a number from 0.001 to 1000000");
}

/* ---- options that exclude each other --------------------------------------------------------------------- */

/* Refuses the first option that was given of some, whose list NULL ends. */
static bool exclude(const struct option_table *table, const char *const *names, const char *why)
{
    while (*names != NULL && !options_given(table, *names))
        names++;
    if (*names != NULL)
        complain("%s: %s %s", COMMAND, *names, why);
    return *names == NULL;
}

static bool has_no_use(bool given, const char *option, const char *why)
{
    if (given)
        complain("%s: %s has no use with --store: %s", COMMAND, option, why);
    return given;
}

static bool check(const struct run_options *options, const struct option_table *table)
{
    static const char *const OF_EXEC[] = {"--timeout", "--grace", NULL};
    static const char *const OF_STORE[] = {"--queue",       "--tries",   "--backoff", "--factor",
                                           "--backoff-max", "--jitter",  "--missed",  "--max-late",
                                           "--stay",        "--standby", NULL};
    if (options->exec == NULL && !exclude(table, OF_EXEC, "needs --exec"))
        return false;
    if (options->store == NULL)
        return exclude(table, OF_STORE, "needs --store");
    return !has_no_use(options->rest != NULL, "--rest", "every task is in the file") &&
           !has_no_use(options->speed != 1, "--speed", "the times in the file are those of the clock") &&
           !has_no_use(options->stats != NULL, "--stats", "`tickwheel top --store` reads the file");
}

int run_options_parse(int argc, char **argv, struct run_options *options)
{
    struct option_table table = {.command = COMMAND,
                                 .help = {HELP_HEAD, HELP_STORE, TASK_OPTIONS_HELP, HELP_TAIL}};
    options->jobs = JOBS_DEFAULT;
    options->speed = 1;
    options_text(&table, "--exec", &options->exec);
    options_number(&table, "--jobs", &options->jobs, 1, JOBS_MAX);
    options_ms(&table, "--timeout", &options->timeout_ms, 1, JOB_TIMEOUT_MAX_MS);
    options_ms(&table, "--grace", &options->grace_ms, 0, JOB_DAY_MS);
    options_other(&table, "--speed", take_speed, &options->speed);
    options_text(&table, "--rest", &options->rest);
    options_other(&table, "--stats", stats_take_path, &options->stats);
    options_text(&table, "--store", &options->store);
    task_options_add(&table, &options->task);
    options_flag(&table, "--stay", &options->stay);
    options_flag(&table, "--standby", &options->standby);
    options_flag(&table, "--strict", &options->strict);
    options_flag(&table, "--quiet", &options->quiet);
    int status = options_read(&table, argc, argv);
    if (status >= 0)
        return status;
    options->has_grace = options_given(&table, "--grace");
    bool good = check(options, &table) && (options->rest == NULL || rest_check(options->rest));
    return good ? -1 : COMMAND_INPUT;
}
