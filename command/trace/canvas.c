/* SPDX-License-Identifier: MIT
 *
 * All rings share one colour scale, from the middle of viridis to its bright end. Equal steps look equal,
 * brighter means more timers, and even a single timer is visible on the dark card. If a few slots hold far
 * more timers than the other slots, the scale is logarithmic; on a linear scale the other slots would look
 * empty.
 */
#include "canvas.h"

#include <math.h>

enum { RINGS_MAX = 10, GAP_MAX = 28, MARKS_MAX = 1536 };

/* The rings share the room between the rim and the hub. A limit keeps them thin if there are few. */
struct canvas canvas_make(const struct view *view, const struct trace *trace, FILE *out)
{
    struct canvas canvas = {.view = view, .trace = trace, .out = out};
    canvas.rings = view->rings < RINGS_MAX ? view->rings : RINGS_MAX;
    double pitch = (double)(CANVAS_RIM - CANVAS_HUB) / canvas.rings;
    canvas.gap = fmin(GAP_MAX, pitch * 0.4);
    canvas.thick = fmin(40 + 90.0 / canvas.rings, pitch - canvas.gap);
    return canvas;
}

double canvas_scale(const struct view *view, uint64_t count)
{
    if (view->most <= 1)
        return 1;
    if (view->skewed)
        return log((double)count) / log((double)view->most);
    return (double)(count - 1) / (double)(view->most - 1);
}

int canvas_shade(const struct view *view, uint64_t count)
{
    return (int)(canvas_scale(view, count) * (CANVAS_SHADES - 1) + 0.5);
}

/* Viridis (Smith and van der Walt, public domain) without its darkest quarter. */
struct canvas_colour canvas_colour(int shade)
{
    static const unsigned char KEYS[][3] = {{59, 82, 139}, {44, 113, 142}, {33, 145, 140}, {39, 173, 129},
                                            {92, 200, 99}, {170, 220, 50}, {253, 231, 37}};
    enum { LAST = sizeof KEYS / sizeof KEYS[0] - 1 };
    double at = (double)shade / (CANVAS_SHADES - 1) * LAST;
    int key = at >= LAST ? LAST - 1 : (int)at;
    unsigned part[3];
    for (int i = 0; i < 3; i++)
        part[i] = (unsigned)(KEYS[key][i] + (at - key) * (KEYS[key + 1][i] - KEYS[key][i]) + 0.5);
    struct canvas_colour colour;
    snprintf(colour.text, sizeof colour.text, "#%02x%02x%02x", part[0] & 255, part[1] & 255, part[2] & 255);
    return colour;
}

uint32_t canvas_slots_per_mark(const struct tw_level_info *info)
{
    return (info->slots + MARKS_MAX - 1) / MARKS_MAX;
}
