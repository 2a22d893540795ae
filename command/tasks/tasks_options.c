/* SPDX-License-Identifier: MIT */
#include "tasks_options.h"

#include "delayed.h"
#include "printable.h"

#include <string.h>
#include <task/limits.h>

static const char HELP[] = "usage: tickwheel tasks --store FILE [OPTIONS] [COMMAND]\n"
                           "\n"
                           "Shows and changes the tasks of an SQLite file that `tickwheel put` or\n"
                           "`tickwheel run` has made. Any number of processes may do so while another\n"
                           "process runs the tasks. Without COMMAND, it prints a summary by queue: how many\n"
                           "tasks are waiting, ready, leased and dead, and when the next one comes. The\n"
                           "commands:\n"
                           "\n"
                           "  list       the waiting, ready and leased tasks, in the order of their times\n"
                           "  next       the first waiting task of each queue\n"
                           "  forecast   how many calls are due in each minute of the coming half hour\n"
                           "  dead       the dead tasks, in the order of their deaths, with their errors\n"
                           "  replay ID [WHEN]\n"
                           "             make a dead task wait again, with all its tries, until WHEN, which\n"
                           "             is +10m or @TIME (UTC), or now without it\n"
                           "  promote ID\n"
                           "             let a waiting task be ready now, before its time\n"
                           "  cancel ID  remove a task, in whatever state it is\n"
                           "  move ID WHEN\n"
                           "             give a task that is not dead a new time and all its tries\n"
                           "  pause      call no more tasks of the queue, until the pause ends\n"
                           "  resume     end the pause\n"
                           "  purge ID   remove a dead task\n"
                           "\n"
                           "IDs and payloads are printed so that a terminal shows and does not obey them:\n"
                           "a byte that is not printable is \\xNN, and a backslash in an ID is \\\\. An ID is\n"
                           "read in the same form.\n"
                           "\n"
                           "  --store FILE   the SQLite file. It must be writable, even to list its tasks\n"
                           "  --queue NAME   this queue only. Without it, list, next, forecast, dead and\n"
                           "                 the summary show every queue, and the other commands use the\n"
                           "                 queue \"default\". The summary shows one moment; list, next,\n"
                           "                 forecast and dead look at one queue after the other\n"
                           "  --json         one JSON object a line: for each task (list, next, dead), for\n"
                           "                 each queue (forecast, summary) or for the change. Bytes that\n"
                           "                 are not UTF-8 come in hexadecimal, as id_hex and payload_hex\n"
                           "  --count N      list, dead: at most N tasks of a queue; 0: all (default 50;\n"
                           "                 with --json 0)\n"
                           "  --step TIME    forecast: the length of a step, 1ms to 36525d (default 1m)\n"
                           "  --steps N      forecast: the number of steps, 1 to 10000 (default 30)\n"
                           "  --condition X  move: only to a later or an earlier time: gt or lt\n"
                           "  --all          replay, purge: the dead tasks of the queue, in place of\n"
                           "                 ID; promote: its waiting tasks. A call takes at most 10000,\n"
                           "                 or fewer if their payloads come to 32 MiB before: call\n"
                           "                 again until it says 0\n"
                           "  --older TIME   purge: only tasks that died at least so long ago (default 0s)\n"
                           "\n"
                           "Exit status:\n"
                           "  0  success;\n"
                           "  1  the file cannot be read or written, or there is no task with this ID for\n"
                           "     cancel, move, replay, promote or purge, or --condition has kept its time;\n"
                           "  2  arguments are wrong.\n";

enum { COUNT_USUAL = 50, STEPS_USUAL = 30, STEP_USUAL_MS = 60000, MS_NS = 1000000 };

/* The commands: the least and the most arguments, of which the first is an ID and the second a time. */
static const struct {
    const char *name, *expects;
    enum action action;
    int least, most;
} ACTIONS[] = {
    {"list", "no argument", ACTION_LIST, 0, 0},
    {"next", "no argument", ACTION_NEXT, 0, 0},
    {"forecast", "no argument", ACTION_FORECAST, 0, 0},
    {"dead", "no argument", ACTION_DEAD, 0, 0},
    {"replay", "an ID or --all, and perhaps a time", ACTION_REPLAY, 1, 2},
    {"promote", "an ID or --all", ACTION_PROMOTE, 1, 1},
    {"cancel", "an ID", ACTION_CANCEL, 1, 1},
    {"move", "an ID and a time", ACTION_MOVE, 2, 2},
    {"pause", "no argument", ACTION_PAUSE, 0, 0},
    {"resume", "no argument", ACTION_RESUME, 0, 0},
    {"purge", "an ID or --all", ACTION_PURGE, 1, 1},
};
enum { ACTION_COUNT = sizeof ACTIONS / sizeof ACTIONS[0] };

static const char COMMAND[] = "tickwheel tasks";

/* ---- options --------------------------------------------------------------------------------------------- */

static bool take_count(const struct option_row *row)
{
    return number_parse(optarg, UINT64_MAX, row->to) || option_refuse(row, "a number, or 0 for all");
}

static bool take_condition(const struct option_row *row)
{
    unsigned *condition = row->to;
    *condition = strcmp(optarg, "gt") == 0 ? TW_CONDITION_GT : strcmp(optarg, "lt") == 0 ? TW_CONDITION_LT : 0;
    return *condition != 0 || option_refuse(row, "gt or lt");
}

static bool take_older(const struct option_row *row)
{
    uint64_t *older_ms = row->to;
    if (!duration_parse(optarg, older_ms))
        return option_refuse(row, "a duration such as 7d");
    *older_ms /= MS_NS;
    return true;
}

/* ---- the command and its arguments ----------------------------------------------------------------------- */

/* Refuses an option that is not for the command. */
static bool check_options(const struct option_table *table, enum action action)
{
    static const struct {
        const char *name, *of;
        unsigned actions;
    } LIMITED[] = {
        {"--count", "list and dead", 1U << ACTION_LIST | 1U << ACTION_DEAD},
        {"--step", "forecast", 1U << ACTION_FORECAST},
        {"--steps", "forecast", 1U << ACTION_FORECAST},
        {"--condition", "move", 1U << ACTION_MOVE},
        {"--all", "replay, promote and purge", 1U << ACTION_REPLAY | 1U << ACTION_PROMOTE | 1U << ACTION_PURGE},
        {"--older", "purge", 1U << ACTION_PURGE}};
    for (size_t i = 0; i < sizeof LIMITED / sizeof LIMITED[0]; i++)
        if (options_given(table, LIMITED[i].name) && (LIMITED[i].actions & 1U << action) == 0) {
            complain("%s: %s is for %s only", COMMAND, LIMITED[i].name, LIMITED[i].of);
            return false;
        }
    return true;
}

static bool take_id(struct tasks_options *options, char *text)
{
    options->id = (struct tw_bytes){text, printable_read(text)};
    if (options->id.size > 0 && options->id.size <= TW_STORE_ANY_ID_MAX)
        return true;
    complain("%s: id has %zu bytes: expected 1 to %d", COMMAND, options->id.size, TW_STORE_ANY_ID_MAX);
    return false;
}

static bool take_when(struct tasks_options *options, const char *text)
{
    struct line line = {.kind = LINE_MOVE, .id = "", .payload = ""};
    struct tw_store_delayed task;
    const char *error = when_parse(text, &line);
    if (error != NULL) {
        complain("tickwheel tasks: %s, found \"%s\"", error, text);
        return false;
    }
    delayed_make(&(struct task_options){0}, &line, &task);
    options->due_ms = task.due_ms;
    return true;
}

/* `all`: the tasks that --all names stand in the place of an ID. */
static bool take_arguments(struct tasks_options *options, int own, bool all, int count, char **words)
{
    if (count < ACTIONS[own].least - all || count > ACTIONS[own].most - all) {
        complain("%s %s: expected %s, found %d argument%s", COMMAND, ACTIONS[own].name, ACTIONS[own].expects,
                 count, count == 1 ? "" : "s");
        return false;
    }
    if (!all && count > 0 && !take_id(options, *words++))
        return false;
    return count + all < 2 || take_when(options, *words);
}

static int find_action(const char *name)
{
    for (int i = 0; i < ACTION_COUNT; i++)
        if (strcmp(ACTIONS[i].name, name) == 0)
            return i;
    complain("tickwheel tasks: there is no command \"%s\" (try: tickwheel tasks --help)", name);
    return -1;
}

static bool take_command(struct tasks_options *options, const struct option_table *table, int count,
                         char **words)
{
    if (count == 0)
        return check_options(table, ACTION_SUMMARY);
    int own = find_action(words[0]);
    if (own < 0)
        return false;
    options->action = ACTIONS[own].action;
    return check_options(table, options->action) &&
           take_arguments(options, own, options_given(table, "--all"), count - 1, words + 1);
}

int tasks_options_parse(int argc, char **argv, struct tasks_options *options)
{
    struct option_table table = {.command = COMMAND, .help = {HELP}};
    struct tw__task_range step = tw__task_range(TW__TASK_IN_STEP), steps = tw__task_range(TW__TASK_IN_STEPS);
    bool all = false;
    *options = (struct tasks_options){.due_ms = tw_store_now(), .step_ms = STEP_USUAL_MS, .steps = STEPS_USUAL};
    options_text(&table, "--store", &options->store);
    options_other(&table, "--queue", task_options_take_queue, &options->queue);
    options_flag(&table, "--json", &options->json);
    options_other(&table, "--count", take_count, &options->count);
    options_ms(&table, "--step", &options->step_ms, step.least, step.most);
    options_number(&table, "--steps", &options->steps, steps.least, steps.most);
    options_other(&table, "--condition", take_condition, &options->condition);
    options_flag(&table, "--all", &all);
    options_other(&table, "--older", take_older, &options->older_ms);
    int status = options_read(&table, argc, argv);
    if (status >= 0)
        return status;
    if (options->store == NULL) {
        complain("%s: expected --store FILE (try: tickwheel tasks --help)", COMMAND);
        return COMMAND_INPUT;
    }
    if (!options_given(&table, "--count"))
        options->count = options->json ? 0 : COUNT_USUAL;
    return take_command(options, &table, argc - optind, argv + optind) ? -1 : COMMAND_INPUT;
}
