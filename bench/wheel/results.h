/* SPDX-License-Identifier: MIT
 *
 * All measurements: a cell for each workload, engine and size, with a value for each round.
 */
#ifndef TW_BENCH_RESULTS_H
#define TW_BENCH_RESULTS_H

#include "bench.h"

#include <stdio.h>

enum { ROUNDS_MAX = 16, SIZES_MAX = 8, ENGINES_MAX = 24 };

/* The measured values of a run. */
enum field { FIELD_NS, FIELD_WORST_US, FIELD_BYTES, FIELDS };

struct cell {
    double value[FIELDS][ROUNDS_MAX];
    bool has[ROUNDS_MAX];
    float *tick_ns; /* steady: for each tick, its shortest time in any round */
    uint64_t ticks;
    uint64_t refiled_most, refiled_rule;
    const char *skipped; /* the reason why the cell is empty */
};

struct results {
    uint32_t
        size[SIZES_MAX]; /* numbers of timers; the first is 1, for the workloads that need only one timer */
    int sizes;
    const char *engine[ENGINES_MAX];
    enum kind kind[ENGINES_MAX];
    int engines;
    struct cell cell[WORKLOADS][ENGINES_MAX][SIZES_MAX];
};

/* The index of a name or size, or -1. */
int results_engine(const struct results *results, const char *name);
int results_size(const struct results *results, uint32_t timers);

bool cell_measured(const struct cell *cell);
/* The median over the rounds, or NAN if nothing was measured. */
double cell_median(const struct cell *cell, enum field field);
/* The median of the ratios of two cells, round by round, or NAN if no round has both. */
double cell_ratio(const struct cell *cell, const struct cell *to, enum field field);

/* Stores the time of each tick of a steady run. */
void cell_take_ticks(struct cell *cell, const float *tick_ns, uint64_t ticks);
/* The time of the slowest tick, or NAN if it was not measured. Every round does the same work on the same
 * tick, and the best round of each tick counts. So interrupts and other processes do not count. */
double cell_worst_us(const struct cell *cell);

/* The peer with the lowest median, or -1 if no peer was measured. */
int results_best_peer(const struct results *results, enum workload workload, int size);

/* Reads raw results of another process. Exits with a message if they cannot be read. */
void results_merge(struct results *results, const char *path);

/* ---- report.c ---- */

/* Writes wheel.tsv, wheel-raw.tsv and wheel-skipped.tsv into a folder. */
void report_files(const struct results *results, const char *folder);
/* Prints a table for each workload. */
void report_tables(const struct results *results, FILE *out);

/* ---- targets.c ---- */

/* Prints the targets beside the measured values. Returns the number of missed targets. */
int report_targets(const struct results *results, int rounds, FILE *out);

#endif
