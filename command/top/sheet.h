/* SPDX-License-Identifier: MIT
 *
 * A sheet of characters, each with a style, which is drawn on and then printed or put on a terminal.
 * Characters outside the sheet are dropped, so the caller need not check its size.
 */
#ifndef COMMAND_SHEET_H
#define COMMAND_SHEET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum style {
    STYLE_PLAIN,
    STYLE_TITLE,  /* the bar at the top */
    STYLE_ALARM,  /* the bar at the top if there is an error */
    STYLE_HEAD,   /* the heading of a part */
    STYLE_LABEL,  /* the name of a number */
    STYLE_NUMBER, /* the most important numbers */
    STYLE_WARN,
    STYLE_BAD,
    STYLE_AXIS,
    STYLE_SPARK,
    STYLE_BARS, /* the first of eight styles of bars, from low to high */
    STYLES = STYLE_BARS + 8
};

struct cell {
    char text[4]; /* one character in UTF-8, terminated */
    uint8_t style;
};

struct sheet {
    int rows, cols;
    bool ascii; /* use ASCII characters only */
    struct cell *cell;
};

/* Makes a blank sheet. Returns false if there is no memory. */
bool sheet_init(struct sheet *sheet, int rows, int cols, bool ascii);
void sheet_fini(struct sheet *sheet);

/* Puts ASCII text at a place; the right edge cuts it off. Returns the column behind the text. */
int sheet_put(struct sheet *sheet, int row, int col, enum style style, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Puts a block character that is filled from below by `eighths` eighths, 0 to 8. */
void sheet_block(struct sheet *sheet, int row, int col, enum style style, int eighths);

/* Fills a row with blanks of a style. */
void sheet_row(struct sheet *sheet, int row, enum style style);

/* Prints the rows as lines, without blanks at the end of a line and without empty rows at the end. */
void sheet_print(const struct sheet *sheet, FILE *out);

#endif
