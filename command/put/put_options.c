/* SPDX-License-Identifier: MIT */
#include "put_options.h"

#include "command.h"

#include <stdio.h>
#include <task/limits.h>

static const char HELP_HEAD[] =
    "usage: tickwheel put --store FILE [OPTIONS] WHEN ID [PAYLOAD...]\n"
    "       tickwheel put --store FILE [OPTIONS] [FILE...]\n"
    "\n"
    "Puts tasks into an SQLite file, where they survive the end of every process.\n"
    "`tickwheel run --store FILE` runs them when they are due, `tickwheel tasks`\n"
    "shows them. The file is made if it does not exist. Examples:\n"
    "\n"
    "  tickwheel put --store shop.db +30m order:42 notify unpaid\n"
    "  tickwheel put --store shop.db @2026-12-01T09:00:00Z order:42 notify unpaid\n"
    "  tickwheel put --store shop.db orders.tasks\n"
    "\n"
    "WHEN is +DURATION or @TIME (UTC). The units of time are ns us ms s m h d, as\n"
    "in 1h30m and 1.5s. ID names one task of its queue: a put with the ID of another\n"
    "task replaces that task. In ID, \\xNN is a byte and \\\\ a backslash. An ID that\n"
    "begins with - needs -- before WHEN. The words of PAYLOAD are joined by blanks.\n"
    "\n"
    "Without WHEN, it reads lines from the files, or from standard input, as\n"
    "`tickwheel run` does: tasks, `every`, `move`, `cancel` and `wait`. Lines that\n"
    "have arrived together share a commit, at most 1000. A line that arrives alone\n"
    "is committed at once.\n"
    "\n"
    "  --store FILE    the SQLite file, in WAL mode; a new file is made so\n"
    "  --queue NAME    the queue of the tasks (default: default)\n"
    "  --if CONDITION  put under this condition only: nx, xx, gt or lt\n"
    "                  nx: the queue has no task with this ID; xx: it has one; gt, lt:\n"
    "                  an existing task only gets a later or an earlier time\n"
    "  --keepdue       a task that exists keeps its time, also with --every, and gets\n"
    "                  the new payload and options. For tasks that a program puts at\n"
    "                  each start. Alone, or with --if nx or xx\n"
    "  --every TIME    repeat the task; WHEN is its first time. At least 1ms\n"
    "  --times N       with --every, call it N times (default: for ever)\n";

static const char HELP_TAIL[] =
    "  --ack           after each commit, print how many lines are in the file so far\n"
    "  --strict        stop at the first malformed line, with status 2; without\n"
    "                  --strict, the line is skipped and the status is 1\n"
    "  --quiet         print no summary of lines\n"
    "\n"
    "Exit status:\n"
    "  0  the tasks are on the disk;\n"
    "  1  the file cannot be written, a condition kept the task WHEN ID as it was,\n"
    "     or lines were skipped;\n"
    "  2  arguments are wrong, an input file cannot be read, or --strict stopped it.\n";

static const char COMMAND[] = "tickwheel put";

enum { OPTION_STORE = 1, OPTION_EVERY, OPTION_TIMES, OPTION_ACK, OPTION_STRICT, OPTION_QUIET };

static bool take_flag(int code, struct put_options *options)
{
    options->ack |= code == OPTION_ACK;
    options->strict |= code == OPTION_STRICT;
    options->quiet |= code == OPTION_QUIET;
    return true;
}

static bool take_option(int code, void *arg)
{
    struct put_options *options = arg;
    if (task_options_has(code))
        return task_options_take(&options->task, COMMAND, code);
    switch (code) {
    case OPTION_STORE:
        options->store = optarg;
        return true;
    case OPTION_EVERY:
        return option_time(COMMAND, "--every", 1, tw__task_range(TW__TASK_IN_EVERY).most, &options->period_ns);
    case OPTION_TIMES:
        return option_number(COMMAND, "--times", 1, INT64_MAX, &options->times);
    default:
        return take_flag(code, options);
    }
}

static void help(void)
{
    printf("%s%s%s", HELP_HEAD, TASK_OPTIONS_HELP, HELP_TAIL);
}

/* Checks that the options can be combined. */
static bool check(const struct put_options *options, const char *first)
{
    bool task = first != NULL && (*first == '+' || *first == '@');
    if (options->store == NULL) {
        complain("tickwheel put: expected --store FILE (try: tickwheel put --help)");
        return false;
    }
    if (options->task.conditions & TW_CONDITION_KEEPDUE &&
        options->task.conditions & (TW_CONDITION_GT | TW_CONDITION_LT)) {
        complain(
            "tickwheel put: the conditions are --keepdue and %s: expected --keepdue alone, or with nx or xx",
            options->task.conditions & TW_CONDITION_GT ? "gt" : "lt");
        return false;
    }
    if (options->times > 0 && options->period_ns == 0) {
        complain("tickwheel put: --times needs --every");
        return false;
    }
    if (!task && options->period_ns > 0) {
        complain("tickwheel put: --every needs WHEN and ID; a line has its own `every`");
        return false;
    }
    return options->task.queue == NULL || task_options_queue("tickwheel put", options->task.queue, false);
}

int put_options_parse(int argc, char **argv, struct put_options *options)
{
    static const struct option LONG[] = {{"store", required_argument, NULL, OPTION_STORE},
                                         TASK_OPTIONS,
                                         {"if", required_argument, NULL, TASK_OPTION_IF},
                                         {"keepdue", no_argument, NULL, TASK_OPTION_KEEPDUE},
                                         {"every", required_argument, NULL, OPTION_EVERY},
                                         {"times", required_argument, NULL, OPTION_TIMES},
                                         {"ack", no_argument, NULL, OPTION_ACK},
                                         {"strict", no_argument, NULL, OPTION_STRICT},
                                         {"quiet", no_argument, NULL, OPTION_QUIET},
                                         {"help", no_argument, NULL, OPTION_HELP},
                                         {NULL, 0, NULL, 0}};
    static const struct option_reader READER = {":h", LONG, take_option, help};
    int status = options_read(&READER, argc, argv, options);
    if (status >= 0)
        return status;
    return check(options, optind < argc ? argv[optind] : NULL) ? -1 : COMMAND_INPUT;
}
