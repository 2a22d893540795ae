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
    const char *engine; /* the engine that we are compared with, or BEST_PEER; NULL: `limit` is in ns */
    double limit;
};

#define BEST_PEER "best peer"
enum { ROUNDS_ENOUGH = 5, K1 = 1000, K100 = 100000, M1 = 1000000, M10 = 10000000 };

static const struct target targets[] = {
    {CHURN, K100, FIELD_NS, "libev", 0.25},
    {CHURN, M1, FIELD_NS, "libev", 0.30},
    {CHURN, K100, FIELD_NS, "libuv", 0.07},
    {CHURN, M1, FIELD_NS, "libuv", 0.08},
    {HEARTBEAT, M1, FIELD_NS, "floor", 1.3},
    {CHURN, K1, FIELD_NS, "list-wheel", 1.30},
    {CHURN, K100, FIELD_NS, "list-wheel", 1.60},
    {CHURN, M1, FIELD_NS, "list-wheel", 1.25},
    {CHURN, M10, FIELD_NS, "list-wheel", 1.30},
    {CHURN, K1, FIELD_NS, "list-wheel-inline", 1.15},
    {CHURN, K100, FIELD_NS, "list-wheel-inline", 1.40},
    {CHURN, M1, FIELD_NS, "list-wheel-inline", 1.10},
    {CHURN, M10, FIELD_NS, "list-wheel-inline", 1.15},
    {MIX, K1, FIELD_NS, BEST_PEER, 0.80},
    {MIX, K100, FIELD_NS, BEST_PEER, 0.35},
    {MIX, M1, FIELD_NS, BEST_PEER, 0.75},
    {MIX, M10, FIELD_NS, BEST_PEER, 0.65},
    {EXPIRE_TICK, M1, FIELD_NS, "list-wheel", 0.10},
    {STEADY, K100, FIELD_NS, "list-wheel", 0.50},
    {STEADY, M1, FIELD_NS, "list-wheel", 0.11},
    {EXPIRE_TICK, M1, FIELD_NS, "libuv", 0.04},
    {STEADY, K100, FIELD_NS, "libuv", 0.13},
    {STEADY, K100, FIELD_WORST_US, "libuv", 0.25},
    {NEXT_FAR, 1, FIELD_NS, NULL, 6},
    {NEXT_FAR, 1, FIELD_NS, "heap4", 2.50},
    {EMPTY, 1, FIELD_NS, NULL, 1000},
    {CHURN, K100, FIELD_NS, "tickwheel-fixed", 1.10},
    {CHURN, M1, FIELD_NS, "tickwheel-fixed", 1.10},
    {MIX, K100, FIELD_NS, "tickwheel-fixed", 1.10},
    {MIX, M1, FIELD_NS, "tickwheel-fixed", 1.10},
    {STEADY, K100, FIELD_NS, "tickwheel-fixed", 1.10},
    {EXPIRE_TICK, M1, FIELD_NS, "tickwheel-fixed", 1.10},
};

static const struct cell *cell_of(const struct results *results, const char *name, enum workload workload,
                                  uint32_t timers)
{
    int engine = results_engine(results, name), size = results_size(results, timers);
    if (size >= 0 && strcmp(name, BEST_PEER) == 0)
        engine = results_best_peer(results, workload, size);
    return engine < 0 || size < 0 ? NULL : &results->cell[workload][engine][size];
}

/* The inlined list wheel is compared with the inlined Tickwheel. */
static const char *our_name(const struct target *target)
{
    bool inlined = target->engine != NULL && strcmp(target->engine, "list-wheel-inline") == 0;
    return inlined ? "tickwheel-inline" : "tickwheel";
}

static double measured(const struct results *results, const struct target *target)
{
    const struct cell *ours = cell_of(results, our_name(target), target->workload, target->timers);
    if (ours == NULL)
        return NAN;
    if (target->engine == NULL)
        return cell_median(ours, target->field);
    enum workload workload = strcmp(target->engine, "floor") == 0 ? FLOOR1 : target->workload;
    const struct cell *theirs = cell_of(results, target->engine, workload, target->timers);
    if (theirs == NULL)
        return NAN;
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
    const struct cell *ours = cell_of(results, "tickwheel", STEADY, timers);
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
