/* SPDX-License-Identifier: MIT
 *
 * What the parts of the picture share: what is to be drawn and where, and the colours.
 */
#ifndef TW_TOOLS_CANVAS_H
#define TW_TOOLS_CANVAS_H

#include "svg.h"
#include "trace.h"
#include "view.h"

#include <stdio.h>

enum { TW_CANVAS_WIDTH = 1340, TW_CANVAS_HEIGHT = 940 };
enum { TW_CANVAS_PANEL = 892, TW_CANVAS_PANEL_END = 1298 }; /* the panel's left and right edge */
enum { TW_CANVAS_RIM = 355, TW_CANVAS_HUB = 78 };           /* radius of the rings, outside and inside */
enum { TW_CANVAS_SHADES = 32 };

#define TW_INK_GROUND "#10161e"
#define TW_INK_RULE "#33424f"
#define TW_INK_TRACK "#1d2733"
#define TW_INK_COVERED "#31445a"
#define TW_INK_WINDOW "#7fa3c7"
#define TW_INK_HAND "#ff5f56"
#define TW_INK_REFILED "#ffa657"
#define TW_INK_NEXT "#ff8fd8"

struct tw_canvas {
    const struct tw_view *view;
    const struct tw_trace *trace;
    FILE *out;
    uint32_t rings;    /* drawn: the lowest ones, from the rim inwards */
    double thick, gap; /* of a ring, and between two */
};

struct tw_canvas_colour {
    char text[8];
};

struct tw_canvas tw_canvas_make(const struct tw_view *view, const struct tw_trace *trace, FILE *out);

/* Where a count stands on the colour scale: 0 to 1. Requires: it is not 0. */
double tw_canvas_scale(const struct tw_view *view, uint64_t count);

/* The shade of a count, 0 to TW_CANVAS_SHADES - 1, and the colour of a shade. */
int tw_canvas_shade(const struct tw_view *view, uint64_t count);
struct tw_canvas_colour tw_canvas_colour(int shade);

/* Slots that share one mark, so that no ring has more marks than a screen can show. */
uint32_t tw_canvas_slots_per_mark(const struct tw_level_info *info);

/* The rings with all that is marked on them (rings.c), and the words and numbers beside them (panel.c). */
void tw_canvas_draw_rings(const struct tw_canvas *canvas);
void tw_canvas_draw_panel(const struct tw_canvas *canvas);

#endif
