/* SPDX-License-Identifier: MIT
 *
 * The elements of our SVG pictures. Angles are in turns, clockwise from the top.
 */
#ifndef COMMAND_SVG_H
#define COMMAND_SVG_H

#include <stdio.h>

struct svg_point {
    double x, y;
};

/* The point on a circle around `centre`. */
struct svg_point svg_on_circle(struct svg_point centre, double radius, double turn);

/* Writes an arc as part of a path's data: from one angle to a later angle, at most a whole turn later. */
void svg_arc(FILE *out, struct svg_point centre, double radius, double from, double to);

/* Writes a line of text with a CSS class. The text is escaped; bytes that are not UTF-8 become "?". */
void svg_text(FILE *out, struct svg_point at, const char *class, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Writes escaped text, for use between tags or in an attribute. */
void svg_escape(FILE *out, const char *text);

/* Rounds a coordinate to at most two decimals; the result is never -0. */
double svg_round(double value);

#endif
