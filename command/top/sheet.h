/* SPDX-License-Identifier: MIT
 *
 * A sheet of characters with a style each, to be drawn on and then printed, or put on a terminal. What lies
 * outside of it is not drawn, so who draws need not care for its size.
 */
#ifndef COMMAND_SHEET_H
#define COMMAND_SHEET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum style {
    STYLE_PLAIN,
    STYLE_TITLE,  /* the bar at the top */
    STYLE_ALARM,  /* the same when something is wrong */
    STYLE_HEAD,   /* what a part is about */
    STYLE_LABEL,  /* what a number means */
    STYLE_NUMBER, /* the numbers that matter most */
    STYLE_WARN,
    STYLE_BAD,
    STYLE_AXIS,
    STYLE_SPARK,
    STYLE_BARS, /* the first of these, from low to high */
    STYLES = STYLE_BARS + 8
};

struct cell {
    char text[4]; /* one character in UTF-8, terminated */
    uint8_t style;
};

struct sheet {
    int rows, cols;
    bool ascii; /* no other characters */
    struct cell *cell;
};

/* False: no memory. All blank. */
bool sheet_init(struct sheet *sheet, int rows, int cols, bool ascii);
void sheet_fini(struct sheet *sheet);

/* Puts text there, which is ASCII, and cut off at the right edge. Returns the column behind it. */
int sheet_put(struct sheet *sheet, int row, int col, enum style style, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Puts one character of a column's height there, `eighths` 0 to 8 full, from below. */
void sheet_block(struct sheet *sheet, int row, int col, enum style style, int eighths);

/* Fills a row with a style and blanks. */
void sheet_row(struct sheet *sheet, int row, enum style style);

/* Prints rows as lines, without blanks at their ends and without empty rows at the end. */
void sheet_print(const struct sheet *sheet, FILE *out);

#endif
