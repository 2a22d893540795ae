/* SPDX-License-Identifier: MIT
 *
 * What a replay has found out, for people and for programs.
 */
#ifndef COMMAND_REPORT_H
#define COMMAND_REPORT_H

#include "bins.h"
#include "lateness.h"
#include "model.h"
#include "shape.h"
#include "trace.h"

struct findings {
    const struct trace *trace;
    const struct shape *shape;
    uint32_t levels; /* of the wheel at the end of the run: a growing one has more than its shape says */
    uint64_t operations, adds, moves, cancels, stale, fired;
    uint64_t most_refiled; /* on one tick */
    uint64_t pending_peak;
    double ns_per_op;
    bool checked; /* the verdict stands */
    struct verdict verdict;
    struct bins delays;
    struct lateness recorded;
};

/* True when nothing was found wrong. */
bool findings_good(const struct findings *findings);

void findings_print(const struct findings *findings, FILE *out);

/* One JSON object on one line; what was not checked is null. */
void findings_print_json(const struct findings *findings, FILE *out);

#endif
