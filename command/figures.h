/* SPDX-License-Identifier: MIT
 *
 * Numbers as text for people. Each function returns a small struct by value:
 * printf("%s", figure_count(n).text).
 */
#ifndef COMMAND_FIGURES_H
#define COMMAND_FIGURES_H

#include <stdint.h>
#include <stdio.h>

struct figure {
    char text[48];
};

/* 1234567 as "1,234,567". */
struct figure figure_count(uint64_t number);

/* Like figure_count() below 1,000,000,000; a larger number as "1.84e19". For tables. */
struct figure figure_short(uint64_t number);

/* A number of ticks, each `tick_ns` long, as "4 ms", "2.1 min" or "12 days"; empty if tick_ns is 0. */
struct figure figure_time(uint64_t ticks, double tick_ns);

/* Bytes as "17 bytes", "1.5 KiB" or "200 GiB"; `bytes` is the name of the smallest unit. */
struct figure figure_bytes(double number, const char *bytes);

/* Prints a bar and a newline: `wide` marks for a count of `most`, and at least one, so that rare values are
 * seen. */
void figure_bar(uint64_t count, uint64_t most, int wide, FILE *out);

/* Reads the length of a tick, such as "4 ms" or "0.5 us". Returns nanoseconds, or 0 if it is not valid. */
double figure_tick(const char *text);

#endif
