/* SPDX-License-Identifier: MIT */
#include "run_options.h"

#include "command.h"
#include "rest.h"
#include "stats_socket.h"

#include <stdio.h>
#include <stdlib.h>

static const char HELP[] = "usage: tickwheel run [OPTIONS] [FILE...]\n"
                           "\n"
                           "Reads tasks from the files, or from standard input, line by line, and runs each\n"
                           "when it is due:\n"
                           "\n"
                           "  +1500ms order:42 notify unpaid         once, so long from now\n"
                           "  @2026-12-01T09:00:00Z order:42 text    once, at a time (UTC)\n"
                           "  every 5s x3 beat text                  three times, 5 s apart\n"
                           "  every 5s beat text                     for ever, 5 s apart\n"
                           "  every 5s x3 +1s beat text              the first after 1 s\n"
                           "  every 5s x3 @TIME beat text            the first at that time\n"
                           "  move order:42 +10m                     another time for a task that is pending\n"
                           "  cancel order:42\n"
                           "  wait 2s                                read on after that\n"
                           "\n"
                           "Lines that begin with # say nothing. A key (order:42) names one task: used\n"
                           "again, it replaces that task. The units of time are ns us ms s m h d, as in\n"
                           "1h30m and 1.5s. A due task prints its time, how late it is in microseconds, its\n"
                           "key and its text. The end of the input is waited for, and then the last task.\n"
                           "\n"
                           "  --exec CMD      run CMD in a shell for each task, with the line on its\n"
                           "                  standard input and TICKWHEEL_KEY, TICKWHEEL_TEXT,\n"
                           "                  TICKWHEEL_DUE and TICKWHEEL_LATE_US in its environment; a\n"
                           "                  text of more than 100000 bytes is on the standard input only\n"
                           "  --jobs N        at most so many commands at once, 1 to 1024 (default 4)\n"
                           "  --speed N       time runs so many times faster, 0.001 to 1000000 (default 1)\n"
                           "  --rest FILE     where tasks and lines are written that did not run, to go on\n"
                           "                  from (default: standard error)\n"
                           "  --stats PATH    a Unix socket at PATH tells `tickwheel top --stats PATH` how\n"
                           "                  it is doing; nobody else may read it\n"
                           "  --strict        stop at the first line that is malformed, with status 2; else\n"
                           "                  it is skipped and the status is 1\n"
                           "  --quiet         no summary\n"
                           "\n"
                           "SIGINT and SIGTERM end it cleanly: running commands are waited for, the rest is\n"
                           "written. So does a standard output that cannot be written.\n"
                           "\n"
                           "Exit status: 0, also when commands failed; 1 when lines were skipped, or the\n"
                           "output or the rest could not be written; 2 when arguments are wrong, a file\n"
                           "cannot be read, or --strict has stopped it.\n";

enum { JOBS_DEFAULT = 4, JOBS_MAX = 1024 };

static bool parse_speed(const char *text, double *speed)
{
    char *end;
    *speed = strtod(text, &end);
    if (end != text && *end == '\0' && *speed >= 0.001 && *speed <= 1e6)
        return true;
    complain("tickwheel run: --speed: expected a number from 0.001 to 1000000, found \"%s\"", text);
    return false;
}

static bool parse_jobs(const char *text, uint64_t *jobs)
{
    if (number_parse(text, JOBS_MAX, jobs) && *jobs > 0)
        return true;
    complain("tickwheel run: --jobs: expected a number from 1 to 1024, found \"%s\"", text);
    return false;
}

enum { OPTION_EXEC = 1, OPTION_JOBS, OPTION_SPEED, OPTION_REST, OPTION_STATS, OPTION_STRICT, OPTION_QUIET };

static bool take_option(int code, void *arg)
{
    struct run_options *options = arg;
    switch (code) {
    case OPTION_EXEC:
        options->exec = optarg;
        return true;
    case OPTION_JOBS:
        return parse_jobs(optarg, &options->jobs);
    case OPTION_SPEED:
        return parse_speed(optarg, &options->speed);
    case OPTION_REST:
        options->rest = optarg;
        return true;
    case OPTION_STATS:
        options->stats = optarg;
        return stats_address("tickwheel run: --stats", optarg, &(struct sockaddr_un){0});
    case OPTION_STRICT:
        options->strict = true;
        return true;
    default:
        options->quiet = true;
        return true;
    }
}

static void help(void)
{
    fputs(HELP, stdout);
}

int run_options_parse(int argc, char **argv, struct run_options *options)
{
    static const struct option LONG[] = {{"exec", required_argument, NULL, OPTION_EXEC},
                                         {"jobs", required_argument, NULL, OPTION_JOBS},
                                         {"speed", required_argument, NULL, OPTION_SPEED},
                                         {"rest", required_argument, NULL, OPTION_REST},
                                         {"stats", required_argument, NULL, OPTION_STATS},
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
    if (options->rest != NULL && !rest_check(options->rest))
        return COMMAND_INPUT;
    return -1;
}
