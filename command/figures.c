/* SPDX-License-Identifier: MIT */
#include "figures.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct unit {
    const char *name;
    double ns;
    double until; /* a larger unit takes over from here */
} UNITS[] = {
    {"ns", 1, 1e3},        {"us", 1e3, 1e6},           {"ms", 1e6, 1e9},        {"s", 1e9, 120e9},
    {"min", 60e9, 7200e9}, {"h", 3600e9, 48 * 3600e9}, {"days", 86400e9, 3e16}, {"years", 31557600e9, 1e300},
};
enum { UNIT_COUNT = sizeof UNITS / sizeof UNITS[0], TICK_UNITS = 4 };

struct figure figure_count(uint64_t number)
{
    struct figure figure = {""};
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, number);
    char *out = figure.text;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    return figure;
}

struct figure figure_short(uint64_t number)
{
    if (number < 1000000000)
        return figure_count(number);
    struct figure figure;
    char digits[16]; /* "1.84e+19", which is shortened to "1.84e19" */
    snprintf(digits, sizeof digits, "%.2e", (double)number);
    snprintf(figure.text, sizeof figure.text, "%.4se%d", digits, atoi(digits + 5));
    return figure;
}

struct figure figure_time(uint64_t ticks, double tick_ns)
{
    struct figure figure = {""};
    double ns = (double)ticks * tick_ns;
    const struct unit *unit = UNITS;
    if (tick_ns <= 0)
        return figure;
    while (ns >= unit->until)
        unit++;
    double value = ns / unit->ns;
    /* Three significant digits; "%.0f" from 100 on keeps whole numbers from having an exponent. */
    snprintf(figure.text, sizeof figure.text, value >= 100 ? "%.0f %s" : "%.3g %s", value, unit->name);
    return figure;
}

struct figure figure_bytes(double number, const char *bytes)
{
    const char *const units[] = {bytes, "KiB", "MiB", "GiB", "TiB", "PiB"};
    struct figure figure;
    int unit = 0;
    for (; number >= 1024 && unit < 5; unit++)
        number /= 1024;
    snprintf(figure.text, sizeof figure.text, number >= 100 || unit == 0 ? "%.0f %s" : "%.3g %s", number,
             units[unit]);
    return figure;
}

void figure_bar(uint64_t count, uint64_t most, int wide, FILE *out)
{
    int marks = (int)((double)count / (double)most * wide + 0.5);
    do
        fputc('#', out);
    while (--marks > 0);
    fputc('\n', out);
}

double figure_tick(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != ' ' || !(value > 0 && value < 1e12))
        return 0;
    for (int i = 0; i < TICK_UNITS; i++)
        if (strcmp(end + 1, UNITS[i].name) == 0)
            return value * UNITS[i].ns;
    return 0;
}
