/* SPDX-License-Identifier: MIT
 *
 * tickwheel trace replay. The whole trace is read into memory first. Then it is played several times:
 *
 * 1. once to count operations, and to check each firing beside the model,
 * 2. several times without hooks, to measure the time.
 *
 * So the measured cost of an operation is the cost of the wheel alone, and results are printed only after all
 * passes.
 */
#include "clock.h"
#include "command.h"
#include "player.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMED_MIN = 3, TIMED_MAX = 15 };
static const double TIMED_ENOUGH = 0.5; /* seconds of timed passes after which no further one is begun */

static const char HELP_HEAD[] = "usage: tickwheel trace replay TRACE [--preset NAME | --geometry LEVELS]\n"
                                "                              [--overflow HOW] [--json]\n"
                                "\n"
                                "Replays a recorded trace of timer operations (plain or zstd; - is standard\n"
                                "input) through the wheel, in virtual time, and checks every firing against a\n"
                                "sorted list of the pending timers. Example:\n"
                                "\n"
                                "  tickwheel trace replay data/nginx-wrk.trace.zst --preset hashed:512\n"
                                "\n";

static const char HELP_TAIL[] =
    "  --json             print one JSON object with the keys operations, adds,\n"
    "                     cancels, moves, fired, early, late, unfired, out_of_order,\n"
    "                     ns_per_op, max_filed_per_tick, pending_peak\n"
    "\n"
    "ns per op            the time of a run without checks, firing and refiling\n"
    "                     included, divided by the number of operations; the median\n"
    "                     of several runs\n"
    "most refiled         (max_filed_per_tick) the largest number of timers that\n"
    "                     the wheel moved between its levels, or filed again after\n"
    "                     they had been pushed back, in one tick\n"
    "out of order         timers fired before another timer that had an earlier\n"
    "                     deadline, or the same deadline and was filed before; a\n"
    "                     timer that was moved after its filing may fire at any\n"
    "                     place among timers of the same deadline\n"
    "\n"
    "Exit status:\n"
    "  0  every timer fired on its tick and in order;\n"
    "  1  a timer did not, or the wheel refused a timer;\n"
    "  2  the arguments or the trace are not valid.\n";

struct replay_options {
    const char *trace;
    struct shape_options shape;
    bool json;
};

/* ---- passes --------------------------------------------------------------------------------------------- */

struct replay {
    struct trace trace;
    struct shape shape;
    struct player player;
    struct model *model;
    struct findings findings;
    uint64_t refiled; /* timers that the wheel refiled up to the last poll */
};

static int no_memory(void)
{
    complain("no memory for the wheel");
    return COMMAND_WRONG;
}

static void note_fired(void *arg, uint32_t id, uint64_t tick)
{
    struct replay *r = arg;
    model_fired(r->model, id, tick);
}

static void note_polled(void *arg, uint64_t tick)
{
    struct replay *r = arg;
    uint64_t refiled = tw_wheel_refiled(r->player.wheel);
    if (refiled - r->refiled > r->findings.most_refiled)
        r->findings.most_refiled = refiled - r->refiled;
    r->refiled = refiled;
    model_settled(r->model, tick);
}

static void note_applied(void *arg, const struct record *record)
{
    struct replay *r = arg;
    uint64_t pending = tw_wheel_count(r->player.wheel);
    if (pending > r->findings.pending_peak)
        r->findings.pending_peak = pending;
    if (record->what != RECORD_CANCEL)
        bins_add(&r->findings.delays, record->deadline > record->tick ? record->deadline - record->tick : 1);
    if (record->what == RECORD_CANCEL)
        model_cancel(r->model, record->id);
    else
        model_file(r->model, record->id, record->tick, record->deadline);
}

/* The first pass. It fails if the wheel refuses a timer, so the later passes need not check for that. */
static int survey(struct replay *r)
{
    const struct observer observer = {note_fired, note_polled, note_applied, r};
    struct player *player = &r->player;
    struct findings *f = &r->findings;
    if ((r->model = model_new(r->trace.ids)) == NULL)
        return no_memory();
    player->observer = &observer;
    int error = player_play(player);
    player->observer = NULL;
    if (error != 0) {
        player_complain(player, error);
        return COMMAND_WRONG;
    }
    f->operations = r->trace.count;
    f->levels = tw_wheel_levels(player->wheel);
    f->adds = player->adds;
    f->moves = player->moves;
    f->cancels = player->cancels;
    f->stale = player->stale;
    f->fired = player->fired;
    f->verdict = model_finish(r->model);
    return COMMAND_GOOD;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int time_passes(struct replay *r)
{
    double pass[TIMED_MAX], all = 0;
    size_t passes = 0;
    while (passes < TIMED_MAX && (passes < TIMED_MIN || all < TIMED_ENOUGH)) {
        if (player_rewind(&r->player, &r->shape.geometry) != 0)
            return no_memory();
        uint64_t start_ns = monotonic_ns();
        player_play(&r->player);
        all += pass[passes++] = (double)(monotonic_ns() - start_ns) * 1e-9;
    }
    qsort(pass, passes, sizeof *pass, compare_doubles);
    if (r->trace.count > 0)
        r->findings.ns_per_op = pass[passes / 2] * 1e9 / (double)r->trace.count;
    return COMMAND_GOOD;
}

/* ---- the command ---------------------------------------------------------------------------------------- */

static int run_passes(struct replay *r)
{
    if (lateness_read(&r->findings.recorded, &r->trace) != 0)
        return no_memory();
    trace_drop_remarks(&r->trace);
    if (player_start(&r->player, &r->trace, &r->shape.geometry) != 0)
        return no_memory();
    int status = survey(r);
    return status == COMMAND_GOOD ? time_passes(r) : status;
}

static int replay(struct replay *r, const struct replay_options *options)
{
    int status = shape_make(&r->shape, &options->shape);
    if (status == COMMAND_GOOD)
        status = trace_load(&r->trace, options->trace);
    if (status != COMMAND_GOOD)
        return status;
    r->findings.trace = &r->trace;
    r->findings.shape = &r->shape;
    status = run_passes(r);
    if (status == COMMAND_GOOD) {
        status = findings_good(&r->findings) ? COMMAND_GOOD : COMMAND_WRONG;
        (options->json ? findings_print_json : findings_print)(&r->findings, stdout);
    }
    player_stop(&r->player);
    model_free(r->model);
    trace_free(&r->trace);
    return status;
}

/* Returns -1 to go on, else an exit status. */
static int read_options(struct replay_options *options, int argc, char **argv)
{
    struct option_table table = {.command = "tickwheel trace replay",
                                 .help = {HELP_HEAD, SHAPE_HELP, HELP_TAIL}};
    shape_options_add(&table, &options->shape);
    options_flag(&table, "--json", &options->json);
    int status = options_read(&table, argc, argv);
    if (status >= 0)
        return status;
    if (argc - optind == 1) {
        options->trace = argv[optind];
        return -1;
    }
    complain("tickwheel trace replay: expected one trace, found %d (try: tickwheel trace replay --help)",
             argc - optind);
    return COMMAND_INPUT;
}

int command_trace_replay(int argc, char **argv)
{
    struct replay_options options = {.trace = NULL};
    int status = read_options(&options, argc, argv);
    if (status >= 0)
        return status;
    struct replay *r = calloc(1, sizeof *r);
    if (r == NULL)
        return no_memory();
    status = replay(r, &options);
    free(r);
    return status;
}
