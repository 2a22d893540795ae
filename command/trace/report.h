/* SPDX-License-Identifier: MIT
 *
 * The results of a replay, printed for people or as JSON.
 */
#ifndef COMMAND_REPORT_H
#define COMMAND_REPORT_H

#include "bins.h"
#include "lateness.h"
#include "model.h"
#include "shape.h"
#include "record.h"

struct findings {
    const struct trace *trace;
    const struct shape *shape;
    uint32_t levels; /* of the wheel at the end of the run; a growing wheel may have more than its shape */
    uint64_t operations, adds, moves, cancels, stale, fired;
    uint64_t most_refiled; /* on one tick */
    uint64_t pending_peak;
    double ns_per_op;
    struct verdict verdict;
    struct bins delays;
    struct lateness recorded;
};

/* True if no error was found. */
bool findings_good(const struct findings *findings);

/* Prints the line with the trace's name and source. */
void findings_print_trace(const struct trace *trace, FILE *out);

void findings_print(const struct findings *findings, FILE *out);

/* Prints one JSON object on one line. */
void findings_print_json(const struct findings *findings, FILE *out);

#endif
