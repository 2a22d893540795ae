/* SPDX-License-Identifier: MIT */
#include "report.h"

#include "figures.h"
#include "printable.h"

#include <inttypes.h>

/* ---- for programs --------------------------------------------------------------------------------------- */

static void print_member(const char *name, uint64_t value, FILE *out)
{
    fprintf(out, "\"%s\": %" PRIu64 ", ", name, value);
}

void findings_print_json(const struct findings *f, FILE *out)
{
    fputc('{', out);
    print_member("operations", f->operations, out);
    print_member("adds", f->adds, out);
    print_member("cancels", f->cancels, out);
    print_member("moves", f->moves, out);
    print_member("fired", f->fired, out);
    print_member("early", f->verdict.early, out);
    print_member("late", f->verdict.late, out);
    print_member("unfired", f->verdict.unfired, out);
    print_member("out_of_order", f->verdict.out_of_order, out);
    fprintf(out, "\"ns_per_op\": %.2f, ", f->ns_per_op);
    print_member("max_filed_per_tick", f->most_refiled, out);
    fprintf(out, "\"pending_peak\": %" PRIu64 "}\n", f->pending_peak);
}

/* ---- for people ----------------------------------------------------------------------------------------- */

static void print_line(const char *name, uint64_t value, const char *remark, FILE *out)
{
    fprintf(out, "%-14s %14s", name, figure_count(value).text);
    fprintf(out, "%s%s\n", remark[0] != '\0' ? "  " : "", remark);
}

void findings_print_trace(const struct trace *trace, FILE *out)
{
    fputs("trace          ", out);
    printable_write(tw_text(trace->name), false, SIZE_MAX, out);
    fputs(trace->source[0] != '\0' ? ": " : "", out);
    printable_write(tw_text(trace->source), false, SIZE_MAX, out);
    fputc('\n', out);
}

static void print_head(const struct findings *f, FILE *out)
{
    const struct trace *trace = f->trace;
    findings_print_trace(trace, out);
    fprintf(out, "ticks          %" PRIu64 " to %" PRIu64, trace->first_tick, trace->last_tick);
    if (trace->tick_ns > 0)
        fprintf(out, ", %s each: %s", figure_time(1, trace->tick_ns).text,
                figure_time(trace->last_tick - trace->first_tick, trace->tick_ns).text);
    fprintf(out, "\nwheel          %s (%" PRIu32 " level%s)\n\n", f->shape->name, f->levels,
            f->levels == 1 ? "" : "s");
}

static void print_counts(const struct findings *f, FILE *out)
{
    print_line("operations", f->operations, "", out);
    print_line("  added", f->adds, "", out);
    print_line("  moved", f->moves, "pending timers that got another deadline", out);
    print_line("  cancelled", f->cancels, "", out);
    print_line("  stale cancels", f->stale, "of timers that were not pending: no effect", out);
    print_line("fired", f->fired, "", out);
    print_line("  early", f->verdict.early, "before the deadline", out);
    print_line("  late", f->verdict.late, "after the deadline", out);
    print_line("  unfired", f->verdict.unfired, "due, but never fired", out);
    print_line("  out of order", f->verdict.out_of_order, "overtook another timer", out);
    fprintf(out, "%-14s %14.1f  nanoseconds for each operation, firing and refiling included\n", "ns per op",
            f->ns_per_op);
    print_line("most refiled", f->most_refiled, "the most timers that the wheel refiled in one tick", out);
    print_line("pending peak", f->pending_peak, "the most timers that were pending at the same time", out);
}

/* Compares the lateness of the recorded system with that of this wheel. */
static void print_recorded(const struct findings *f, FILE *out)
{
    const struct lateness *recorded = &f->recorded;
    double tick_ns = f->trace->tick_ns;
    fprintf(out, "\nrecorded       the recorded system fired %s timer%s, %s of them late:\n",
            figure_count(recorded->fired).text, recorded->fired == 1 ? "" : "s",
            figure_count(recorded->late).text);
    fprintf(out, "               %.2f ticks on average, max %s", recorded->sum / (double)recorded->fired,
            figure_count(recorded->max).text);
    if (tick_ns > 0)
        fprintf(out, " (%s)", figure_time(recorded->max, tick_ns).text);
    fprintf(out, "; this wheel: %s late\n", figure_count(f->verdict.late).text);
}

static void print_good(const struct findings *f, FILE *out)
{
    fprintf(out, "All %s timers that became due fired exactly on their tick and in the right order",
            figure_count(f->fired).text);
    fprintf(out, "; the other %s were cancelled before. An operation took %.0f ns.\n",
            figure_count(f->cancels).text, f->ns_per_op);
}

static void print_summary(const struct findings *f, FILE *out)
{
    fputc('\n', out);
    if (f->operations == 0)
        fprintf(out, "The trace has no operations, so there was nothing to do.\n");
    else if (findings_good(f))
        print_good(f, out);
    else
        fprintf(out, "WRONG: this wheel did not fire every timer on its tick and in order (see above).\n");
}

bool findings_good(const struct findings *f)
{
    const struct verdict *verdict = &f->verdict;
    return verdict->early + verdict->late + verdict->unfired + verdict->out_of_order == 0;
}

void findings_print(const struct findings *f, FILE *out)
{
    print_head(f, out);
    print_counts(f, out);
    if (f->delays.total > 0) {
        fprintf(out, "\ndelays         how far ahead each timer was filed or moved\n");
        bins_print(&f->delays, "ticks", "timers", f->trace->tick_ns, out);
    }
    if (f->recorded.fired > 0)
        print_recorded(f, out);
    print_summary(f, out);
}
