/* SPDX-License-Identifier: MIT */
#include "bins.h"

#include "figures.h"

#include <stdbool.h>

enum { BAR = 28 };

void bins_add(struct bins *bins, uint64_t value)
{
    bins->count[63 - __builtin_clzll(value)]++;
    bins->total++;
}

static uint64_t most_in_a_bin(const struct bins *bins)
{
    uint64_t most = 0;
    for (int k = 0; k < BINS; k++)
        if (bins->count[k] > most)
            most = bins->count[k];
    return most;
}

static void print_bin(const struct bins *bins, int k, double unit_ns, FILE *out)
{
    uint64_t low = (uint64_t)1 << k, high = low + (low - 1);
    fprintf(out, "  %11s", figure_short(low).text);
    fprintf(out, high > low ? " - %-11s" : "   %11s", high > low ? figure_short(high).text : "");
    if (unit_ns > 0)
        fprintf(out, " %10s", figure_time(low, unit_ns).text);
    fprintf(out, " %12s %5.1f%% ", figure_count(bins->count[k]).text,
            100.0 * (double)bins->count[k] / (double)bins->total);
}

void bins_print(const struct bins *bins, const char *values, const char *of, double unit_ns, FILE *out)
{
    uint64_t most = most_in_a_bin(bins);
    int last = -1;
    fprintf(out, "  %15s%10s%s %12s\n", values, "", unit_ns > 0 ? "       from" : "", of);
    for (int k = 0; k < BINS; k++) {
        if (bins->count[k] == 0)
            continue;
        /* Empty bins between two others are shown as one line, however many they are. */
        if (last >= 0 && k > last + 1)
            fprintf(out, "  %13s\n", "...");
        last = k;
        print_bin(bins, k, unit_ns, out);
        figure_bar(bins->count[k], most, BAR, out);
    }
}
