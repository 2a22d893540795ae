/* SPDX-License-Identifier: MIT */
#include "put_options.h"

#include <inttypes.h>
#include <string.h>
#include <task/limits.h>
#include <task/words.h>

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
    "  --condition X   put under this condition only: nx, xx, gt or lt\n"
    "                  nx: the queue has no task with this ID; xx: it has one; gt, lt:\n"
    "                  an existing task only gets a later or an earlier time\n"
    "  --keepdue       a task that exists keeps its time, also with --every, and gets\n"
    "                  the new payload and options. For tasks that a program puts at\n"
    "                  each start. Alone, or with --condition nx or xx\n"
    "  --every TIME    repeat the task; WHEN is its first time. At least 1ms\n"
    "  --times N       with --every, call it N times (default: no end)\n";

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

static bool take_condition(const struct option_row *row)
{
    unsigned *taken = row->to;
    static const struct {
        const char *name;
        unsigned condition;
    } conditions[] = {
        {"nx", TW_CONDITION_NX}, {"xx", TW_CONDITION_XX}, {"gt", TW_CONDITION_GT}, {"lt", TW_CONDITION_LT}};
    const char *before = NULL, *found = NULL;
    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
        if (strcmp(optarg, conditions[i].name) == 0) {
            found = conditions[i].name;
            *taken |= conditions[i].condition;
        } else if (*taken & conditions[i].condition) {
            before = conditions[i].name;
        }
    }
    if (found == NULL)
        return option_refuse(row, "nx, xx, gt or lt");
    if (before == NULL)
        return true;
    complain("%s: the conditions are %s and %s: expected one of nx, xx, gt and lt", COMMAND, before, found);
    return false;
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
        complain("tickwheel put: --times is %" PRIu64 ": expected --every too", options->times);
        return false;
    }
    if (task && options->task.missed_given && options->period_ns == 0) {
        complain("tickwheel put: --missed is %s: expected --every too",
                 tw__task_missed_name(options->task.missed));
        return false;
    }
    if (!task && options->period_ns > 0) {
        complain("tickwheel put: --every: expected WHEN and ID, as a line has its own `every`");
        return false;
    }
    return options->task.queue == NULL || task_options_queue("tickwheel put", options->task.queue, false);
}

int put_options_parse(int argc, char **argv, struct put_options *options)
{
    struct option_table table = {.command = COMMAND, .help = {HELP_HEAD, TASK_OPTIONS_HELP, HELP_TAIL}};
    bool keepdue = false;
    options_text(&table, "--store", &options->store);
    task_options_add(&table, &options->task);
    options_other(&table, "--condition", take_condition, &options->task.conditions);
    options_flag(&table, "--keepdue", &keepdue);
    options_ns(&table, "--every", &options->period_ns, 1, tw__task_range(TW__TASK_IN_EVERY).most);
    options_number(&table, "--times", &options->times, 1, INT64_MAX);
    options_flag(&table, "--ack", &options->ack);
    options_flag(&table, "--strict", &options->strict);
    options_flag(&table, "--quiet", &options->quiet);
    int status = options_read(&table, argc, argv);
    if (status >= 0)
        return status;
    if (keepdue)
        options->task.conditions |= TW_CONDITION_KEEPDUE;
    return check(options, optind < argc ? argv[optind] : NULL) ? -1 : COMMAND_INPUT;
}
