/* SPDX-License-Identifier: MIT
 *
 * tickwheel trace draw: plays a trace up to a tick, and draws the wheel as it then stands. A level is a row of
 * marks, which begins at the slot that holds the present tick. The scale of the marks is the same in each
 * drawing, so drawings can be compared.
 */
#include "command.h"
#include "figures.h"
#include "player.h"
#include "report.h"
#include "shape.h"

#include <inttypes.h>
#include <stdio.h>

enum { MARKS_MAX = 32 };                 /* of a row, so that it fits into 80 columns */
static const char MARKS[] = ".:-=+*#%@"; /* each is for four times as many timers as the mark before it */

static const char HELP_HEAD[] =
    "usage: tickwheel trace draw TRACE --at TICK [--preset NAME | --geometry LEVELS]\n"
    "                            [--overflow HOW]\n"
    "\n"
    "Replays a trace (plain or zstd; - is standard input) up to a tick, and draws the\n"
    "wheel at that tick: a row for each level, up to the last level with timers. It\n"
    "begins at the slot that holds the present. Example:\n"
    "\n"
    "  tickwheel trace draw data/nginx-wrk.trace.zst --at 1000\n"
    "\n"
    "  --at TICK          the tick: from the first to the last tick of the trace\n";

static const char HELP_TAIL[] = "\n"
                                "Exit status:\n"
                                "  0  the wheel is drawn;\n"
                                "  1  the wheel refused a timer;\n"
                                "  2  the arguments or the trace are not valid.\n";

struct draw_options {
    const char *trace, *at;
    struct shape_options shape;
};

/* ---- drawing -------------------------------------------------------------------------------------------- */

static char mark_of(uint64_t timers)
{
    size_t mark = 0;
    for (; timers >= 4 && MARKS[mark + 1] != '\0'; timers /= 4)
        mark++;
    return timers == 0 ? ' ' : MARKS[mark];
}

/* Draws the slots of a level. A mark stands for the same number of slots, give or take one. */
static void draw_slots(const struct tw_wheel *wheel, uint32_t l, const struct tw_level_info *info)
{
    uint64_t marks = info->slots < MARKS_MAX ? info->slots : MARKS_MAX, slot = 0;
    for (uint64_t mark = 1; mark <= marks; mark++) {
        uint64_t timers = 0;
        for (; slot < mark * info->slots / marks; slot++)
            timers += tw_wheel_slot_count(wheel, l, (uint32_t)((info->current + slot) % info->slots));
        putchar(mark_of(timers));
    }
}

static struct tw_level_info info_of(const struct tw_wheel *wheel, uint32_t l)
{
    struct tw_level_info info;
    tw_wheel_level(wheel, l, &info, sizeof info);
    return info;
}

static void draw_level(const struct tw_wheel *wheel, uint32_t l, double tick_ns)
{
    struct tw_level_info info = info_of(wheel, l);
    printf("%5" PRIu32 " %8s %12s", l, figure_count(info.slots).text, figure_short(info.span).text);
    printf(" %10s %8s |", figure_time(info.span, tick_ns).text, figure_short(info.filed + info.draining).text);
    draw_slots(wheel, l, &info);
    printf("|\n");
    if (info.draining > 0)
        printf("%47s of them are being refiled\n", figure_short(info.draining).text);
}

static void draw_next(struct tw_wheel *wheel)
{
    uint64_t now = tw_wheel_now(wheel), bound = tw_wheel_next_bound(wheel), exact = tw_wheel_next_exact(wheel);
    if (tw_wheel_count(wheel) == 0)
        return;
    printf("Next: tick %s, ", figure_count(bound).text);
    printf("in %s tick%s; ", figure_count(bound - now).text, bound - now == 1 ? "" : "s");
    if (bound == exact)
        printf("timers expire.\n");
    else
        printf("timers are refiled. The first deadline is tick %s.\n", figure_count(exact).text);
}

/* The next event comes last, because the wheel may refile timers to find its exact deadline. */
static void draw_wheel(const struct player *player, const char *shape)
{
    struct tw_wheel *wheel = player->wheel;
    findings_print_trace(player->trace, stdout);
    printf("wheel          %s; tick %s, ", shape, figure_count(tw_wheel_now(wheel)).text);
    printf("%s pending\n\n", figure_count(tw_wheel_count(wheel)).text);
    printf("level    slots ticks a slot       time   timers  slots from the present on\n");
    uint32_t levels = tw_wheel_levels(wheel);
    while (levels > 1 && info_of(wheel, levels - 1).filed + info_of(wheel, levels - 1).draining == 0)
        levels--;
    for (uint32_t l = 0; l < levels; l++)
        draw_level(wheel, l, player->trace->tick_ns);
    printf("\nTimers of a mark, at least: 1 . 4 : 16 - 64 = 256 + 1024 * 4096 # 16384 %% 65536 @\n");
    draw_next(wheel);
}

static int play_and_draw(const struct trace *trace, const struct shape *shape, uint64_t tick)
{
    struct player player;
    int error = player_start(&player, trace, &shape->geometry);
    if (error != 0) {
        complain("no memory for the wheel");
        return COMMAND_WRONG;
    }
    error = player_play_to(&player, tick);
    if (error != 0)
        player_complain(&player, error);
    else
        draw_wheel(&player, shape->name);
    player_stop(&player);
    return error != 0 ? COMMAND_WRONG : COMMAND_GOOD;
}

/* ---- the command ---------------------------------------------------------------------------------------- */

static int parse_tick(const struct trace *trace, const char *text, uint64_t *tick)
{
    if (trace->count == 0) {
        complain("%s: the trace has no operations, so there is nothing to draw", trace->path);
        return COMMAND_INPUT;
    }
    if (number_parse(text, UINT64_MAX, tick) && *tick >= trace->first_tick && *tick <= trace->last_tick)
        return COMMAND_GOOD;
    complain("--at %s: expected a tick of the trace, %" PRIu64 " to %" PRIu64, text, trace->first_tick,
             trace->last_tick);
    return COMMAND_INPUT;
}

static int draw(const struct draw_options *options)
{
    struct shape shape;
    struct trace trace;
    uint64_t tick;
    int status = shape_make(&shape, &options->shape);
    if (status != COMMAND_GOOD)
        return status;
    status = trace_load(&trace, options->trace);
    trace_drop_remarks(&trace);
    if (status == COMMAND_GOOD)
        status = parse_tick(&trace, options->at, &tick);
    if (status == COMMAND_GOOD)
        status = play_and_draw(&trace, &shape, tick);
    trace_free(&trace);
    return status;
}

/* Returns -1 to go on, else an exit status. */
static int read_options(struct draw_options *options, int argc, char **argv)
{
    struct option_table table = {.command = "tickwheel trace draw", .help = {HELP_HEAD, SHAPE_HELP, HELP_TAIL}};
    shape_options_add(&table, &options->shape);
    options_text(&table, "--at", &options->at);
    int status = options_read(&table, argc, argv);
    if (status >= 0)
        return status;
    if (argc - optind == 1 && options->at != NULL) {
        options->trace = argv[optind];
        return -1;
    }
    if (argc - optind != 1)
        complain("tickwheel trace draw: expected one trace, found %d (try: tickwheel trace draw --help)",
                 argc - optind);
    else
        complain("tickwheel trace draw: expected --at TICK (try: tickwheel trace draw --help)");
    return COMMAND_INPUT;
}

int command_trace_draw(int argc, char **argv)
{
    struct draw_options options = {.trace = NULL};
    int status = read_options(&options, argc, argv);
    return status < 0 ? draw(&options) : status;
}
