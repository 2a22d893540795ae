/* SPDX-License-Identifier: MIT
 *
 * The targets: Tickwheel's promises about its speed, as ratios within one run, beside the measured ratios.
 */
#include "results.h"

#include <math.h>
#include <string.h>

struct target {
    enum workload workload;
    uint32_t timers;
    enum field field;
    const char *engine; /* the engine that we are compared with; NULL: `limit` is in ns */
    double limit;
};

enum { ROUNDS_ENOUGH = 5, K1 = 1000, K100 = 100000, M1 = 1000000 };

static const struct target targets[] = {
    {CHURN, K100, FIELD_NS, "libev", 0.25},
    {CHURN, M1, FIELD_NS, "libev", 0.30},
    {CHURN, K100, FIELD_NS, "libuv", 0.07},
    {CHURN, M1, FIELD_NS, "libuv", 0.08},
    {HEARTBEAT, M1, FIELD_NS, "floor", 1.3},
    {EXPIRE_TICK, M1, FIELD_NS, "list-wheel", 0.60},
    {EXPIRE_TICK, M1, FIELD_NS, "libuv", 0.04},
    {STEADY, K100, FIELD_NS, "libuv", 0.13},
    {STEADY, K100, FIELD_WORST_US, "libuv", 0.25},
    {NEXT_FAR, 1, FIELD_NS, NULL, 6},
    {EMPTY, 1, FIELD_NS, NULL, 1000},
    {CHURN, K100, FIELD_NS, "tickwheel-fixed", 1.10},
    {CHURN, M1, FIELD_NS, "tickwheel-fixed", 1.10},
    {MIX, K100, FIELD_NS, "tickwheel-fixed", 1.10},
    {MIX, M1, FIELD_NS, "tickwheel-fixed", 1.10},
    {STEADY, K100, FIELD_NS, "tickwheel-fixed", 1.10},
    {EXPIRE_TICK, M1, FIELD_NS, "tickwheel-fixed", 1.10},
};

static const struct cell *our_cell(const struct results *results, enum workload workload, uint32_t timers)
{
    int ours = results_engine(results, "tickwheel"), size = results_size(results, timers);
    return ours < 0 || size < 0 ? NULL : &results->cell[workload][ours][size];
}

static double measured(const struct results *results, const struct target *target)
{
    const struct cell *ours = our_cell(results, target->workload, target->timers);
    if (ours == NULL)
        return NAN;
    if (target->engine == NULL)
        return cell_median(ours, target->field);
    int other = results_engine(results, target->engine);
    if (other < 0)
        return NAN;
    enum workload workload = strcmp(target->engine, "floor") == 0 ? FLOOR1 : target->workload;
    const struct cell *theirs = &results->cell[workload][other][results_size(results, target->timers)];
    if (target->field == FIELD_WORST_US)
        return cell_worst_us(ours) / cell_worst_us(theirs);
    return cell_ratio(ours, theirs, target->field);
}

static const char *verdict(double value, double limit)
{
    return isnan(value) ? "not measured" : value <= limit ? "PASS" : "MISS";
}

static void print_target(const struct results *results, const struct target *target, FILE *out)
{
    char what[80];
    double value = measured(results, target);
    snprintf(what, sizeof what, "%s%s, %u %s%s%s", workload_names[target->workload],
             target->field == FIELD_WORST_US ? " (worst tick)" : "", target->timers,
             target->timers == 1 ? "timer" : "timers", target->engine != NULL ? ", of " : ", ns",
             target->engine != NULL ? target->engine : "");
    fprintf(out, "  %-52s at most %7.2f  measured ", what, target->limit);
    if (isnan(value))
        fprintf(out, "      -");
    else
        fprintf(out, "%7.*f", target->engine == NULL ? 1 : 3, value);
    fprintf(out, "  %s\n", verdict(value, target->limit));
}

/* Prints the worst tick again, in refiled timers instead of time. */
static int print_refiled(const struct results *results, uint32_t timers, FILE *out)
{
    char what[80];
    const struct cell *ours = our_cell(results, STEADY, timers);
    if (ours == NULL || !cell_measured(ours))
        return 0;
    /* A slot with few timers is refiled at once: 32 is the constant of the pacing rule. */
    double rule = ours->refiled_rule > 32 ? (double)ours->refiled_rule : 32;
    snprintf(what, sizeof what, "steady, %u timers, refiled on one tick", timers);
    fprintf(out, "  %-52s at most %7.0f  measured %7.0f  %s\n", what, rule, (double)ours->refiled_most,
            verdict((double)ours->refiled_most, rule));
    return (double)ours->refiled_most > rule;
}

int report_targets(const struct results *results, int rounds, FILE *out)
{
    int missed = 0;
    fprintf(out, "\ntargets (tickwheel against the engine named, medians of the ratios within each round%s)\n",
            rounds < ROUNDS_ENOUGH ? "; with so few rounds an indication, no more" : "");
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        print_target(results, &targets[i], out);
        missed += measured(results, &targets[i]) > targets[i].limit;
    }
    missed += print_refiled(results, K100, out);
    missed += print_refiled(results, M1, out);
    return missed;
}
