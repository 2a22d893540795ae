/* SPDX-License-Identifier: MIT
 *
 * The options of `tickwheel plan`.
 */
#include "plan_types.h"
#include "task_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char HELP_HEAD[] =
    "usage: tickwheel plan --timers N --tick TIME --max TIME [OPTIONS]\n"
    "       tickwheel plan --levels --tick TIME\n"
    "\n"
    "Finds the wheel for a number of pending timers. Prints its levels, its memory,\n"
    "how many timers are due and refiled on a tick, on average and at worst, and a\n"
    "comparison of the presets. Example, 5 million sessions of up to a week:\n"
    "\n"
    "  tickwheel plan --timers 5e6 --tick 1ms --max 7d\n"
    "\n"
    "Times are written 1ms, 0.5s, 7d or 1h30m, with the units ns us ms s m h d.\n"
    "Numbers are written 5000000, 5e6 or 5M, with the suffixes k, M and G.\n"
    "\n"
    "  --timers N         timers that are pending at a time, 1 to 1e12\n"
    "  --tick TIME        the length of a tick, 1ns to 1d\n"
    "  --max TIME         the longest delay, --tick to 213503d (584 years)\n"
    "  --lifetime TIME    how long a timer is pending on average, --tick to --max\n"
    "                     (default: --max)\n"
    "  --rate N           instead of --lifetime: timers added a second, where a move\n"
    "                     to a later time counts as one more timer\n";

static const char HELP_TAIL[] =
    "  --sched            also print the memory of tasks of the scheduler\n"
    "  --redis BYTES      also print the memory of tasks of the Redis module, with\n"
    "                     payloads of BYTES bytes, 0 to 1e9\n"
    "  --json             print the plan as one line of JSON\n"
    "  --levels           print only the levels of each preset, as Markdown:\n"
    "                     granularity, range and memory\n"
    "\n"
    "The plan assumes that deadlines are independent of each other, and no denser\n"
    "far away than near. Then no tick refiles more timers than the worst tick in the\n"
    "plan, except once in 1e12 slots. One line of the plan tells the work if all\n"
    "deadlines lie on one tick.\n"
    "\n"
    "Exit status:\n"
    "  0  the plan is printed;\n"
    "  1  the wheel that the options name would refuse the longest delay;\n"
    "  2  the arguments are not valid.\n";

static const double timers_max = 1e12, payload_max = 1e9;
static const uint64_t day_ns = UINT64_C(86400000000000);

/* The factor of a suffix; 0 if the suffix is unknown. */
static double scale_of(const char *suffix)
{
    static const struct {
        const char *suffix;
        double scale;
    } KNOWN[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}};
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
        if (strcmp(suffix, KNOWN[i].suffix) == 0)
            return KNOWN[i].scale;
    return 0;
}

/* Reads a whole text as a number that is not negative, as people write it: 5000000, 5e6, 5M, 1.5k. Returns
 * false if the text is anything else. The characters are checked first, because strtod() also accepts
 * hexadecimal digits, "inf" and blanks. */
static bool parse_quantity(const char *text, double *number)
{
    char *end;
    if (text[strspn(text, "0123456789.eE+-kMG")] != '\0' || strspn(text, "0123456789.") == 0)
        return false;
    double value = strtod(text, &end);
    double scale = scale_of(end);
    *number = value * scale;
    return end != text && scale > 0 && isfinite(*number);
}

static bool take_timers(const struct option_row *row)
{
    double *n = row->to;
    return (parse_quantity(optarg, n) && *n >= 1 && *n <= timers_max && *n == floor(*n)) ||
           option_refuse(row, "a whole number of timers, 1 to 1e12 (such as 5e6 or 5M)");
}

static bool take_tick(const struct option_row *row)
{
    uint64_t *ns = row->to;
    return (duration_parse(optarg, ns) && *ns >= 1 && *ns <= day_ns) ||
           option_refuse(row, "the length of a tick, 1ns to 1d (such as 1ms)");
}

/* Takes --max or --lifetime. The bounds given by --tick and --max are checked after all options have been
 * read. */
static bool take_time(const struct option_row *row)
{
    uint64_t *ns = row->to;
    return (duration_parse(optarg, ns) && *ns > 0) ||
           option_refuse(row, "a time, --tick to 213503d (such as 30s or 7d)");
}

static bool take_rate(const struct option_row *row)
{
    double *rate = row->to;
    return (parse_quantity(optarg, rate) && *rate > 0) ||
           option_refuse(row, "timers a second, more than 0 (such as 5000 or 5k)");
}

static bool take_redis(const struct option_row *row)
{
    double *bytes = row->to;
    return (parse_quantity(optarg, bytes) && *bytes <= payload_max && *bytes == floor(*bytes)) ||
           option_refuse(row, "the bytes of a payload, 0 to 1e9 (such as 100)");
}

/* ---- combinations of options ----------------------------------------------------------------------------- */

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

/* True if any option besides --tick and --levels was given. */
static bool asks_more(const struct option_table *table)
{
    size_t given = 0;
    for (size_t i = 0; i < table->count; i++)
        given += table->row[i].given;
    return given > (size_t)options_given(table, "--tick") + options_given(table, "--levels");
}

/* Checks that a time is from `least` (--tick) to `most` (which `most_name` names). Prints an error if not. */
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

static bool check(const struct plan_options *o, const struct option_table *table)
{
    const char *absent = missing(o);
    if (absent != NULL)
        complain("tickwheel plan: expected %s (try: tickwheel plan --help)", absent);
    else if (o->lifetime_ns > 0 && o->rate > 0)
        complain("tickwheel plan: --lifetime and --rate both tell how fast timers come and go: choose one");
    else if (o->levels && asks_more(table))
        complain("tickwheel plan: --levels prints every preset and goes with --tick only");
    else if (o->levels)
        return true;
    else
        return between("--max", o->max_ns, o->tick_ns, UINT64_MAX, "584 years") &&
               (o->lifetime_ns == 0 || between("--lifetime", o->lifetime_ns, o->tick_ns, o->max_ns, "--max"));
    return false;
}

int plan_options_read(struct plan_options *options, int argc, char **argv)
{
    struct option_table table = {.command = "tickwheel plan", .help = {HELP_HEAD, SHAPE_HELP, HELP_TAIL}};
    options_other(&table, "--timers", take_timers, &options->timers);
    options_other(&table, "--tick", take_tick, &options->tick_ns);
    options_other(&table, "--max", take_time, &options->max_ns);
    options_other(&table, "--lifetime", take_time, &options->lifetime_ns);
    options_other(&table, "--rate", take_rate, &options->rate);
    shape_options_add(&table, &options->shape);
    options_flag(&table, "--sched", &options->sched);
    options_other(&table, "--redis", take_redis, &options->redis_payload);
    options_flag(&table, "--json", &options->json);
    options_flag(&table, "--levels", &options->levels);
    int status = options_read(&table, argc, argv);
    if (status >= 0)
        return status;
    options->redis = options_given(&table, "--redis");
    if (optind == argc)
        return check(options, &table) ? -1 : COMMAND_INPUT;
    complain("tickwheel plan: expected options only, found \"%s\" (try: tickwheel plan --help)", argv[optind]);
    return COMMAND_INPUT;
}
