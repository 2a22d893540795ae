/* SPDX-License-Identifier: MIT
 *
 * Numbers as text for people. Each function returns a small struct by value:
 * printf("%s", figure_count(n).text).
 */
#ifndef COMMAND_FIGURES_H
#define COMMAND_FIGURES_H

#include <stdint.h>

struct figure {
    char text[48];
};

/* 1234567 as "1,234,567". */
struct figure figure_count(uint64_t number);

/* Like figure_count() below 1,000,000,000; a larger number as "1.84e19". For tables. */
struct figure figure_short(uint64_t number);

/* A number of ticks, each `tick_ns` long, as "4 ms", "2.1 min" or "12 days"; empty if tick_ns is 0. */
struct figure figure_time(uint64_t ticks, double tick_ns);

/* Reads the length of a tick, such as "4 ms" or "0.5 us". Returns nanoseconds, or 0 if it is not valid. */
double figure_tick(const char *text);

#endif
