/* SPDX-License-Identifier: MIT
 *
 * The few things an SVG picture is made of here. Angles are in turns, clockwise from the top.
 */
#ifndef TW_TOOLS_SVG_H
#define TW_TOOLS_SVG_H

#include <stdio.h>

struct tw_svg_point {
    double x, y;
};

/* The point on a circle around `centre`. */
struct tw_svg_point tw_svg_on_circle(struct tw_svg_point centre, double radius, double turn);

/* One piece of a path's data: an arc from one angle to a later one, at most a whole turn on. */
void tw_svg_arc(FILE *out, struct tw_svg_point centre, double radius, double from, double to);

/* A line of text of a class. What stands in it is escaped; bytes that are not UTF-8 show as "?". */
void tw_svg_text(FILE *out, struct tw_svg_point at, const char *class, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Text between tags or in an attribute, escaped. */
void tw_svg_escape(FILE *out, const char *text);

/* A coordinate: two decimals at most, and never "-0". */
double tw_svg_round(double value);

#endif
