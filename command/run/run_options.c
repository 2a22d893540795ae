/* SPDX-License-Identifier: MIT */
#include "run_options.h"

#include "command.h"
#include "rest.h"
#include "stats_socket.h"

#include <stdio.h>
#include <stdlib.h>

static const char HELP[] = "usage: tickwheel run [OPTIONS] [FILE...]\n"
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
                           "Empty lines and lines that begin with # are skipped. A key (order:42) names one\n"
                           "task: a later line with the same key replaces that task. The units of time are\n"
                           "ns us ms s m h d, as in 1h30m and 1.5s. A due task prints its time, how many\n"
                           "microseconds late it is, its key and its text. After the end of the input,\n"
                           "tickwheel run waits for the last task. Example, a task that is due in 5 s:\n"
                           "\n"
                           "  echo '+5s tea the tea is ready' | tickwheel run\n"
                           "\n"
                           "  --exec CMD      for each task, run CMD in a shell instead of printing. CMD\n"
                           "                  gets the key and the text on its standard input, and\n"
                           "                  TICKWHEEL_KEY, TICKWHEEL_TEXT, TICKWHEEL_DUE and\n"
                           "                  TICKWHEEL_LATE_US in its environment; a text of more than\n"
                           "                  100000 bytes is on the standard input only\n"
                           "  --jobs N        run at most N commands at once, 1 to 1024 (default 4)\n"
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
                           "SIGINT (Ctrl-C) and SIGTERM stop it cleanly: it waits for running commands and\n"
                           "then writes the rest, as --rest says. If standard output cannot be written, it\n"
                           "stops in the same way.\n"
                           "\n"
                           "Exit status:\n"
                           "  0  success, also when commands failed or a signal stopped it;\n"
                           "  1  lines were skipped, or the output or the rest cannot be written, or the\n"
                           "     scheduler or the socket of --stats cannot be started;\n"
                           "  2  arguments are wrong, a file cannot be read, or --strict stopped it.\n";

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
