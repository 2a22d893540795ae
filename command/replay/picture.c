/* SPDX-License-Identifier: MIT
 *
 *      title                                                     .
 *           level 0: the outer ring, a slot for every tick       .   the levels in numbers
 *         /  level 1: each slot is many of the ring outside      .   the colour scale
 *        |   (...)  pending  |                                   .   what the marks mean
 *         \                 /                                    .   how to read it
 *
 * The card brings its own dark ground, so the picture reads the same on white and on black.
 */
#include "picture.h"

#include "canvas.h"
#include "figures.h"

#include <inttypes.h>

enum { TITLE_PART = 60 }; /* characters of a name that the title has room for */

static const char STYLE[] =
    "<style>\n"
    "text{font-family:'DejaVu Sans',Verdana,'Segoe "
    "UI',Helvetica,Arial,sans-serif;font-size:14px;fill:#dbe4ee}\n"
    ".h{font-size:27px;font-weight:bold;fill:#fff}.s{font-size:15px}.d{font-size:13px;fill:#9fb1c4}\n"
    ".r{text-anchor:end}.m{text-anchor:middle}.b{font-weight:bold;fill:#fff}\n"
    ".big{font-size:25px;font-weight:bold;fill:#fff}.p{fill:" TW_INK_NEXT "}\n"
    "path{fill:none}\n"
    "</style>\n";

static void draw_title(const struct tw_canvas *c, const char *shape)
{
    const struct tw_trace *trace = c->trace;
    struct tw_svg_point at = {44, 58};
    const char *colon = trace->source[0] != '\0' ? ": " : "";
    tw_svg_text(c->out, at, "h", "A timing wheel at tick %s", tw_figure_count(c->view->now).text);
    at.y += 29;
    tw_svg_text(c->out, at, "s", "%.*s%s%s", TITLE_PART, trace->name, colon, trace->source);
    at.y += 24;
    tw_svg_text(c->out, at, "d", "%s timer%s pending; wheel: %.*s", tw_figure_count(c->view->pending).text,
                c->view->pending == 1 ? "" : "s", TITLE_PART, shape);
}

static void draw_card(const struct tw_canvas *c)
{
    fprintf(c->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
            "role=\"img\" "
            "data-tick=\"%" PRIu64 "\" data-pending=\"%" PRIu64 "\">\n",
            TW_CANVAS_WIDTH, TW_CANVAS_HEIGHT, TW_CANVAS_WIDTH, TW_CANVAS_HEIGHT, c->view->now,
            c->view->pending);
    fprintf(c->out, "<title>A timing wheel at tick %" PRIu64 "</title>\n", c->view->now);
    fputs(STYLE, c->out);
    fprintf(c->out, "<rect width=\"%d\" height=\"%d\" rx=\"18\" fill=\"" TW_INK_GROUND "\"/>\n",
            TW_CANVAS_WIDTH, TW_CANVAS_HEIGHT);
}

void tw_picture_write(const struct tw_picture *picture, FILE *out)
{
    struct tw_canvas canvas = tw_canvas_make(picture->view, picture->trace, out);
    draw_card(&canvas);
    draw_title(&canvas, picture->shape);
    tw_canvas_draw_rings(&canvas);
    tw_canvas_draw_panel(&canvas);
    fputs("</svg>\n", out);
}
