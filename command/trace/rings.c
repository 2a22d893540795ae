/* SPDX-License-Identifier: MIT
 *
 * The rings. Slot 0 of each ring is at the top, and time runs clockwise. A hand stands at the end of tick
 * `now`; the slots behind it are over. Two spans begin at the hand:
 *
 * - the ring's own window, drawn as a line along its rim,
 * - on the track of an inner ring, the slots that lie in the window of the next ring outside.
 *
 * A ring with very many slots is drawn in marks of several slots each. A mark has the colour of its fullest
 * slot, and the panel says so.
 */
#include "canvas.h"

#include "figures.h"

#include <inttypes.h>
#include <math.h>

enum {
    NAME_MIN = 8,
    NAME_MAX = 13
}; /* font sizes of a name; a name that would be smaller is left out, because it could not be read */

static const struct svg_point CENTRE = {444, 515};
static const double TAU = 6.283185307179586;

/* ---- where things are ----------------------------------------------------------------------------------- */

static double ring_outer(const struct canvas *c, uint32_t l)
{
    return CANVAS_RIM - l * (c->thick + c->gap);
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

/* The angle of the middle of the slot being refiled. */
static double refiled_turn(const struct canvas *c, uint32_t l)
{
    const struct view_ring *ring = &c->view->ring[l];
    return (ring->refiled + 0.5) / ring->info.slots;
}

/* The part of a turn from now to the end of tick `last`; at most a whole turn. */
static double sweep_to(const struct canvas *c, uint32_t l, uint64_t last)
{
    const struct tw_level_info *info = &c->view->ring[l].info;
    double turns = (double)(last - c->view->now) / (double)info->span / info->slots;
    return turns < 1 ? turns : 1;
}

/* ---- rings ---------------------------------------------------------------------------------------------- */

static void begin_path(const struct canvas *c, const char *colour, double width)
{
    fprintf(c->out, "<path stroke=\"%s\" stroke-width=\"%g\" d=\"", colour, svg_round(width));
}

static void end_path(const struct canvas *c)
{
    fputs("\"/>\n", c->out);
}

static void draw_span(const struct canvas *c, const char *colour, double width, double radius, double from,
                      double to)
{
    begin_path(c, colour, width);
    svg_arc(c->out, CENTRE, radius, from, to);
    end_path(c);
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
    uint32_t slots = ring->info.slots, step = canvas_slots_per_mark(&ring->info);
    double radius = ring_middle(c, l), air = fmin(0.06 * step / slots, 0.0002);
    bool begun = false;
    for (uint32_t i = 0; i < slots; i += step) {
        uint32_t end = slots - i < step ? slots : i + step;
        uint64_t count = fullest(ring, i, end);
        if (count == 0 || canvas_shade(c->view, count) != wanted)
            continue;
        if (!begun)
            begin_path(c, canvas_colour(wanted).text, c->thick);
        begun = true;
        svg_arc(c->out, CENTRE, radius, (double)i / slots + air, (double)end / slots - air);
    }
    if (begun)
        end_path(c);
}

/* Draws the slot that is being refiled: in the colour of the timers left in it, with an outline and a dot. */
static void draw_refiled(const struct canvas *c, uint32_t l)
{
    const struct view_ring *ring = &c->view->ring[l];
    double from = (double)ring->refiled / ring->info.slots, to = from + 1.0 / ring->info.slots;
    double edge = 2.0 / (TAU * ring_middle(c, l));
    if (ring->info.draining == 0)
        return;
    draw_span(c, INK_REFILED, c->thick + 7, ring_middle(c, l), from - edge, to + edge);
    draw_span(c, canvas_colour(canvas_shade(c->view, ring->info.draining)).text, c->thick, ring_middle(c, l),
              from, to);
    struct svg_point dot = svg_on_circle(CENTRE, ring_outer(c, l) + 9, refiled_turn(c, l));
    fprintf(c->out, "<circle cx=\"%g\" cy=\"%g\" r=\"4\" fill=\"" INK_REFILED "\"/>\n", dot.x, dot.y);
}

static void draw_windows(const struct canvas *c, uint32_t l)
{
    const struct view_ring *ring = &c->view->ring[l];
    double hand = hand_turn(c, l);
    draw_span(c, INK_TRACK, c->thick, ring_middle(c, l), 0, 1);
    if (l > 0)
        draw_span(c, INK_COVERED, c->thick, ring_middle(c, l), hand, hand + sweep_to(c, l, ring->covered));
    if (ring->bounded)
        draw_span(c, INK_WINDOW, 2, ring_outer(c, l) + 2.5, hand, hand + sweep_to(c, l, ring->last));
}

static void draw_hand(const struct canvas *c, uint32_t l)
{
    double turn = hand_turn(c, l), outer = ring_outer(c, l), inner = outer - c->thick;
    double size = fmin(9, c->gap / 2);
    struct svg_point a = svg_on_circle(CENTRE, inner - 1, turn), b = svg_on_circle(CENTRE, outer + 3, turn);
    fprintf(c->out, "<path stroke=\"" INK_HAND "\" stroke-width=\"2.4\" d=\"M%g %gL%g %g\"/>\n", a.x, a.y, b.x,
            b.y);
    double side = size * 0.6 / (TAU * inner);
    struct svg_point left = svg_on_circle(CENTRE, inner - size, turn - side);
    struct svg_point right = svg_on_circle(CENTRE, inner - size, turn + side);
    fprintf(c->out, "<polygon fill=\"" INK_HAND "\" points=\"%g,%g %g,%g %g,%g\"/>\n", a.x, a.y, left.x, left.y,
            right.x, right.y);
}

static void draw_ring(const struct canvas *c, uint32_t l)
{
    const struct view_ring *ring = &c->view->ring[l];
    fprintf(c->out,
            "<g class=\"ring\" data-level=\"%" PRIu32 "\" data-slots=\"%" PRIu32 "\" data-span=\"%" PRIu64
            "\" data-occupied=\"%" PRIu32 "\" data-filed=\"%" PRIu64 "\" data-refiling=\"%" PRIu64
            "\" data-slots-per-mark=\"%" PRIu32 "\">\n",
            l, ring->info.slots, ring->info.span, ring->info.occupied, ring->info.filed, ring->info.draining,
            canvas_slots_per_mark(&ring->info));
    draw_windows(c, l);
    fputs("<g class=\"slots\">\n", c->out);
    for (int i = 0; ring->info.filed > 0 && i < CANVAS_SHADES; i++)
        draw_shade(c, l, i);
    fputs("</g>\n", c->out);
    draw_refiled(c, l);
    draw_hand(c, l);
    fputs("</g>\n", c->out);
}

/* ---- the next event ------------------------------------------------------------------------------------- */

static double next_turn(const struct canvas *c, uint32_t *l)
{
    *l = view_ring_of(c->view, c->view->bound);
    const struct tw_level_info *info = &c->view->ring[*l].info;
    return turn_of(info, c->view->bound) + (*l == 0 ? 0.5 / info->slots : 0);
}

/* Draws a line from the place of the next tick, across the rings outside it, to the word "next" beyond the
 * rim. */
static void draw_next(const struct canvas *c)
{
    uint32_t l;
    if (c->view->pending == 0)
        return;
    double turn = next_turn(c, &l), x = sin(turn * TAU);
    struct svg_point a = svg_on_circle(CENTRE, ring_outer(c, l) - c->thick, turn);
    struct svg_point b = svg_on_circle(CENTRE, CANVAS_RIM + 26, turn);
    struct svg_point word = svg_on_circle(CENTRE, CANVAS_RIM + 38, turn);
    fprintf(c->out, "<path stroke=\"" INK_NEXT "\" stroke-width=\"1.6\" d=\"M%g %gL%g %g\"/>\n", a.x, a.y, b.x,
            b.y);
    fprintf(c->out, "<circle cx=\"%g\" cy=\"%g\" r=\"4\" fill=\"" INK_NEXT "\"/>\n", b.x, b.y);
    word.y += 5;
    svg_text(c->out, word, x > 0.25 ? "p" : x < -0.25 ? "p r" : "p m", "next");
}

/* ---- names of the rings --------------------------------------------------------------------------------- */

static double apart(double a, double b)
{
    double distance = fabs(a - b);
    distance -= floor(distance);
    return distance < 0.5 ? distance : 1 - distance;
}

/* True if hands and marks leave room for a name of this width outside ring l, at this angle. */
static bool free_for_name(const struct canvas *c, uint32_t l, double turn, double width)
{
    uint32_t next;
    if (apart(turn, hand_turn(c, l)) < width || (l > 0 && apart(turn, hand_turn(c, l - 1)) < width))
        return false;
    if (c->view->ring[l].info.draining > 0 && apart(turn, refiled_turn(c, l)) < width)
        return false;
    return c->view->pending == 0 || apart(turn, next_turn(c, &next)) >= width;
}

/* Draws the name of a ring in the gap outside the ring, as near to the top as hands and marks allow. */
static void draw_name(const struct canvas *c, uint32_t l)
{
    double radius = ring_outer(c, l) + 4 + c->gap / 6, turn = 0;
    double size = fmin(NAME_MAX, c->gap * 0.6), width = 3 * size / (TAU * radius);
    if (size < NAME_MIN)
        return;
    for (int i = 1; i < 12 && !free_for_name(c, l, turn, width); i++)
        turn = i % 2 == 0 ? -turn : width - turn;
    struct svg_point at = svg_on_circle(CENTRE, radius, turn);
    fprintf(
        c->out,
        "<text class=\"d m\" style=\"font-size:%gpx\" transform=\"translate(%g %g) rotate(%g)\">level %" PRIu32
        "</text>\n",
        svg_round(size), at.x, at.y, svg_round(turn * 360), l);
}

void canvas_draw_rings(const struct canvas *c)
{
    for (uint32_t l = 0; l < c->rings; l++)
        draw_ring(c, l);
    draw_next(c);
    for (uint32_t l = 0; l < c->rings; l++)
        draw_name(c, l);
    struct svg_point at = {CENTRE.x, CENTRE.y + 4};
    svg_text(c->out, at, "big m", "%s", figure_short(c->view->pending).text);
    at.y += 21;
    svg_text(c->out, at, "d m", "pending");
}
