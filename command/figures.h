/* SPDX-License-Identifier: MIT
 *
 * Numbers for people. Each comes back by value in a small struct: printf("%s", tw_figure_count(n).text).
 */
#ifndef TW_TOOLS_FIGURES_H
#define TW_TOOLS_FIGURES_H

#include <stdint.h>

struct tw_figure {
    char text[48];
};

/* 1234567 as "1,234,567". */
struct tw_figure tw_figure_count(uint64_t number);

/* As tw_figure_count() while that is short, else as "1.84e19": for tables. */
struct tw_figure tw_figure_short(uint64_t number);

/* A number of ticks, each `tick_ns` long, as "4 ms", "2.1 min", "12 days"; empty when tick_ns is 0. */
struct tw_figure tw_figure_time(uint64_t ticks, double tick_ns);

/* Reads the length of a tick, "4 ms" or "0.5 us", in nanoseconds; 0 when it is not such a text. */
double tw_figure_tick(const char *text);

#endif
