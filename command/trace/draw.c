/* SPDX-License-Identifier: MIT
 *
 * tickwheel trace draw: plays a trace up to a tick, and draws the wheel as it then stands.
 */
#include "command.h"
#include "output.h"
#include "picture.h"
#include "player.h"
#include "shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char HELP_HEAD[] =
    "usage: tickwheel trace draw TRACE --at TICK -o FILE\n"
    "                            [--preset NAME | --geometry LEVELS] [--overflow HOW]\n"
    "\n"
    "Replays a trace (plain or zstd; - is standard input) up to a tick. Draws the\n"
    "wheel at that tick as an SVG picture. Example:\n"
    "\n"
    "  tickwheel trace draw data/nginx-wrk.trace.zst --at 1000 -o wheel.svg\n"
    "\n"
    "  --at TICK          the tick: from the first to the last tick of the trace\n"
    "  -o, --output FILE  the file to write; - is standard output\n";

static const char HELP_TAIL[] = "\n"
                                "Exit status:\n"
                                "  0  the picture is written;\n"
                                "  1  the wheel refused a timer, or FILE cannot be written;\n"
                                "  2  the arguments or the trace are not valid.\n";

struct draw_options {
    const char *trace, *at, *output;
    struct shape_options shape;
};

/* ---- drawing -------------------------------------------------------------------------------------------- */

static int no_memory(void)
{
    complain("no memory for the picture");
    return COMMAND_WRONG;
}

/* Makes the whole picture in memory first, so that a picture is never written by half. */
static int write_picture(const struct player *player, const struct view *view, const char *shape,
                         const char *path)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);
    if (out == NULL)
        return no_memory();
    picture_write(view, player->trace, shape, out);
    bool good = !ferror(out);
    good = fclose(out) == 0 && good;
    int status = good ? COMMAND_GOOD : no_memory();
    if (good && !output_write(path, (struct tw_bytes){bytes, size}))
        status = COMMAND_WRONG;
    free(bytes);
    return status;
}

static int draw_wheel(const struct player *player, const struct shape *shape, const char *path)
{
    struct view view;
    int error = view_take(&view, player->wheel, shape->geometry.overflow);
    int status = error != 0 ? no_memory() : write_picture(player, &view, shape->name, path);
    view_free(&view);
    return status;
}

static int play_and_draw(const struct trace *trace, const struct shape *shape, uint64_t tick, const char *path)
{
    struct player player;
    if (player_start(&player, trace, &shape->geometry) != 0)
        return no_memory();
    int error = player_play_to(&player, tick);
    int status = COMMAND_WRONG;
    if (error != 0)
        player_complain(&player, error);
    else
        status = draw_wheel(&player, shape, path);
    player_stop(&player);
    return status;
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
    if (status == COMMAND_GOOD)
        status = parse_tick(&trace, options->at, &tick);
    if (status == COMMAND_GOOD)
        status = play_and_draw(&trace, &shape, tick, options->output);
    trace_free(&trace);
    return status;
}

/* Returns -1 to go on, else an exit status. */
static int read_options(struct draw_options *options, int argc, char **argv)
{
    struct option_table table = {
        .command = "tickwheel trace draw", .help = {HELP_HEAD, SHAPE_HELP, HELP_TAIL}, .letter = 'o'};
    shape_options_add(&table, &options->shape);
    options_text(&table, "--at", &options->at);
    options_text(&table, "--output", &options->output);
    int status = options_read(&table, argc, argv);
    if (status >= 0)
        return status;
    if (argc - optind == 1 && options->at != NULL && options->output != NULL) {
        options->trace = argv[optind];
        return -1;
    }
    if (argc - optind != 1)
        complain("tickwheel trace draw: expected one trace, found %d (try: tickwheel trace draw --help)",
                 argc - optind);
    else
        complain("tickwheel trace draw: expected %s (try: tickwheel trace draw --help)",
                 options->at == NULL ? "--at TICK" : "-o FILE");
    return COMMAND_INPUT;
}

int command_trace_draw(int argc, char **argv)
{
    struct draw_options options = {.trace = NULL};
    int status = read_options(&options, argc, argv);
    return status < 0 ? draw(&options) : status;
}
