/* SPDX-License-Identifier: MIT
 *
 *      title                                                     .
 *           level 0: the outer ring, a slot for every tick       .   the levels in numbers
 *         /  level 1: each slot is many of the ring outside      .   the colour scale
 *        |   (...)  pending  |                                   .   the meaning of the marks
 *         \                 /                                    .   how to read the picture
 *
 * The card has a dark background of its own, so the picture looks the same on a white and on a black page.
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
    ".big{font-size:25px;font-weight:bold;fill:#fff}.p{fill:" INK_NEXT "}\n"
    "path{fill:none}\n"
    "</style>\n";

static void draw_title(const struct canvas *c, const char *shape)
{
    const struct trace *trace = c->trace;
    struct svg_point at = {44, 58};
    const char *colon = trace->source[0] != '\0' ? ": " : "";
    svg_text(c->out, at, "h", "A timing wheel at tick %s", figure_count(c->view->now).text);
    at.y += 29;
    svg_text(c->out, at, "s", "%.*s%s%s", TITLE_PART, trace->name, colon, trace->source);
    at.y += 24;
    svg_text(c->out, at, "d", "%s timer%s pending; wheel: %.*s", figure_count(c->view->pending).text,
             c->view->pending == 1 ? "" : "s", TITLE_PART, shape);
}

static void draw_card(const struct canvas *c)
{
    fprintf(c->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
            "role=\"img\" "
            "data-tick=\"%" PRIu64 "\" data-pending=\"%" PRIu64 "\">\n",
            CANVAS_WIDTH, CANVAS_HEIGHT, CANVAS_WIDTH, CANVAS_HEIGHT, c->view->now, c->view->pending);
    fprintf(c->out, "<title>A timing wheel at tick %" PRIu64 "</title>\n", c->view->now);
    fputs(STYLE, c->out);
    fprintf(c->out, "<rect width=\"%d\" height=\"%d\" rx=\"18\" fill=\"" INK_GROUND "\"/>\n", CANVAS_WIDTH,
            CANVAS_HEIGHT);
}

void picture_write(const struct picture *picture, FILE *out)
{
    struct canvas canvas = canvas_make(picture->view, picture->trace, out);
    draw_card(&canvas);
    draw_title(&canvas, picture->shape);
    canvas_draw_rings(&canvas);
    canvas_draw_panel(&canvas);
    fputs("</svg>\n", out);
}
