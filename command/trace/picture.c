/* SPDX-License-Identifier: MIT
 *
 *      title                                                     .
 *           level 0: the outer ring, a slot for every tick       .   the levels in numbers
 *         /  level 1: each slot is many of the ring outside      .   the colour scale
 *        |   (...)  pending  |                                   .   the meaning of the marks
 *         \                 /                                    .   how to read the picture
 *
 * Slot 0 of each ring is at the top, and time runs clockwise. A hand stands at the end of tick `now`; the
 * slots behind it are over. Two spans begin at the hand:
 *
 * - the ring's own window, drawn as a line along its rim,
 * - on the track of an inner ring, the slots that lie in the window of the next ring outside.
 *
 * A ring with very many slots is drawn in marks of several slots each. A mark has the colour of its fullest
 * slot. All rings share one logarithmic colour scale, because a few slots often hold far more timers than the
 * others. The card has a dark background of its own, so it looks the same on a white and on a black page.
 */
#include "picture.h"

#include "figures.h"

#include <base/utf8.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { WIDTH = 1340, HEIGHT = 940, CENTRE_X = 444, CENTRE_Y = 515 };
enum { PANEL = 892, PANEL_END = 1298 }; /* the panel's left and right edge */
enum { RIM = 355, HUB = 78 };           /* radius of the rings, outside and inside */
enum { RINGS_MAX = 10, MARKS_MAX = 1536, GAP_MAX = 28, NAME_GAP = 13, NAME_MAX = 13 };
enum { SHADES = 7, TITLE_PART = 60, TEXT_SIZE = 320, ROW = 25 };
static const double TURN = 6.283185307179586;

/* Shades s0 to s6 are from viridis (Smith and van der Walt, public domain) without its darkest quarter. */
static const char STYLE[] =
    "<style>\n"
    "text{font:14px 'DejaVu Sans',Verdana,'Segoe UI',Helvetica,Arial,sans-serif;fill:#dbe4ee}\n"
    ".h{font-size:27px;font-weight:bold;fill:#fff}.d{font-size:13px;fill:#9fb1c4}\n"
    ".r{text-anchor:end}.m{text-anchor:middle}.b{font-weight:bold;fill:#fff}\n"
    ".big{font-size:25px;font-weight:bold;fill:#fff}text.next{fill:#ff8fd8}\n"
    ".name{paint-order:stroke;stroke:#10161e;stroke-width:4px}\n"
    "path{fill:none}.rule{stroke:#33424f}.track{stroke:#1d2733}.ahead{stroke:#31445a}\n"
    ".window{stroke:#7fa3c7}.now{stroke:#ff5f56}.refiled{stroke:#ffa657}path.next{stroke:#ff8fd8}\n"
    ".s0{stroke:#3b528b}.s1{stroke:#2c718e}.s2{stroke:#21918c}.s3{stroke:#27ad81}\n"
    ".s4{stroke:#5cc863}.s5{stroke:#aadc32}.s6{stroke:#fde725}\n"
    "</style>\n";

struct canvas {
    const struct view *view;
    const struct trace *trace;
    FILE *out;
    uint32_t rings;         /* number of rings to draw: the lowest levels, from the rim inwards */
    double thick, gap;      /* thickness of a ring, and distance between two rings */
    uint64_t least[SHADES]; /* the smallest count of each shade */
};

/* ---- elements ------------------------------------------------------------------------------------------- */

/* Writes text between tags. A byte that is not UTF-8, and a character that XML does not allow, becomes "?". */
static void escape(FILE *out, const char *text)
{
    uint32_t point;
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        length = tw__utf8_decode(text, left, &point);
        bool allowed = length > 0 && !tw__utf8_is_control(point) && (point & 0xfffe) != 0xfffe;
        if (strchr("&<>", *text) != NULL)
            fputs(*text == '&' ? "&amp;" : *text == '<' ? "&lt;" : "&gt;", out);
        else
            fprintf(out, "%.*s", allowed ? (int)length : 1, allowed ? text : "?");
        length = length > 0 ? length : 1;
    }
}

__attribute__((format(printf, 5, 6))) static void put(const struct canvas *c, double x, double y,
                                                      const char *class, const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(c->out, "<text x=\"%.2f\" y=\"%.2f\" class=\"%s\">", x, y, class);
    escape(c->out, text);
    fputs("</text>\n", c->out);
}

/* A line to the right, as a rule, a sample of a mark, or a field of a colour. */
static void bar(const struct canvas *c, const char *class, double x, double y, double length, double width)
{
    fprintf(c->out, "<path class=\"%s\" stroke-width=\"%.2f\" d=\"M%.2f %.2fh%.2f\"/>\n", class, width, x, y,
            length);
}

/* Angles are in turns, clockwise from the top. */
static double across(double radius, double turn)
{
    return CENTRE_X + radius * sin(turn * TURN);
}

static double down(double radius, double turn)
{
    return CENTRE_Y - radius * cos(turn * TURN);
}

/* Writes an arc as part of a path's data. A whole turn ends a little early; else it would not be drawn. */
static void arc(FILE *out, double radius, double from, double to)
{
    double end = fmin(to, from + 0.99997);
    fprintf(out, "M%.2f %.2fA%.2f %.2f 0 %d 1 %.2f %.2f", across(radius, from), down(radius, from), radius,
            radius, end - from > 0.5, across(radius, end), down(radius, end));
}

static void span(const struct canvas *c, const char *class, double width, double radius, double from, double to)
{
    fprintf(c->out, "<path class=\"%s\" stroke-width=\"%.2f\" d=\"", class, width);
    arc(c->out, radius, from, to);
    fputs("\"/>\n", c->out);
}

static void spoke(const struct canvas *c, const char *class, double turn, double inner, double outer)
{
    fprintf(c->out, "<path class=\"%s\" stroke-width=\"2.4\" d=\"M%.2f %.2fL%.2f %.2f\"/>\n", class,
            across(inner, turn), down(inner, turn), across(outer, turn), down(outer, turn));
}

/* ---- the rings ------------------------------------------------------------------------------------------ */

/* The number of slots that share one mark, chosen so that no ring has more marks than a screen can show. */
static uint32_t slots_per_mark(const struct view_ring *ring)
{
    return (ring->info.slots + MARKS_MAX - 1) / MARKS_MAX;
}

static int shade_of(const struct canvas *c, uint64_t count)
{
    int shade = SHADES - 1;
    while (shade > 0 && c->least[shade] > count)
        shade--;
    return shade;
}

static double ring_outer(const struct canvas *c, uint32_t l)
{
    return RIM - l * (c->thick + c->gap);
}

static double ring_middle(const struct canvas *c, uint32_t l)
{
    return ring_outer(c, l) - c->thick / 2;
}

/* The angle of the start of a tick on a ring, in turns from 0 to 1. */
static double turn_of(const struct tw_level_info *info, uint64_t tick)
{
    double slot = (double)(tick / info->span % info->slots);
    return (slot + (double)(tick % info->span) / (double)info->span) / info->slots;
}

/* The angle of the hand, which is the end of the present tick. */
static double hand_turn(const struct canvas *c, uint32_t l)
{
    return turn_of(&c->view->ring[l].info, c->view->now + 1);
}

/* Draws the part of a ring from the hand to the end of tick `last`; at most a whole turn. */
static void draw_window(const struct canvas *c, uint32_t l, const char *class, double width, double radius,
                        uint64_t last)
{
    const struct tw_level_info *info = &c->view->ring[l].info;
    double hand = hand_turn(c, l);
    span(c, class, width, radius, hand,
         hand + fmin(1, (double)(last - c->view->now) / (double)info->span / info->slots));
}

static uint64_t fullest(const struct view_ring *ring, uint32_t from, uint32_t to)
{
    uint64_t most = 0;
    for (uint32_t i = from; i < to; i++)
        if (ring->counts[i] > most)
            most = ring->counts[i];
    return most;
}

/* Draws the marks of one colour on one ring, as one path. */
static void draw_shade(const struct canvas *c, uint32_t l, int wanted)
{
    const struct view_ring *ring = &c->view->ring[l];
    uint32_t slots = ring->info.slots, step = slots_per_mark(ring);
    double air = fmin(0.06 * step / slots, 0.0002);
    fprintf(c->out, "<path class=\"s%d\" d=\"", wanted);
    for (uint32_t i = 0; i < slots; i += step) {
        uint32_t end = slots - i < step ? slots : i + step;
        uint64_t count = fullest(ring, i, end);
        if (count > 0 && shade_of(c, count) == wanted)
            arc(c->out, ring_middle(c, l), (double)i / slots + air, (double)end / slots - air);
    }
    fputs("\"/>\n", c->out);
}

static void draw_slots(const struct canvas *c, uint32_t l)
{
    fprintf(c->out, "<g class=\"slots\" stroke-width=\"%.2f\">\n", c->thick);
    for (int i = 0; c->view->ring[l].info.filed > 0 && i < SHADES; i++)
        draw_shade(c, l, i);
    fputs("</g>\n", c->out);
}

/* Draws the slot that is being refiled: in the colour of the timers left in it, with an outline. */
static void draw_refiled(const struct canvas *c, uint32_t l)
{
    const struct view_ring *ring = &c->view->ring[l];
    double radius = ring_middle(c, l), edge = 2.0 / (TURN * radius);
    double from = (double)ring->refiled / ring->info.slots, to = from + 1.0 / ring->info.slots;
    char shade[] = "s0";
    if (ring->info.draining == 0)
        return;
    shade[1] = (char)('0' + shade_of(c, ring->info.draining));
    span(c, "refiled", c->thick + 7, radius, from - edge, to + edge);
    span(c, shade, c->thick, radius, from, to);
}

static void draw_ring(const struct canvas *c, uint32_t l)
{
    const struct view_ring *ring = &c->view->ring[l];
    double outer = ring_outer(c, l);
    fprintf(c->out,
            "<g class=\"ring\" data-level=\"%" PRIu32 "\" data-slots=\"%" PRIu32 "\" data-span=\"%" PRIu64
            "\" data-occupied=\"%" PRIu32 "\" data-filed=\"%" PRIu64 "\" data-refiling=\"%" PRIu64
            "\" data-slots-per-mark=\"%" PRIu32 "\">\n",
            l, ring->info.slots, ring->info.span, ring->info.occupied, ring->info.filed, ring->info.draining,
            slots_per_mark(ring));
    span(c, "track", c->thick, ring_middle(c, l), 0, 1);
    if (l > 0)
        draw_window(c, l, "ahead", c->thick, ring_middle(c, l), ring->covered);
    if (ring->bounded)
        draw_window(c, l, "window", 2, outer + 2.5, ring->last);
    draw_slots(c, l);
    draw_refiled(c, l);
    spoke(c, "now", hand_turn(c, l), outer - c->thick - fmin(9, c->gap / 2), outer + 3);
    fputs("</g>\n", c->out);
}

/* Draws a line from the place of the next tick, across the rings outside it, to the word "next" beyond the
 * rim. */
static void draw_next(const struct canvas *c)
{
    if (c->view->pending == 0)
        return;
    uint32_t l = view_ring_of(c->view, c->view->bound);
    const struct tw_level_info *info = &c->view->ring[l].info;
    double turn = turn_of(info, c->view->bound) + (l == 0 ? 0.5 / info->slots : 0), x = sin(turn * TURN);
    spoke(c, "next", turn, ring_outer(c, l) - c->thick, RIM + 26);
    put(c, across(RIM + 34, turn), down(RIM + 34, turn) + 5,
        x > 0.25    ? "next"
        : x < -0.25 ? "next r"
                    : "next m",
        "next");
}

static void draw_rings(const struct canvas *c)
{
    for (uint32_t l = 0; l < c->rings; l++)
        draw_ring(c, l);
    draw_next(c);
    for (uint32_t l = 0; l < c->rings && c->gap >= NAME_GAP; l++)
        put(c, CENTRE_X, CENTRE_Y - ring_outer(c, l) - c->gap / 3, "d m name", "level %" PRIu32, l);
    put(c, CENTRE_X, CENTRE_Y + 4, "big m", "%s", figure_short(c->view->pending).text);
    put(c, CENTRE_X, CENTRE_Y + 25, "d m", "pending");
}

/* ---- the panel ------------------------------------------------------------------------------------------ */

/* Columns of the table, by their right edges. */
enum { SLOTS_AT = PANEL + 104, SPAN_AT = PANEL + 214, TIME_AT = PANEL + 304 };

/* One line for the levels without a ring. Most of them have none because they are empty. */
static double draw_rest(const struct canvas *c, double y)
{
    uint64_t timers = 0;
    for (uint32_t l = c->rings; l < c->view->levels; l++)
        timers += c->view->ring[l].info.filed + c->view->ring[l].info.draining;
    if (c->view->levels == c->rings)
        return y;
    const char *state = timers == 0 ? "empty" : "not drawn";
    if (c->view->levels == c->rings + 1)
        put(c, PANEL, y, "d", "level %" PRIu32 ": %s", c->rings, state);
    else
        put(c, PANEL, y, "d", "levels %" PRIu32 " to %" PRIu32 ": %s", c->rings, c->view->levels - 1, state);
    if (timers > 0)
        put(c, PANEL_END, y, "b r", "%s", figure_count(timers).text);
    return y + ROW;
}

/* One row for each level that is drawn, then one line for the levels above. */
static double draw_table(const struct canvas *c, double y)
{
    double tick_ns = c->trace->tick_ns;
    put(c, PANEL, y, "d", "level");
    put(c, SLOTS_AT, y, "d r", "slots");
    put(c, SPAN_AT, y, "d r", "ticks a slot");
    put(c, TIME_AT, y, "d r", "%s", tick_ns > 0 ? "time a slot" : "");
    put(c, PANEL_END, y, "d r", "timers");
    bar(c, "rule", PANEL, y + 9, PANEL_END - PANEL, 1);
    y += ROW + 4;
    for (uint32_t l = 0; l < c->rings; l++, y += ROW) {
        const struct tw_level_info *info = &c->view->ring[l].info;
        put(c, PANEL, y, "b", "%" PRIu32, l);
        put(c, SLOTS_AT, y, "r", "%s", figure_count(info->slots).text);
        put(c, SPAN_AT, y, "r", "%s", figure_short(info->span).text);
        put(c, TIME_AT, y, "r", "%s", figure_time(info->span, tick_ns).text);
        put(c, PANEL_END, y, "b r", "%s", figure_count(info->filed + info->draining).text);
    }
    return draw_rest(c, y);
}

/* A field for each shade, above the smallest count that has it. A shade that no count has is left out. */
static double draw_scale(const struct canvas *c, double y)
{
    const double width = (double)(PANEL_END - PANEL) / SHADES;
    double x = PANEL;
    if (c->view->most == 0)
        return y;
    put(c, PANEL, y, "d", "timers in a slot: at least");
    for (int i = 0; i < SHADES; i++) {
        char shade[] = {'s', (char)('0' + i), '\0'};
        if (i < SHADES - 1 && c->least[i] == c->least[i + 1])
            continue;
        bar(c, shade, x, y + 18, width, 14);
        put(c, x, y + 41, "d", "%s", figure_short(c->least[i]).text);
        x += width;
    }
    return y + 83;
}

/* Explains a mark: a sample of it, and two lines of text. */
static double explain(const struct canvas *c, double y, const char *class, double width, const char *words,
                      const char *more)
{
    bar(c, class, PANEL, y - 5, 22, width);
    put(c, PANEL + 34, y, "", "%s", words);
    put(c, PANEL + 34, y + 18, "d", "%s", more);
    return y + 46;
}

static double explain_next(const struct canvas *c, double y)
{
    const struct view *view = c->view;
    uint64_t wait = view->bound - view->now;
    char words[120], more[200];
    if (view->pending == 0)
        return explain(c, y, "next", 2.4, "no next event", "no timer is pending");
    snprintf(words, sizeof words, "next: tick %s, %s", figure_count(view->bound).text,
             view->bound == view->exact ? "a timer fires" : "timers are refiled");
    snprintf(more, sizeof more, "in %s tick%s%s%s%s%s", figure_count(wait).text, wait == 1 ? "" : "s",
             c->trace->tick_ns > 0 ? ", " : "", figure_time(wait, c->trace->tick_ns).text,
             view->bound != view->exact ? "; first deadline: tick " : "",
             view->bound != view->exact ? figure_count(view->exact).text : "");
    return explain(c, y, "next", 2.4, words, more);
}

static double explain_window(const struct canvas *c, double y)
{
    const char *later = "a timer due later is filed one ring further in";
    if (!c->view->ring[0].bounded)
        return y;
    if (c->view->levels == 1)
        later = c->view->overflow == TW_OVERFLOW_REJECT ? "a timer due later is refused"
                                                        : "a timer due later stays for several turns";
    return explain(c, y, "window", 2, "the window: the ticks that a ring holds", later);
}

static double explain_refiled(const struct canvas *c, double y)
{
    char words[120];
    for (uint32_t l = 0; l < c->rings; l++) {
        const struct view_ring *ring = &c->view->ring[l];
        if (ring->info.draining == 0)
            continue;
        snprintf(words, sizeof words, "being refiled: %s timers left in slot %" PRIu32 " of level %" PRIu32,
                 figure_count(ring->info.draining).text, ring->refiled, l);
        y = explain(c, y, "refiled", 4, words, "a few in each tick, before the ring outside needs them");
    }
    return y;
}

static double draw_key(const struct canvas *c, double y)
{
    char words[120];
    snprintf(words, sizeof words, "now: tick %s", figure_count(c->view->now).text);
    y = explain(c, y, "now", 2.4, words, "the hand of each ring; ticks behind it are over");
    y = explain_next(c, y);
    y = explain_window(c, y);
    if (c->rings > 1)
        y = explain(c, y, "ahead", 14, "lookahead: handed on to the ring outside",
                    "its window already holds these slots");
    return explain_refiled(c, y);
}

static void draw_note(const struct canvas *c, double y)
{
    uint32_t step = 1;
    for (uint32_t l = 0; l < c->rings; l++)
        if (slots_per_mark(&c->view->ring[l]) > step)
            step = slots_per_mark(&c->view->ring[l]);
    put(c, PANEL, y, "d", "Slot 0 is at the top and time runs clockwise. The outer");
    put(c, PANEL, y += 18, "d", "ring has a slot for every tick%s",
        c->view->levels > 1 ? "; on an inner ring a timer" : ".");
    if (c->view->levels > 1)
        put(c, PANEL, y += 18, "d", "waits until its time comes near, and then moves outwards.");
    if (step > 1)
        put(c, PANEL, y + 18, "d", "A mark is up to %" PRIu32 " slots; the fullest gives the colour.", step);
}

/* ---- the card ------------------------------------------------------------------------------------------- */

/* The rings share the room between the rim and the hub. A limit keeps them thin if there are few. */
static struct canvas canvas_make(const struct view *view, const struct trace *trace, FILE *out)
{
    struct canvas canvas = {.view = view, .trace = trace, .out = out};
    canvas.rings = view->rings < RINGS_MAX ? view->rings : RINGS_MAX;
    double pitch = (double)(RIM - HUB) / canvas.rings;
    canvas.gap = fmin(GAP_MAX, pitch * 0.4);
    canvas.thick = fmin(40 + 90.0 / canvas.rings, pitch - canvas.gap);
    for (int i = 0; i < SHADES; i++)
        canvas.least[i] = (uint64_t)ceil(pow((double)view->most, (double)i / SHADES));
    return canvas;
}

static void draw_card(const struct canvas *c, const char *shape)
{
    const struct view *view = c->view;
    const struct trace *trace = c->trace;
    fprintf(c->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
            "role=\"img\" data-tick=\"%" PRIu64 "\" data-pending=\"%" PRIu64 "\">\n"
            "<title>A timing wheel at tick %" PRIu64 "</title>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT, view->now, view->pending, view->now);
    fprintf(c->out, "%s<rect width=\"100%%\" height=\"100%%\" rx=\"18\" fill=\"#10161e\"/>\n", STYLE);
    put(c, 44, 58, "h", "A timing wheel at tick %s", figure_count(view->now).text);
    put(c, 44, 87, "", "%.*s%s%s", TITLE_PART, trace->name, trace->source[0] != '\0' ? ": " : "",
        trace->source);
    put(c, 44, 111, "d", "%s timer%s pending; wheel: %.*s", figure_count(view->pending).text,
        view->pending == 1 ? "" : "s", TITLE_PART, shape);
}

void picture_write(const struct view *view, const struct trace *trace, const char *shape, FILE *out)
{
    struct canvas canvas = canvas_make(view, trace, out);
    draw_card(&canvas, shape);
    draw_rings(&canvas);
    double y = draw_table(&canvas, 150);
    y = draw_scale(&canvas, y + 18);
    y = draw_key(&canvas, y + 10);
    draw_note(&canvas, fmax(y + 6, HEIGHT - 106));
    fputs("</svg>\n", out);
}
