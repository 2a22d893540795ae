/* SPDX-License-Identifier: MIT
 *
 * What a replay has found out, for people and for programs.
 */
#ifndef TW_TOOLS_REPORT_H
#define TW_TOOLS_REPORT_H

#include "histogram.h"
#include "lateness.h"
#include "model.h"
#include "shape.h"
#include "trace.h"

struct tw_findings {
    const struct tw_trace *trace;
    const struct tw_shape *shape;
    uint32_t levels; /* of the wheel at the end of the run: a growing one has more than its shape says */
    uint64_t operations, adds, moves, cancels, stale, fired;
    uint64_t most_refiled; /* on one tick */
    uint64_t pending_peak;
    double ns_per_op;
    bool checked; /* the verdict stands */
    struct tw_verdict verdict;
    struct tw_histogram delays;
    struct tw_lateness recorded;
};

/* True when nothing was found wrong. */
bool tw_findings_good(const struct tw_findings *findings);

void tw_findings_print(const struct tw_findings *findings, FILE *out);

/* One JSON object on one line; what was not checked is null. */
void tw_findings_print_json(const struct tw_findings *findings, FILE *out);

#endif
