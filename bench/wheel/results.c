/* SPDX-License-Identifier: MIT
 *
 * Medians and ratios. A ratio is taken within a round, in which both sides met the same conditions. The
 * result is the median of these ratios.
 */
#include "results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int results_engine(const struct results *results, const char *name)
{
    for (int e = 0; e < results->engines; e++)
        if (strcmp(results->engine[e], name) == 0)
            return e;
    return -1;
}

int results_size(const struct results *results, uint32_t timers)
{
    for (int s = 0; s < results->sizes; s++)
        if (results->size[s] == timers)
            return s;
    return -1;
}

bool cell_measured(const struct cell *cell)
{
    for (int r = 0; r < ROUNDS_MAX; r++)
        if (cell->has[r])
            return true;
    return false;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, int count)
{
    if (count == 0)
        return NAN;
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

double cell_median(const struct cell *cell, enum field field)
{
    double values[ROUNDS_MAX];
    int count = 0;
    for (int r = 0; r < ROUNDS_MAX; r++)
        if (cell->has[r])
            values[count++] = cell->value[field][r];
    return median(values, count);
}

double cell_ratio(const struct cell *cell, const struct cell *to, enum field field)
{
    double values[ROUNDS_MAX];
    int count = 0;
    for (int r = 0; r < ROUNDS_MAX; r++)
        if (cell->has[r] && to->has[r] && to->value[field][r] > 0)
            values[count++] = cell->value[field][r] / to->value[field][r];
    return median(values, count);
}

void cell_take_ticks(struct cell *cell, const float *tick_ns, uint64_t ticks)
{
    bool first = cell->tick_ns == NULL;
    if (first)
        cell->tick_ns = bench_alloc(ticks * sizeof *cell->tick_ns);
    cell->ticks = ticks;
    for (uint64_t i = 0; i < ticks; i++)
        if (first || tick_ns[i] < cell->tick_ns[i])
            cell->tick_ns[i] = tick_ns[i];
}

double cell_worst_us(const struct cell *cell)
{
    float worst = 0;
    for (uint64_t i = 0; i < cell->ticks; i++)
        if (cell->tick_ns[i] > worst)
            worst = cell->tick_ns[i];
    return cell->tick_ns == NULL ? NAN : (double)worst / 1000;
}

int results_best_peer(const struct results *results, enum workload workload, int size)
{
    int best = -1;
    for (int e = 0; e < results->engines; e++) {
        const struct cell *cell = &results->cell[workload][e][size];
        if (results->kind[e] != KIND_PEER || !cell_measured(cell))
            continue;
        if (best < 0 ||
            cell_median(cell, FIELD_NS) < cell_median(&results->cell[workload][best][size], FIELD_NS))
            best = e;
    }
    return best;
}

/* ---- results of other processes -------------------------------------------------------------------------- */

static int workload_named(const char *name)
{
    for (int w = 0; w < WORKLOADS; w++)
        if (strcmp(workload_names[w], name) == 0)
            return w;
    return -1;
}

/* The engine with this name. A new name becomes a peer. */
static int engine_for(struct results *results, const char *name)
{
    int e = results_engine(results, name);
    if (e >= 0 || results->engines == ENGINES_MAX)
        return e;
    char *copy = bench_alloc(strlen(name) + 1);
    strcpy(copy, name);
    results->engine[results->engines] = copy;
    results->kind[results->engines] = KIND_PEER;
    return results->engines++;
}

/* Merges one line as report.c writes it. Returns false if the line is not valid. */
static bool merge_line(struct results *results, const char *line)
{
    char workload[32], engine[32], worst[32];
    unsigned timers, round;
    double ns, bytes;
    if (sscanf(line, "%31s %31s %u %u %lf %31s %lf", workload, engine, &timers, &round, &ns, worst, &bytes) !=
        7)
        return false;
    int w = workload_named(workload), e = engine_for(results, engine), s = results_size(results, timers);
    if (w < 0 || e < 0 || round >= ROUNDS_MAX || isnan(ns))
        return false;
    if (s < 0)
        return true; /* this run leaves out the size */
    struct cell *cell = &results->cell[w][e][s];
    cell->has[round] = true;
    cell->value[FIELD_NS][round] = ns;
    cell->value[FIELD_WORST_US][round] = strtod(worst, NULL); /* "-" means not measured, and gives 0 */
    cell->value[FIELD_BYTES][round] = bytes;
    return true;
}

void results_merge(struct results *results, const char *path)
{
    char line[256];
    FILE *in = fopen(path, "r");
    if (in == NULL) {
        fprintf(stderr, "wheel_bench: cannot open %s\n", path);
        exit(2);
    }
    for (int number = 1; fgets(line, sizeof line, in) != NULL; number++) {
        if (line[0] != '#' && strncmp(line, "workload\t", 9) != 0 && !merge_line(results, line)) {
            fprintf(stderr, "wheel_bench: %s:%d: not a line of raw results\n", path, number);
            exit(2);
        }
    }
    fclose(in);
}
