/* SPDX-License-Identifier: MIT
 *
 * strtod() reads the number. The characters are checked first, because strtod() also accepts hexadecimal
 * digits, "inf" and blanks, and a number of timers has none of these.
 */
#include "quantity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The factor of a suffix; 0 if the suffix is unknown. */
static double scale_of(const char *suffix)
{
    if (*suffix == '\0')
        return 1;
    if (suffix[1] != '\0')
        return 0;
    switch (*suffix) {
    case 'k':
        return 1e3;
    case 'M':
        return 1e6;
    case 'G':
        return 1e9;
    default:
        return 0;
    }
}

bool quantity_parse(const char *text, double *number)
{
    char *end;
    if (text[strspn(text, "0123456789.eE+-kMG")] != '\0' || strspn(text, "0123456789.") == 0)
        return false;
    double value = strtod(text, &end);
    double scale = scale_of(end);
    *number = value * scale;
    return end != text && scale > 0 && isfinite(*number);
}
