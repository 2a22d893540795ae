/* SPDX-License-Identifier: MIT
 *
 * A histogram with a bin for each power of two: 1, 2-3, 4-7 and so on.
 */
#ifndef COMMAND_BINS_H
#define COMMAND_BINS_H

#include <stdint.h>
#include <stdio.h>

enum { BINS = 64 };

/* Zeroed memory is a set of empty bins. */
struct bins {
    uint64_t count[BINS]; /* count[k]: the values from 2^k to 2^(k+1) - 1 */
    uint64_t total;
};

/* Counts a value. Requires: it is not 0. */
void bins_add(struct bins *bins, uint64_t value);

/* Prints the bins as bars. `values` is the heading of the values, `of` that of the counts: for example "us
 * late" and "runs". If `unit_ns`, the length of a value of 1, is not 0, each bin is also shown as a time. */
void bins_print(const struct bins *bins, const char *values, const char *of, double unit_ns, FILE *out);

#endif
