/* SPDX-License-Identifier: MIT
 *
 * The few things an SVG picture is made of here. Angles are in turns, clockwise from the top.
 */
#ifndef COMMAND_SVG_H
#define COMMAND_SVG_H

#include <stdio.h>

struct svg_point {
    double x, y;
};

/* The point on a circle around `centre`. */
struct svg_point svg_on_circle(struct svg_point centre, double radius, double turn);

/* One piece of a path's data: an arc from one angle to a later one, at most a whole turn on. */
void svg_arc(FILE *out, struct svg_point centre, double radius, double from, double to);

/* A line of text of a class. What stands in it is escaped; bytes that are not UTF-8 show as "?". */
void svg_text(FILE *out, struct svg_point at, const char *class, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Text between tags or in an attribute, escaped. */
void svg_escape(FILE *out, const char *text);

/* A coordinate: two decimals at most, and never "-0". */
double svg_round(double value);

#endif
