/* SPDX-License-Identifier: MIT */
#include "tasks_options.h"

#include "command.h"
#include "delayed.h"
#include "printable.h"

#include <stdio.h>
#include <string.h>

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
                           "             give a task that is not dead a new time and all its tries; it is\n"
                           "             then a new revision\n"
                           "  pause      call no more tasks of the queue, until the pause ends\n"
                           "  resume     end the pause\n"
                           "  purge [ID] remove a dead task or, without ID, all of the queue\n"
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
                           "  --steps N      forecast: the number of steps, 1 to 1000 (default 30)\n"
                           "  --if COND      move: only to a later or an earlier time: gt or lt\n"
                           "  --all          replay: the dead tasks of the queue, in place of ID;\n"
                           "                 promote: its waiting tasks. At most 10000 in a call, or\n"
                           "                 fewer if their payloads come to 32 MiB before\n"
                           "  --older TIME   purge: only tasks that died at least so long ago (default 0s)\n"
                           "\n"
                           "Exit status:\n"
                           "  0  success;\n"
                           "  1  the file cannot be read or written, or there is no task with this ID for\n"
                           "     cancel, move, replay, promote or purge, or --if has kept its time;\n"
                           "  2  arguments are wrong.\n";

enum {
    OPTION_STORE = 1,
    OPTION_QUEUE,
    OPTION_JSON,
    OPTION_COUNT,
    OPTION_STEP,
    OPTION_STEPS,
    OPTION_IF,
    OPTION_ALL,
    OPTION_OLDER,
    OPTIONS
};

enum { COUNT_USUAL = 50, STEPS_USUAL = 30, STEPS_MAX = 1000, STEP_USUAL_MS = 60000, MS_NS = 1000000 };

/* The commands: the least and the most arguments, of which the first is an ID and the second a time, and the
 * options that are for them alone. */
static const struct {
    const char *name, *expects;
    enum action action;
    int least, most;
    unsigned options;
} ACTIONS[] = {
    {"list", "no argument", ACTION_LIST, 0, 0, 1U << OPTION_COUNT},
    {"next", "no argument", ACTION_NEXT, 0, 0, 0},
    {"forecast", "no argument", ACTION_FORECAST, 0, 0, 1U << OPTION_STEP | 1U << OPTION_STEPS},
    {"dead", "no argument", ACTION_DEAD, 0, 0, 1U << OPTION_COUNT},
    {"replay", "an ID or --all, and perhaps a time", ACTION_REPLAY, 1, 2, 1U << OPTION_ALL},
    {"promote", "an ID or --all", ACTION_PROMOTE, 1, 1, 1U << OPTION_ALL},
    {"cancel", "an ID", ACTION_CANCEL, 1, 1, 0},
    {"move", "an ID and a time", ACTION_MOVE, 2, 2, 1U << OPTION_IF},
    {"pause", "no argument", ACTION_PAUSE, 0, 0, 0},
    {"resume", "no argument", ACTION_RESUME, 0, 0, 0},
    {"purge", "an ID or no argument", ACTION_PURGE, 0, 1, 1U << OPTION_OLDER},
};
enum { ACTION_COUNT = sizeof ACTIONS / sizeof ACTIONS[0] };

/* The options, and which of them were given. */
struct reading {
    struct tasks_options *options;
    unsigned given;
};

static const char COMMAND[] = "tickwheel tasks";
static const uint64_t STEP_MAX_MS = UINT64_C(3155760000000);

/* ---- options --------------------------------------------------------------------------------------------- */

static bool parse_count(const char *text, uint64_t *count)
{
    return number_parse(text, UINT64_MAX, count) ||
           option_refuse(COMMAND, "--count", "a number, or 0 for all", text);
}

static bool parse_steps(uint32_t *steps)
{
    uint64_t number = 0;
    bool good = option_number(COMMAND, "--steps", 1, STEPS_MAX, &number);
    *steps = (uint32_t)number;
    return good;
}

static bool parse_if(const char *text, unsigned *condition)
{
    *condition = strcmp(text, "gt") == 0 ? TW_CONDITION_GT : strcmp(text, "lt") == 0 ? TW_CONDITION_LT : 0;
    return *condition != 0 || option_refuse(COMMAND, "--if", "gt or lt", text);
}

static bool parse_older(const char *text, uint64_t *older_ms)
{
    uint64_t ns;
    if (!duration_parse(text, &ns))
        return option_refuse(COMMAND, "--older", "a duration such as 7d", text);
    *older_ms = ns / MS_NS;
    return true;
}

static bool take_option(int code, void *arg)
{
    struct reading *reading = arg;
    struct tasks_options *options = reading->options;
    reading->given |= 1U << code;
    switch (code) {
    case OPTION_STORE:
        options->store = optarg;
        return true;
    case OPTION_QUEUE:
        options->queue = optarg;
        return task_options_queue("tickwheel tasks", optarg, true);
    case OPTION_COUNT:
        return parse_count(optarg, &options->count);
    case OPTION_STEP:
        return option_ms(COMMAND, "--step", 1, STEP_MAX_MS, &options->step_ms);
    case OPTION_STEPS:
        return parse_steps(&options->steps);
    case OPTION_IF:
        return parse_if(optarg, &options->condition);
    case OPTION_OLDER:
        return parse_older(optarg, &options->older_ms);
    default:
        options->json |= code == OPTION_JSON;
        return true;
    }
}

/* ---- the command and its arguments ----------------------------------------------------------------------- */

/* Refuses an option that is not for the command, `own`: its options. */
static bool check_options(unsigned given, unsigned own)
{
    static const struct {
        const char *name, *of;
    } LIMITED[OPTIONS] = {
        [OPTION_COUNT] = {"--count", "list and dead"},  [OPTION_STEP] = {"--step", "forecast"},
        [OPTION_STEPS] = {"--steps", "forecast"},       [OPTION_IF] = {"--if", "move"},
        [OPTION_ALL] = {"--all", "replay and promote"}, [OPTION_OLDER] = {"--older", "purge"}};
    for (int option = 0; option < OPTIONS; option++)
        if (LIMITED[option].name != NULL && (given & ~own & 1U << option) != 0) {
            complain("tickwheel tasks: %s is for %s only", LIMITED[option].name, LIMITED[option].of);
            return false;
        }
    return true;
}

static bool take_id(struct tasks_options *options, char *text)
{
    options->id = (struct tw_bytes){text, printable_read(text)};
    if (options->id.size > 0 && options->id.size <= TW_STORE_ANY_ID_MAX)
        return true;
    complain("tickwheel tasks: expected an ID of 1 to 1024 bytes, found one of %zu", options->id.size);
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

static bool take_arguments(struct reading *reading, int own, int count, char **words)
{
    bool all = (reading->given & 1U << OPTION_ALL) != 0; /* in place of the ID */
    if (count < ACTIONS[own].least - all || count > ACTIONS[own].most - all) {
        complain("tickwheel tasks %s: expected %s, found %d argument%s", ACTIONS[own].name,
                 ACTIONS[own].expects, count, count == 1 ? "" : "s");
        return false;
    }
    if (!all && count > 0 && !take_id(reading->options, *words++))
        return false;
    return count + all < 2 || take_when(reading->options, *words);
}

static int find_action(const char *name)
{
    for (int i = 0; i < ACTION_COUNT; i++)
        if (strcmp(ACTIONS[i].name, name) == 0)
            return i;
    complain("tickwheel tasks: there is no command \"%s\" (try: tickwheel tasks --help)", name);
    return -1;
}

static bool take_command(struct reading *reading, int count, char **words)
{
    if (count == 0)
        return check_options(reading->given, 0);
    int own = find_action(words[0]);
    if (own < 0)
        return false;
    reading->options->action = ACTIONS[own].action;
    return check_options(reading->given, ACTIONS[own].options) &&
           take_arguments(reading, own, count - 1, words + 1);
}

static void help(void)
{
    fputs(HELP, stdout);
}

int tasks_options_parse(int argc, char **argv, struct tasks_options *options)
{
    static const struct option LONG[] = {{"store", required_argument, NULL, OPTION_STORE},
                                         {"queue", required_argument, NULL, OPTION_QUEUE},
                                         {"json", no_argument, NULL, OPTION_JSON},
                                         {"count", required_argument, NULL, OPTION_COUNT},
                                         {"step", required_argument, NULL, OPTION_STEP},
                                         {"steps", required_argument, NULL, OPTION_STEPS},
                                         {"if", required_argument, NULL, OPTION_IF},
                                         {"all", no_argument, NULL, OPTION_ALL},
                                         {"older", required_argument, NULL, OPTION_OLDER},
                                         {"help", no_argument, NULL, OPTION_HELP},
                                         {NULL, 0, NULL, 0}};
    static const struct option_reader READER = {":h", LONG, take_option, help};
    struct reading reading = {.options = options};
    *options = (struct tasks_options){.due_ms = tw_store_now(), .step_ms = STEP_USUAL_MS, .steps = STEPS_USUAL};
    int status = options_read(&READER, argc, argv, &reading);
    if (status >= 0)
        return status;
    if (options->store == NULL) {
        complain("tickwheel tasks: expected --store FILE (try: tickwheel tasks --help)");
        return COMMAND_INPUT;
    }
    if ((reading.given & 1U << OPTION_COUNT) == 0)
        options->count = options->json ? 0 : COUNT_USUAL;
    return take_command(&reading, argc - optind, argv + optind) ? -1 : COMMAND_INPUT;
}
