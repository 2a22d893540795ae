/* SPDX-License-Identifier: MIT */
#include "top_options.h"

#include "stats_socket.h"
#include "task_options.h"

static const char HELP[] = "usage: tickwheel top [--redis URL | --stats PATH | --store FILE] [OPTIONS]\n"
                           "\n"
                           "Shows the load of a Redis server, a scheduler or a file of tasks, live: the\n"
                           "tasks that are pending, how many come due in a second, how late, and how many\n"
                           "come due in the next minute. docs/top.md explains each number. Examples:\n"
                           "\n"
                           "  tickwheel top --redis redis://db1:6379\n"
                           "  tickwheel top --stats run.sock  (a running `tickwheel run --stats run.sock`)\n"
                           "  tickwheel top --store shop.db  (the file of `tickwheel run --store shop.db`)\n"
                           "\n"
                           "  --stats PATH       read the scheduler of a `tickwheel run --stats PATH`\n"
                           "  --store FILE       read an SQLite file of tasks, by queue\n"
                           "  --queue NAME       of a server or a file: show the forecast and the tasks of\n"
                           "                     this queue only\n"
                           "  --interval TIME    time between two readings: 100ms to 1h (default: 1s)\n"
                           "  --once             print one frame as text. For its rates it reads twice, so\n"
                           "                     it takes one interval\n"
                           "  --json             the same as --once, as one JSON object\n"
                           "  --ascii            use ASCII characters only (the default if the locale is\n"
                           "                     not UTF-8)\n"
                           "\n"
                           "Options for a Redis server with the module:\n"
                           "\n";

static const char HELP_END[] =
    "\n"
    "The queue of --queue is a key of the database --db. The user then needs +info,\n"
    "and +tw.forecast and +tw.info on the key; without --queue, +info and +tw.top.\n"
    "\n"
    "A password that the URL does not hold is taken from the environment:\n"
    "TICKWHEEL_TOP_PASSWORD or, if that is not set, REDISCLI_AUTH. All users of a\n"
    "machine can read arguments, so prefer the environment.\n"
    "\n"
    "Keys: q quits, p pauses, + halves the interval, - doubles it.\n"
    "\n"
    "Exit status:\n"
    "  0  the load was shown;\n"
    "  1  it cannot be read: no server, no module or no permission;\n"
    "  2  arguments are wrong.\n";

static const char COMMAND[] = "tickwheel top";
enum { INTERVAL_MIN_MS = TOP_INTERVAL_MIN_NS / 1000000, INTERVAL_MAX_MS = TOP_INTERVAL_MAX_NS / 1000000 };

/* Checks that there is one source, and that it can have the queue. */
static bool check_source(const struct top_options *options, bool redis)
{
    const char *error = NULL;
    if (options->store != NULL && (redis || options->stats != NULL))
        error = "--store reads a file; --stats is for a scheduler, --redis and its options for a server";
    else if (options->stats != NULL && redis)
        error = "--stats reads a scheduler; --redis and its options are for a server";
    else if (options->stats != NULL && options->queue != NULL)
        error = "--stats reads a scheduler, which has no queues; --queue is for a server or a file";
    if (error != NULL)
        complain("%s: %s", COMMAND, error);
    else if (options->store != NULL && options->queue != NULL)
        return task_options_queue(COMMAND, options->queue, true);
    return error == NULL;
}

/* Checks that the options can be combined. Prints an error if not. */
static bool check(int argc, char **argv, struct top_options *options, const struct option_table *table)
{
    bool other = options->stats != NULL || options->store != NULL;
    if (optind < argc) {
        complain("%s: arguments: expected nothing but options (try: tickwheel top --help), found \"%s\"",
                 COMMAND, argv[optind]);
        return false;
    }
    if (!check_source(options, link_options_given(table)))
        return false;
    if (options->once && options->json) {
        complain("%s: expected --once or --json, found both", COMMAND);
        return false;
    }
    return other || link_options_end(&options->link, table, "TICKWHEEL_TOP_PASSWORD");
}

int top_options_parse(int argc, char **argv, struct top_options *options)
{
    struct option_table table = {.command = COMMAND, .help = {HELP, LINK_OPTIONS_HELP, HELP_END}};
    *options = (struct top_options){.interval_ns = 1000000000};
    link_options_add(&table, &options->link);
    options_other(&table, "--stats", stats_take_path, &options->stats);
    options_text(&table, "--store", &options->store);
    options_text(&table, "--queue", &options->queue);
    options_ns(&table, "--interval", &options->interval_ns, INTERVAL_MIN_MS, INTERVAL_MAX_MS);
    options_flag(&table, "--once", &options->once);
    options_flag(&table, "--json", &options->json);
    options_flag(&table, "--ascii", &options->ascii);
    int status = options_read(&table, argc, argv);
    if (status >= 0)
        return status;
    return check(argc, argv, options, &table) ? -1 : COMMAND_INPUT;
}
