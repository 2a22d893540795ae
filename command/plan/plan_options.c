/* SPDX-License-Identifier: MIT
 *
 * The question that `tickwheel plan` is asked.
 */
#include "plan_options.h"

#include "command.h"
#include "quantity.h"
#include "task_line.h"

#include <math.h>
#include <stdio.h>

static const char HELP[] = "usage: tickwheel plan --timers N --tick TIME --max TIME [OPTIONS]\n"
                           "       tickwheel plan --levels --tick TIME\n"
                           "\n"
                           "Says which wheel suits so many pending timers: its levels, its memory, how many\n"
                           "timers are due and refiled on a tick, on average and at worst, and how the\n"
                           "presets compare. Times are written 1ms, 0.5s, 7d or 1h30m (ns us ms s m h d are\n"
                           "the units), numbers 5000000, 5e6 or 5M (k, M, G).\n"
                           "\n"
                           "  --timers N         timers that are pending at a time, 1 to 1e12\n"
                           "  --tick TIME        the length of a tick, 1ns to 1d\n"
                           "  --max TIME         the longest delay, --tick to 584 years\n"
                           "  --lifetime TIME    how long a timer is pending on average, --tick to --max\n"
                           "                     (default: --max)\n"
                           "  --rate N           instead of --lifetime: timers added a second, a move to a\n"
                           "                     later time counted as one more\n"
                           "%s"
                           "  --sched            the memory of tasks of the scheduler besides\n"
                           "  --redis BYTES      the memory of tasks of the Redis module besides, with\n"
                           "                     payloads of so many bytes, 0 to 1e9\n"
                           "  --json             one line of JSON\n"
                           "  --levels           only the levels of each preset, as Markdown: granularity,\n"
                           "                     range, memory\n"
                           "\n"
                           "What it assumes: deadlines do not depend on each other, and lie no denser far\n"
                           "away than near. Then no tick refiles more than the worst it names, but once in\n"
                           "1e12 slots. All deadlines on one tick are a line of their own.\n"
                           "\n"
                           "Exit status: 0 when it has planned; 1 when the wheel that was asked for would\n"
                           "refuse the longest delay; 2 when the arguments are not valid.\n";

static const double timers_max = 1e12, payload_max = 1e9;
static const uint64_t day_ns = UINT64_C(86400000000000);

static void help(void)
{
    printf(HELP, SHAPE_HELP);
}

static bool wrong(const char *option, const char *expected, const char *text)
{
    complain("tickwheel plan: %s: expected %s, found \"%s\"", option, expected, text);
    return false;
}

static bool read_timers(struct plan_options *o)
{
    double *n = &o->timers;
    return (quantity_parse(optarg, n) && *n >= 1 && *n <= timers_max && *n == floor(*n)) ||
           wrong("--timers", "a whole number of timers, 1 to 1e12 (such as 5e6 or 5M)", optarg);
}

static bool read_tick(struct plan_options *o)
{
    return (duration_parse(optarg, &o->tick_ns) && o->tick_ns >= 1 && o->tick_ns <= day_ns) ||
           wrong("--tick", "the length of a tick, 1ns to 1d (such as 1ms)", optarg);
}

/* The bounds by --tick and --max are checked when all have been read. */
static bool read_time(const char *option, uint64_t *ns)
{
    return (duration_parse(optarg, ns) && *ns > 0) ||
           wrong(option, "a time, --tick to 584 years (such as 30s or 7d)", optarg);
}

static bool read_rate(struct plan_options *o)
{
    return (quantity_parse(optarg, &o->rate) && o->rate > 0) ||
           wrong("--rate", "timers a second, more than 0 (such as 5000 or 5k)", optarg);
}

static bool read_redis(struct plan_options *o)
{
    double *bytes = &o->redis_payload;
    o->redis = true;
    return (quantity_parse(optarg, bytes) && *bytes <= payload_max && *bytes == floor(*bytes)) ||
           wrong("--redis", "the bytes of a payload, 0 to 1e9", optarg);
}

enum { TIMERS = 1, TICK, MAX, LIFETIME, RATE, SCHED, REDIS, JSON, LEVELS };

static const struct option LONG_OPTIONS[] = {
    {"timers", required_argument, NULL, TIMERS}, {"tick", required_argument, NULL, TICK},
    {"max", required_argument, NULL, MAX},       {"lifetime", required_argument, NULL, LIFETIME},
    {"rate", required_argument, NULL, RATE},     SHAPE_OPTIONS,
    {"sched", no_argument, NULL, SCHED},         {"redis", required_argument, NULL, REDIS},
    {"json", no_argument, NULL, JSON},           {"levels", no_argument, NULL, LEVELS},
    {"help", no_argument, NULL, OPTION_HELP},    {NULL, 0, NULL, 0},
};

/* An option that is a word by itself, or a text to be read later. */
static bool take_plain(struct plan_options *o, int code)
{
    o->sched |= code == SCHED;
    o->json |= code == JSON;
    o->levels |= code == LEVELS;
    shape_take(&o->shape, code);
    return true;
}

static bool take_option(int code, void *arg)
{
    struct plan_options *o = arg;
    switch (code) {
    case TIMERS:
        return read_timers(o);
    case TICK:
        return read_tick(o);
    case MAX:
        return read_time("--max", &o->max_ns);
    case LIFETIME:
        return read_time("--lifetime", &o->lifetime_ns);
    case RATE:
        return read_rate(o);
    case REDIS:
        return read_redis(o);
    default:
        return take_plain(o, code);
    }
}

/* ---- what goes together ---------------------------------------------------------------------------------- */

static const char *missing(const struct plan_options *o)
{
    if (o->tick_ns == 0)
        return "--tick TIME, such as --tick 1ms";
    if (o->levels)
        return NULL;
    if (o->timers < 1)
        return "--timers N, such as --timers 5e6";
    return o->max_ns == 0 ? "--max TIME, such as --max 7d" : NULL;
}

/* Whether anything but a tick was said. */
static bool asks_more(const struct plan_options *o)
{
    const struct shape_options *s = &o->shape;
    return o->timers > 0 || o->max_ns > 0 || o->lifetime_ns > 0 || o->rate > 0 || o->sched || o->redis ||
           o->json || s->preset != NULL || s->geometry != NULL || s->overflow != NULL;
}

/* A time that must be at least a tick and at most another one. */
static bool between(const char *option, uint64_t ns, uint64_t least, uint64_t most, const char *most_name)
{
    char found[DURATION_SIZE], low[DURATION_SIZE], high[DURATION_SIZE];
    if (ns >= least && ns <= most)
        return true;
    duration_print(ns, found);
    duration_print(least, low);
    duration_print(most, high);
    complain("tickwheel plan: %s: expected a time from %s (--tick) to %s (%s), found %s", option, low, high,
             most_name, found);
    return false;
}

static bool check(const struct plan_options *o)
{
    const char *absent = missing(o);
    if (absent != NULL)
        complain("tickwheel plan: expected %s (try: tickwheel plan --help)", absent);
    else if (o->lifetime_ns > 0 && o->rate > 0)
        complain("tickwheel plan: --lifetime and --rate both say how fast timers come and go: choose one");
    else if (o->levels && asks_more(o))
        complain("tickwheel plan: --levels is of every preset and goes with --tick only");
    else if (o->levels)
        return true;
    else
        return between("--max", o->max_ns, o->tick_ns, UINT64_MAX, "584 years") &&
               (o->lifetime_ns == 0 || between("--lifetime", o->lifetime_ns, o->tick_ns, o->max_ns, "--max"));
    return false;
}

int plan_options_read(struct plan_options *options, int argc, char **argv)
{
    static const struct option_reader READER = {":h", LONG_OPTIONS, take_option, help};
    int status = options_read(&READER, argc, argv, options);
    if (status >= 0)
        return status;
    if (optind == argc)
        return check(options) ? -1 : COMMAND_INPUT;
    complain("tickwheel plan: expected options only, found \"%s\" (try: tickwheel plan --help)", argv[optind]);
    return COMMAND_INPUT;
}
