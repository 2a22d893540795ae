/* SPDX-License-Identifier: MIT
 *
 * Shared by the parts of the picture: the data to draw, the sizes and positions, and the colours.
 */
#ifndef COMMAND_CANVAS_H
#define COMMAND_CANVAS_H

#include "svg.h"
#include "record.h"
#include "view.h"

#include <stdio.h>

enum { CANVAS_WIDTH = 1340, CANVAS_HEIGHT = 940 };
enum { CANVAS_PANEL = 892, CANVAS_PANEL_END = 1298 }; /* the panel's left and right edge */
enum { CANVAS_RIM = 355, CANVAS_HUB = 78 };           /* radius of the rings, outside and inside */
enum { CANVAS_SHADES = 32 };

#define INK_GROUND "#10161e"
#define INK_RULE "#33424f"
#define INK_TRACK "#1d2733"
#define INK_COVERED "#31445a"
#define INK_WINDOW "#7fa3c7"
#define INK_HAND "#ff5f56"
#define INK_REFILED "#ffa657"
#define INK_NEXT "#ff8fd8"

struct canvas {
    const struct view *view;
    const struct trace *trace;
    FILE *out;
    uint32_t rings;    /* number of rings to draw: the lowest levels, from the rim inwards */
    double thick, gap; /* thickness of a ring, and distance between two rings */
};

struct canvas_colour {
    char text[8];
};

struct canvas canvas_make(const struct view *view, const struct trace *trace, FILE *out);

/* The position of a count on the colour scale, 0 to 1. Requires: it is not 0. */
double canvas_scale(const struct view *view, uint64_t count);

/* The shade of a count, 0 to CANVAS_SHADES - 1; and the colour of a shade. */
int canvas_shade(const struct view *view, uint64_t count);
struct canvas_colour canvas_colour(int shade);

/* The number of slots that share one mark, chosen so that no ring has more marks than a screen can show. */
uint32_t canvas_slots_per_mark(const struct tw_level_info *info);

/* Draw the rings with their marks (rings.c), and the text beside them (panel.c). */
void canvas_draw_rings(const struct canvas *canvas);
void canvas_draw_panel(const struct canvas *canvas);

#endif
