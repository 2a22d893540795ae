/* SPDX-License-Identifier: MIT
 *
 * How the values of a set spread, in bins of powers of two: 1, 2-3, 4-7 and so on.
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

/* Prints them as bars. `values` names what was counted, `of` what had it; with the length of a value of 1 (0:
 * not known) also in units of time. */
void bins_print(const struct bins *bins, const char *values, const char *of, double unit_ns, FILE *out);

#endif
