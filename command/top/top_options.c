/* SPDX-License-Identifier: MIT */
#include "top_options.h"

#include "command.h"
#include "stats_socket.h"
#include "task_line.h"
#include "task_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] = "usage: tickwheel top [--redis HOST:PORT | --stats PATH | --store FILE] [OPTIONS]\n"
                           "\n"
                           "Shows the load of a Redis server, a scheduler or a file of tasks, live: the\n"
                           "tasks that are pending, how many fire in a second and how late, and how many\n"
                           "are due in the coming minute. docs/top.md explains each number. Examples:\n"
                           "\n"
                           "  tickwheel top --redis 127.0.0.1:6379\n"
                           "  tickwheel top --stats run.sock  (a running `tickwheel run --stats run.sock`)\n"
                           "  tickwheel top --store shop.db  (the file of `tickwheel run --store shop.db`)\n"
                           "\n"
                           "  --redis ADDRESS    read a Redis server with the module: HOST:PORT, [IPV6]:PORT\n"
                           "                     or unix:PATH (default: 127.0.0.1:7379)\n"
                           "  --stats PATH       read the scheduler of a `tickwheel run --stats PATH`\n"
                           "  --store FILE       read an SQLite file of tasks, by queue\n"
                           "  --queue NAME       with --store, this queue only\n"
                           "  --interval TIME    time between two readings: 100ms to 1h (default: 1s)\n"
                           "  --once             print one frame as text. For its rates it reads twice, so\n"
                           "                     it takes one interval\n"
                           "  --json             the same as --once, as one JSON object\n"
                           "  --ascii            use ASCII characters only (the default if the locale is\n"
                           "                     not UTF-8)\n"
                           "\n"
                           "Options for a Redis server:\n"
                           "\n"
                           "  --user NAME        log in as this user. The password is taken from the\n"
                           "                     environment: TICKWHEEL_TOP_PASSWORD or, if that is not set,\n"
                           "                     REDISCLI_AUTH\n"
                           "  --schedule KEY     show the forecast and the tasks of one schedule only. The\n"
                           "                     user then needs +info, and +tw.forecast and +tw.info on the\n"
                           "                     key; without --schedule, +info and +tw.top\n"
                           "  --db N             the database of that schedule, 0 to 2147483647 (default 0)\n"
                           "\n"
                           "Keys: q quits, p pauses, + halves the interval, - doubles it.\n"
                           "\n"
                           "Exit status:\n"
                           "  0  the load was shown;\n"
                           "  1  it cannot be read: no server, no module or no permission;\n"
                           "  2  arguments are wrong.\n";

enum { PORT_USUAL = 7379, PORT_MAX = 65535 };
static const char ADDRESS_USUAL[] = "127.0.0.1:7379";

static bool refuse(const char *option, const char *expected, const char *found)
{
    complain("tickwheel top: %s: expected %s, found \"%s\"", option, expected, found);
    return false;
}

/* ---- values ---------------------------------------------------------------------------------------------- */

static bool parse_unix(const char *path, struct top_options *options)
{
    struct sockaddr_un address;
    if (!stats_address("tickwheel top: --redis", path, &address))
        return false;
    snprintf(options->host, sizeof options->host, "%s", path);
    options->port = 0;
    return true;
}

/* Reads HOST, HOST:PORT, :PORT, [IPV6] or [IPV6]:PORT. */
static bool parse_address(const char *text, struct top_options *options)
{
    static const char expected[] = "HOST:PORT, with a port from 1 to 65535, or unix:PATH";
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text + 5, options);
    const char *host = *text == '[' ? text + 1 : text, *end = strchr(text, *text == '[' ? ']' : ':');
    if (end == NULL && *text == '[')
        return refuse("--redis", expected, text);
    size_t size = end == NULL ? strlen(host) : (size_t)(end - host);
    const char *port = end == NULL ? "" : *end == ']' ? end + 1 : end;
    uint64_t number = PORT_USUAL;
    bool good = *port == '\0' || (*port == ':' && number_parse(port + 1, PORT_MAX, &number) && number > 0);
    if (!good || size >= sizeof options->host || *text == '\0' || (*text == '[' && size == 0))
        return refuse("--redis", expected, text);
    snprintf(options->host, sizeof options->host, "%.*s", size == 0 ? 9 : (int)size,
             size == 0 ? "127.0.0.1" : host);
    options->port = (int)number;
    return true;
}

static bool parse_interval(const char *text, uint64_t *ns)
{
    if (duration_parse(text, ns) && *ns >= TOP_INTERVAL_MIN_NS && *ns <= TOP_INTERVAL_MAX_NS)
        return true;
    return refuse("--interval", "a duration from 100ms to 1h", text);
}

static bool parse_db(const char *text, int *db)
{
    uint64_t number;
    if (!number_parse(text, INT32_MAX, &number))
        return refuse("--db", "a number from 0 to 2147483647", text);
    *db = (int)number;
    return true;
}

static bool parse_stats(const char *path, struct top_options *options)
{
    struct sockaddr_un address;
    options->stats = path;
    return stats_address("tickwheel top: --stats", path, &address);
}

/* ---- options --------------------------------------------------------------------------------------------- */

enum {
    OPTION_REDIS = 1,
    OPTION_STATS,
    OPTION_STORE,
    OPTION_QUEUE,
    OPTION_INTERVAL,
    OPTION_ONCE,
    OPTION_JSON,
    OPTION_ASCII,
    OPTION_USER,
    OPTION_SCHEDULE,
    OPTION_DB
};

static const struct option LONG[] = {{"redis", required_argument, NULL, OPTION_REDIS},
                                     {"stats", required_argument, NULL, OPTION_STATS},
                                     {"store", required_argument, NULL, OPTION_STORE},
                                     {"queue", required_argument, NULL, OPTION_QUEUE},
                                     {"interval", required_argument, NULL, OPTION_INTERVAL},
                                     {"once", no_argument, NULL, OPTION_ONCE},
                                     {"json", no_argument, NULL, OPTION_JSON},
                                     {"ascii", no_argument, NULL, OPTION_ASCII},
                                     {"user", required_argument, NULL, OPTION_USER},
                                     {"schedule", required_argument, NULL, OPTION_SCHEDULE},
                                     {"db", required_argument, NULL, OPTION_DB},
                                     {"help", no_argument, NULL, OPTION_HELP},
                                     {NULL, 0, NULL, 0}};

static bool take_flag(int code, struct top_options *options)
{
    options->once |= code == OPTION_ONCE;
    options->json |= code == OPTION_JSON;
    options->ascii |= code == OPTION_ASCII;
    return true;
}

static bool take_option(int code, void *arg)
{
    struct top_options *options = arg;
    switch (code) {
    case OPTION_REDIS:
        options->address = optarg;
        return parse_address(optarg, options);
    case OPTION_STATS:
        return parse_stats(optarg, options);
    case OPTION_STORE:
        options->store = optarg;
        return true;
    case OPTION_QUEUE:
        options->queue = optarg;
        return task_options_queue("tickwheel top", optarg);
    case OPTION_INTERVAL:
        return parse_interval(optarg, &options->interval_ns);
    case OPTION_USER:
        options->user = optarg;
        return *optarg != '\0' || refuse("--user", "a name", optarg);
    case OPTION_SCHEDULE:
        options->schedule = optarg;
        return true;
    case OPTION_DB:
        return parse_db(optarg, &options->db);
    default:
        return take_flag(code, options);
    }
}

static void take_password(struct top_options *options)
{
    options->password = getenv("TICKWHEEL_TOP_PASSWORD");
    if (options->password == NULL)
        options->password = getenv("REDISCLI_AUTH");
}

/* Checks that there is one source. `redis`: an option for a server was given. */
static bool check_source(const struct top_options *options, bool redis)
{
    const char *error = NULL;
    if (options->stats != NULL && redis)
        error = "--stats reads a scheduler; --redis, --user, --schedule and --db are for a server";
    else if (options->store != NULL && (redis || options->stats != NULL))
        error =
            "--store reads a file; --stats is for a scheduler, and --redis, --user, --schedule and --db are "
            "for a server";
    else if (options->queue != NULL && options->store == NULL)
        error = "--queue needs --store";
    if (error != NULL)
        complain("tickwheel top: %s", error);
    return error == NULL;
}

/* Checks that the options can be combined. Prints an error if not. */
static bool check(int argc, char **argv, struct top_options *options)
{
    bool redis =
        options->address != NULL || options->user != NULL || options->schedule != NULL || options->db > 0;
    if (optind < argc)
        return refuse("arguments", "nothing but options (try: tickwheel top --help)", argv[optind]);
    if (!check_source(options, redis))
        return false;
    if (options->once && options->json) {
        complain("tickwheel top: expected --once or --json, found both");
        return false;
    }
    if (options->user != NULL && options->password == NULL) {
        complain("tickwheel top: --user %s: set the password in TICKWHEEL_TOP_PASSWORD", options->user);
        return false;
    }
    return true;
}

static void help(void)
{
    fputs(HELP, stdout);
}

int top_options_parse(int argc, char **argv, struct top_options *options)
{
    static const struct option_reader READER = {":h", LONG, take_option, help};
    *options = (struct top_options){.interval_ns = 1000000000};
    parse_address(ADDRESS_USUAL, options);
    int status = options_read(&READER, argc, argv, options);
    if (status >= 0)
        return status;
    take_password(options);
    if (!check(argc, argv, options))
        return COMMAND_INPUT;
    if (options->address == NULL)
        options->address = ADDRESS_USUAL;
    return -1;
}
