/* SPDX-License-Identifier: MIT
 *
 * A sheet of characters with a style each, to be drawn on and then printed, or put on a terminal. What lies outside
 * of it is not drawn, so who draws need not care for its size.
 */
#ifndef TW_TOOLS_SHEET_H
#define TW_TOOLS_SHEET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum tw_style {
    TW_STYLE_PLAIN,
    TW_STYLE_TITLE,  /* the bar at the top */
    TW_STYLE_ALARM,  /* the same when something is wrong */
    TW_STYLE_HEAD,   /* what a part is about */
    TW_STYLE_LABEL,  /* what a number means */
    TW_STYLE_NUMBER, /* the numbers that matter most */
    TW_STYLE_WARN,
    TW_STYLE_BAD,
    TW_STYLE_AXIS,
    TW_STYLE_SPARK,
    TW_STYLE_BARS, /* the first of these, from low to high */
    TW_STYLES = TW_STYLE_BARS + 8
};

struct tw_cell {
    char text[4]; /* one character in UTF-8, terminated */
    uint8_t style;
};

struct tw_sheet {
    int rows, cols;
    bool ascii; /* no other characters */
    struct tw_cell *cell;
};

/* False: no memory. All blank. */
bool tw_sheet_init(struct tw_sheet *sheet, int rows, int cols, bool ascii);
void tw_sheet_fini(struct tw_sheet *sheet);

/* Puts text there, which is ASCII, and cut off at the right edge. Returns the column behind it. */
int tw_sheet_put(struct tw_sheet *sheet, int row, int col, enum tw_style style, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Puts one character of a column's height there, `eighths` 0 to 8 full, from below. */
void tw_sheet_block(struct tw_sheet *sheet, int row, int col, enum tw_style style, int eighths);

/* Fills a row with a style and blanks. */
void tw_sheet_row(struct tw_sheet *sheet, int row, enum tw_style style);

/* Prints rows as lines, without blanks at their ends and without empty rows at the end. */
void tw_sheet_print(const struct tw_sheet *sheet, FILE *out);

#endif
