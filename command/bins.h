/* SPDX-License-Identifier: MIT
 *
 * How the values of a set spread, in steps of two: 1, 2-3, 4-7 and so on.
 */
#ifndef COMMAND_HISTOGRAM_H
#define COMMAND_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

enum { HISTOGRAM_STEPS = 64 };

/* Zeroed memory is an empty histogram. */
struct histogram {
    uint64_t step[HISTOGRAM_STEPS]; /* step[k] counts the values from 2^k to 2^(k+1) - 1 */
    uint64_t total;
};

/* Counts a value. Requires: it is not 0. */
void histogram_add(struct histogram *histogram, uint64_t value);

/* Prints it as bars. `values` names what was counted, `of` what had it; with the length of a value of 1 (0: not
 * known) also in units of time. */
void histogram_print(const struct histogram *histogram, const char *values, const char *of, double unit_ns,
                     FILE *out);

#endif
