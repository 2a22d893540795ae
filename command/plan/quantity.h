/* SPDX-License-Identifier: MIT
 *
 * Reads a number as people write it: 5000000, 5e6, 5M, 1.5k.
 */
#ifndef COMMAND_QUANTITY_H
#define COMMAND_QUANTITY_H

#include <stdbool.h>

/* Reads a whole text as a number that is not negative. It may have an exponent or one of the suffixes k, M
 * and G (10^3, 10^6, 10^9). Returns false if the text is anything else; infinity and NaN are not accepted. */
bool quantity_parse(const char *text, double *number);

#endif
