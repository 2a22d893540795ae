/* SPDX-License-Identifier: MIT
 *
 * The panel beside the rings: a table of the levels, the colour scale, the meaning of the marks, and how to
 * read the picture.
 */
#include "canvas.h"

#include "figures.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { ROW = 25 };

/* ---- the panel ------------------------------------------------------------------------------------------ */

/* Columns of the table, by their right edges. */
enum {
    SLOTS_AT = CANVAS_PANEL + 104,
    SPAN_AT = CANVAS_PANEL + 214,
    TIME_AT = CANVAS_PANEL + 304,
    TIMERS_AT = CANVAS_PANEL_END
};

static void put(const struct canvas *c, double x, double y, const char *class, const char *text)
{
    struct svg_point at = {x, y};
    svg_text(c->out, at, class, "%s", text);
}

static void rule(const struct canvas *c, double y)
{
    fprintf(c->out, "<path stroke=\"" INK_RULE "\" d=\"M%d %gH%d\"/>\n", CANVAS_PANEL, y, CANVAS_PANEL_END);
}

static void draw_row(const struct canvas *c, uint32_t l, double y)
{
    const struct tw_level_info *info = &c->view->ring[l].info;
    struct svg_point at = {CANVAS_PANEL, y};
    svg_text(c->out, at, "b", "%" PRIu32, l);
    put(c, SLOTS_AT, y, "r", figure_count(info->slots).text);
    put(c, SPAN_AT, y, "r", figure_short(info->span).text);
    put(c, TIME_AT, y, "r", figure_time(info->span, c->trace->tick_ns).text);
    put(c, TIMERS_AT, y, "b r", figure_count(info->filed + info->draining).text);
}

/* One line for the levels without a ring. Most of them have none because they are empty. */
static double draw_rest(const struct canvas *c, double y)
{
    const struct view *view = c->view;
    const struct svg_point at = {CANVAS_PANEL, y};
    uint64_t timers = 0;
    if (view->levels == c->rings)
        return y;
    for (uint32_t l = c->rings; l < view->levels; l++)
        timers += view->ring[l].info.filed + view->ring[l].info.draining;
    if (view->levels == c->rings + 1)
        svg_text(c->out, at, "d", "level %" PRIu32 ": %s", c->rings, timers == 0 ? "empty" : "not drawn");
    else
        svg_text(c->out, at, "d", "levels %" PRIu32 " to %" PRIu32 ": %s", c->rings, view->levels - 1,
                 timers == 0 ? "empty" : "not drawn");
    if (timers > 0)
        put(c, TIMERS_AT, y, "b r", figure_count(timers).text);
    return y + ROW;
}

/* One row for each level that is drawn, then one line for the levels above. */
static double draw_table(const struct canvas *c, double y)
{
    put(c, CANVAS_PANEL, y, "d", "level");
    put(c, SLOTS_AT, y, "d r", "slots");
    put(c, SPAN_AT, y, "d r", "ticks a slot");
    put(c, TIME_AT, y, "d r", c->trace->tick_ns > 0 ? "time a slot" : "");
    put(c, TIMERS_AT, y, "d r", "timers");
    rule(c, y + 9);
    y += ROW + 4;
    for (uint32_t l = 0; l < c->rings; l++, y += ROW)
        draw_row(c, l, y);
    return draw_rest(c, y);
}

/* ---- the colour scale ----------------------------------------------------------------------------------- */

static double on_scale(const struct canvas *c, uint64_t count)
{
    return CANVAS_PANEL + canvas_scale(c->view, count) * (CANVAS_PANEL_END - CANVAS_PANEL);
}

static void draw_number(const struct canvas *c, uint64_t count, double y, const char *class)
{
    double x = on_scale(c, count);
    fprintf(c->out, "<path stroke=\"#9fb1c4\" d=\"M%g %gv5\"/>\n", svg_round(x), y);
    put(c, x, y + 19, class, figure_short(count).text);
}

/* Numbers on the scale between its ends, if there is room: powers of ten on a logarithmic scale, the middle
 * on a linear scale. */
static void draw_numbers(const struct canvas *c, double y)
{
    uint64_t most = c->view->most, middle = (most + 1) / 2;
    if (most > 1)
        draw_number(c, 1, y, "d");
    draw_number(c, most, y, "d r");
    if (!c->view->skewed && most > 4)
        draw_number(c, middle, y, "d m");
    for (uint64_t ten = 10; c->view->skewed && ten < most / 2; ten *= 10)
        if (on_scale(c, ten) > CANVAS_PANEL + 40 && on_scale(c, ten) < CANVAS_PANEL_END - 90)
            draw_number(c, ten, y, "d m");
}

static double draw_scale(const struct canvas *c, double y)
{
    const double width = (double)(CANVAS_PANEL_END - CANVAS_PANEL) / CANVAS_SHADES;
    if (c->view->most == 0)
        return y;
    put(c, CANVAS_PANEL, y, "d", c->view->skewed ? "timers in a slot (logarithmic)" : "timers in a slot");
    y += 11;
    for (int i = 0; i < CANVAS_SHADES; i++)
        fprintf(c->out, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"14\" fill=\"%s\"/>\n",
                svg_round(CANVAS_PANEL + i * width), y, svg_round(width + 0.3),
                canvas_colour(c->view->most > 1 ? i : CANVAS_SHADES - 1).text);
    draw_numbers(c, y + 14);
    return y + 14 + ROW + 22;
}

/* ---- the marks, explained ------------------------------------------------------------------------------- */

enum { SIGN = 34 }; /* room for the mark before its words */

static double explain(const struct canvas *c, double y, const char *words, const char *more)
{
    put(c, CANVAS_PANEL + SIGN, y, "", words);
    if (more[0] == '\0')
        return y + ROW + 3;
    put(c, CANVAS_PANEL + SIGN, y + 18, "d", more);
    return y + 18 + ROW + 3;
}

static void sign(const struct canvas *c, double y, const char *colour, double width)
{
    fprintf(c->out, "<path stroke=\"%s\" stroke-width=\"%g\" d=\"M%d %gh22\"/>\n", colour, width, CANVAS_PANEL,
            y - 5);
}

static double explain_next(const struct canvas *c, double y)
{
    const struct view *view = c->view;
    char words[120], more[120];
    if (view->pending == 0)
        return explain(c, y, "no next event: no timer is pending", "");
    fprintf(c->out, "<circle cx=\"%d\" cy=\"%g\" r=\"4\" fill=\"" INK_NEXT "\"/>\n", CANVAS_PANEL + 11, y - 5);
    snprintf(words, sizeof words, "next: tick %s, %s", figure_count(view->bound).text,
             view->bound == view->exact ? "a timer fires" : "timers are refiled");
    snprintf(more, sizeof more, "in %s tick%s%s%s", figure_count(view->bound - view->now).text,
             view->bound - view->now == 1 ? "" : "s", c->trace->tick_ns > 0 ? ", " : "",
             figure_time(view->bound - view->now, c->trace->tick_ns).text);
    if (view->bound != view->exact)
        snprintf(more + strlen(more), sizeof more - strlen(more), "; first deadline: tick %s",
                 figure_count(view->exact).text);
    return explain(c, y, words, more);
}

static double explain_refiled(const struct canvas *c, double y)
{
    char words[120];
    for (uint32_t l = 0; l < c->rings; l++) {
        const struct view_ring *ring = &c->view->ring[l];
        if (ring->info.draining == 0)
            continue;
        fprintf(c->out, "<circle cx=\"%d\" cy=\"%g\" r=\"4\" fill=\"" INK_REFILED "\"/>\n", CANVAS_PANEL + 11,
                y - 5);
        snprintf(words, sizeof words, "being refiled: %s timers left in slot %" PRIu32 " of level %" PRIu32,
                 figure_count(ring->info.draining).text, ring->refiled, l);
        y = explain(c, y, words, "a few in each tick, before the ring outside needs them");
    }
    return y;
}

static double explain_window(const struct canvas *c, double y)
{
    const struct view *view = c->view;
    const char *later = "a timer due later is filed one ring further in";
    if (!view->ring[0].bounded)
        return y;
    if (view->levels == 1)
        later = view->overflow == TW_OVERFLOW_REJECT ? "a timer due later is refused"
                                                     : "a timer due later stays for several turns";
    sign(c, y, INK_WINDOW, 2);
    return explain(c, y, "the window: the ticks that a ring holds", later);
}

static double draw_key(const struct canvas *c, double y)
{
    char words[120];
    sign(c, y, INK_HAND, 2.4);
    snprintf(words, sizeof words, "now: tick %s", figure_count(c->view->now).text);
    y = explain(c, y, words, "the hand of each ring; ticks behind it are over");
    y = explain_next(c, y);
    y = explain_window(c, y);
    if (c->rings > 1) {
        sign(c, y, INK_COVERED, 14);
        y = explain(c, y, "lookahead: handed on to the ring outside", "its window already holds these slots");
    }
    return explain_refiled(c, y);
}

static void draw_note(const struct canvas *c, double y)
{
    uint32_t step = 1;
    for (uint32_t l = 0; l < c->rings; l++)
        if (canvas_slots_per_mark(&c->view->ring[l].info) > step)
            step = canvas_slots_per_mark(&c->view->ring[l].info);
    put(c, CANVAS_PANEL, y, "d", "Slot 0 is at the top and time runs clockwise. The outer");
    put(c, CANVAS_PANEL, y + 18, "d",
        c->view->levels > 1 ? "ring has a slot for every tick; on an inner ring a timer"
                            : "ring has a slot for every tick.");
    put(c, CANVAS_PANEL, y + 36, "d",
        c->view->levels > 1 ? "waits until its time comes near, and then moves outwards." : "");
    struct svg_point at = {CANVAS_PANEL, y + (c->view->levels > 1 ? 54 : 36)};
    if (step > 1)
        svg_text(c->out, at, "d", "A mark is up to %" PRIu32 " slots; the fullest gives the colour.", step);
}

void canvas_draw_panel(const struct canvas *c)
{
    double y = draw_table(c, 150);
    y = draw_scale(c, y + 18);
    y = draw_key(c, y + 10);
    draw_note(c, fmax(y + 6, CANVAS_HEIGHT - 106));
}
