/* SPDX-License-Identifier: MIT */
#include "page.h"

struct figure show_rate(double rate)
{
    struct figure figure = {"-"};
    if (rate >= 100 && rate < 1e15) /* a server may send numbers whose rate no whole number can hold */
        return figure_count((uint64_t)(rate + 0.5));
    if (rate >= 0)
        snprintf(figure.text, sizeof figure.text, "%.3g", rate);
    return figure;
}

static struct figure show_ticks(uint64_t ticks, double tick_ns)
{
    struct figure figure = {"-"};
    if (ticks == ABSENT)
        return figure;
    return ticks == 0 ? (struct figure){"0"} : figure_time(ticks, tick_ns);
}

struct figure show_time(uint64_t ns)
{
    return show_ticks(ns, 1);
}

struct figure show_ms(uint64_t ms)
{
    return show_ticks(ms, 1e6);
}

struct figure show_count(uint64_t count)
{
    return count == ABSENT ? (struct figure){"-"} : figure_short(count);
}

int items_in_a_row(int cols)
{
    int items = (cols - MARGIN) / ITEM;
    return items < 1 ? 1 : items;
}

int rows_for(int items, int cols)
{
    int in_a_row = items_in_a_row(cols);
    return (items + in_a_row - 1) / in_a_row;
}

void put_item(struct page *page, int i, const char *name, const char *value, enum style style)
{
    int in_a_row = items_in_a_row(page->cols);
    int row = page->row + i / in_a_row, col = MARGIN + i % in_a_row * ITEM;
    col = sheet_put(page->sheet, row, col, STYLE_LABEL, "%s ", name);
    sheet_put(page->sheet, row, col, style, "%s", value);
}
