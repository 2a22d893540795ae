/* SPDX-License-Identifier: MIT
 *
 * How many, as people write it: 5000000, 5e6, 5M, 1.5k.
 */
#ifndef COMMAND_QUANTITY_H
#define COMMAND_QUANTITY_H

#include <stdbool.h>

/* Reads a whole text as a number that is not negative, with an exponent or one of the suffixes k, M and G
 * (thousands, millions, thousand millions). False when it is anything else, infinity and NaN included. */
bool quantity_parse(const char *text, double *number);

#endif
