/* SPDX-License-Identifier: MIT
 *
 * The page on which the parts of a frame are put one below the other, and numbers as they stand there.
 */
#ifndef COMMAND_PAGE_H
#define COMMAND_PAGE_H

#include "figures.h"
#include "reading.h"
#include "sheet.h"

enum {
    ITEM = 19, /* columns of a number with its name */
    MARGIN = 1
};

struct history;

/* The part of the sheet that is left, and how its rows are shared out. */
struct page {
    struct sheet *sheet;
    const struct history *history;
    const struct reading *reading, *before;
    int cols, row;
    int levels, bars, queues; /* rows */
    bool airy;                /* a blank row between the parts */
    bool brief;               /* only the most important numbers */
};

/* Leaves a blank row, if there is room for such rows. */
static inline void gap(struct page *page)
{
    page->row += page->airy;
}

/* Returns the rows that some numbers with their names take on `cols` columns. */
int rows_for(int items, int cols);

/* Puts number i of a part in its place. */
void put_item(struct page *page, int i, const char *name, const char *value, enum style style);

/* Returns how many numbers with their names stand in a row. */
int items_in_a_row(int cols);

/* Numbers as text. "-" stands for a rate that is negative, and for a time or a count that is ABSENT. */
struct figure show_rate(double rate);
struct figure show_time(uint64_t ns);
struct figure show_ms(uint64_t ms); /* nanoseconds would overflow after 584 years */
struct figure show_count(uint64_t count);

#endif
