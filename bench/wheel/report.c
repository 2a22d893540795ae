/* SPDX-License-Identifier: MIT
 *
 * The results as files for programs and as tables for people.
 */
#include "results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- files ----------------------------------------------------------------------------------------------- */

static FILE *open_file(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        fprintf(stderr, "wheel_bench: cannot write %s\n", path);
        exit(2);
    }
    return out;
}

static void close_file(FILE *out, const char *name)
{
    if (fclose(out) == 0)
        return;
    fprintf(stderr, "wheel_bench: cannot write %s\n", name);
    exit(2);
}

/* Prints a number, or "-" if there is none. */
static void put_number(FILE *out, double value, int digits, char end)
{
    if (isnan(value) || value == 0)
        fprintf(out, "-%c", end);
    else
        fprintf(out, "%.*f%c", digits, value, end);
}

static const struct cell *floor_cell(const struct results *results, int size)
{
    int floor = results_engine(results, "floor");
    return &results->cell[FLOOR1][floor][size];
}

static void put_summary(FILE *out, const struct results *results, int w, int e, int s)
{
    const struct cell *cell = &results->cell[w][e][s];
    int best = results_best_peer(results, (enum workload)w, s);
    double to_best = best < 0 ? NAN : cell_ratio(cell, &results->cell[w][best][s], FIELD_NS);
    fprintf(out, "%s\t%s\t%u\t", workload_names[w], results->engine[e], results->size[s]);
    put_number(out, cell_median(cell, FIELD_NS), 3, '\t');
    put_number(out, cell_worst_us(cell), 3, '\t');
    put_number(out, cell_median(cell, FIELD_BYTES), 1, '\t');
    put_number(out, to_best, 4, '\t');
    put_number(out, cell_ratio(cell, floor_cell(results, s), FIELD_NS), 3, '\n');
}

static void put_rounds(FILE *out, const struct results *results, int w, int e, int s)
{
    const struct cell *cell = &results->cell[w][e][s];
    for (int r = 0; r < ROUNDS_MAX; r++) {
        if (!cell->has[r])
            continue;
        fprintf(out, "%s\t%s\t%u\t%d\t", workload_names[w], results->engine[e], results->size[s], r);
        put_number(out, cell->value[FIELD_NS][r], 3, '\t');
        put_number(out, cell->value[FIELD_WORST_US][r], 3, '\t');
        put_number(out, cell->value[FIELD_BYTES][r], 1, '\n');
    }
}

static void put_reason(FILE *out, const struct results *results, int w, int e, int s)
{
    const struct cell *cell = &results->cell[w][e][s];
    if (cell->skipped != NULL && !cell_measured(cell))
        fprintf(out, "%s\t%s\t%u\t%s\n", workload_names[w], results->engine[e], results->size[s],
                cell->skipped);
}

typedef void put_fn(FILE *out, const struct results *results, int w, int e, int s);

static void put_all(FILE *out, const struct results *results, put_fn *put)
{
    for (int w = 0; w < WORKLOADS; w++)
        for (int s = 0; s < results->sizes; s++)
            for (int e = 0; e < results->engines; e++)
                if (put == put_reason || cell_measured(&results->cell[w][e][s]))
                    put(out, results, w, e, s);
}

void report_files(const struct results *results, const char *folder)
{
    FILE *out = open_file(folder, "wheel.tsv");
    fprintf(
        out,
        "workload\tengine\ttimers\tns_per_op\tworst_us\tbytes_per_timer\tratio_to_best_peer\tratio_to_floor\n");
    put_all(out, results, put_summary);
    close_file(out, "wheel.tsv");

    out = open_file(folder, "wheel-raw.tsv");
    fprintf(out, "workload\tengine\ttimers\tround\tns_per_op\tworst_us\tbytes_per_timer\n");
    put_all(out, results, put_rounds);
    close_file(out, "wheel-raw.tsv");

    out = open_file(folder, "wheel-skipped.tsv");
    fprintf(out, "workload\tengine\ttimers\treason\n");
    put_all(out, results, put_reason);
    close_file(out, "wheel-skipped.tsv");
}

/* ---- tables ---------------------------------------------------------------------------------------------- */

static bool size_measured(const struct results *results, int w, int s)
{
    for (int e = 0; e < results->engines; e++)
        if (cell_measured(&results->cell[w][e][s]))
            return true;
    return false;
}

static bool engine_measured(const struct results *results, int w, int e)
{
    for (int s = 0; s < results->sizes; s++)
        if (cell_measured(&results->cell[w][e][s]))
            return true;
    return false;
}

static const char *with_commas(uint32_t n)
{
    static char text[16];
    char digits[16];
    int length = snprintf(digits, sizeof digits, "%u", n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

static void print_heads(const struct results *results, int w, FILE *out)
{
    fprintf(out, "\n%s: %s\n  %-18s", workload_names[w], workload_texts[w],
            w < ADD_UNIFORM ? "" : "ns (of best peer)");
    for (int s = 0; s < results->sizes; s++)
        if (size_measured(results, w, s))
            fprintf(out, "%18s", with_commas(results->size[s]));
    if (w == STEADY)
        fprintf(out, "   worst tick at each size, us");
    fputc('\n', out);
}

static void print_cell(const struct results *results, int w, int e, int s, FILE *out)
{
    const struct cell *cell = &results->cell[w][e][s];
    int best = results_best_peer(results, (enum workload)w, s);
    if (!cell_measured(cell)) {
        fprintf(out, "%18s", "-");
        return;
    }
    fprintf(out, "%11.1f", cell_median(cell, FIELD_NS));
    if (best < 0 || results->kind[e] == KIND_PEER)
        fprintf(out, "%7s", e == best && best >= 0 ? "best" : "");
    else
        fprintf(out, " (%4.2f)", cell_ratio(cell, &results->cell[w][best][s], FIELD_NS));
}

static void print_row(const struct results *results, int w, int e, FILE *out)
{
    fprintf(out, "  %-18s", results->engine[e]);
    for (int s = 0; s < results->sizes; s++)
        if (size_measured(results, w, s))
            print_cell(results, w, e, s, out);
    for (int s = 0; w == STEADY && s < results->sizes; s++)
        if (size_measured(results, w, s))
            fprintf(out, " %9.1f", cell_worst_us(&results->cell[w][e][s]));
    fputc('\n', out);
}

void report_tables(const struct results *results, FILE *out)
{
    for (int w = 0; w < WORKLOADS; w++) {
        bool first = true;
        for (int e = 0; e < results->engines; e++) {
            if (!engine_measured(results, w, e))
                continue;
            if (first)
                print_heads(results, w, out);
            first = false;
            print_row(results, w, e, out);
        }
    }
}
