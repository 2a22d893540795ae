/* SPDX-License-Identifier: MIT
 *
 * Numbers for people. Each comes back by value in a small struct: printf("%s", figure_count(n).text).
 */
#ifndef COMMAND_FIGURES_H
#define COMMAND_FIGURES_H

#include <stdint.h>

struct figure {
    char text[48];
};

/* 1234567 as "1,234,567". */
struct figure figure_count(uint64_t number);

/* As figure_count() while that is short, else as "1.84e19": for tables. */
struct figure figure_short(uint64_t number);

/* A number of ticks, each `tick_ns` long, as "4 ms", "2.1 min", "12 days"; empty when tick_ns is 0. */
struct figure figure_time(uint64_t ticks, double tick_ns);

/* Reads the length of a tick, "4 ms" or "0.5 us", in nanoseconds; 0 when it is not such a text. */
double figure_tick(const char *text);

#endif
