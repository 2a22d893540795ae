/* SPDX-License-Identifier: MIT
 *
 * Prints a plan for people, and the tables of levels for the documentation.
 */
#include "figures.h"
#include "plan_types.h"
#include "weight.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- words ----------------------------------------------------------------------------------------------- */

/* A number as text: a whole number from 100 on, three significant digits below. */
static struct figure amount(double number)
{
    struct figure figure;
    if (number < 100) {
        snprintf(figure.text, sizeof figure.text, "%.3g", number);
        return figure;
    }
    return number < 1e18 ? figure_count((uint64_t)llround(number)) : figure_short(UINT64_MAX);
}

static struct figure memory(double bytes)
{
    return figure_bytes(bytes, "bytes");
}

/* A number of ticks as a time; from a million years on, in millions of years. */
static struct figure time_of(uint64_t ticks, uint64_t tick_ns)
{
    double year_ns = 31557600e9, years = (double)ticks * (double)tick_ns / year_ns;
    struct figure figure;
    if (years < 1e6)
        return figure_time(ticks, (double)tick_ns);
    snprintf(figure.text, sizeof figure.text, "%.3g million years", years / 1e6);
    return figure;
}

/* Ticks as a whole number. The longest time saturates: a double cannot tell it from 2^64. */
static uint64_t whole(double ticks)
{
    return ticks < 18446744073709551616.0 ? (uint64_t)(ticks + 0.5) : UINT64_MAX;
}

static const char *overflow_text(const struct layout *layout)
{
    if (layout->turn == 0)
        return layout->overflow == TW_OVERFLOW_GROW ? "the wheel grows a level when one is needed"
                                                    : "none, the wheel reaches 2^64 ticks";
    return layout->overflow == TW_OVERFLOW_REJECT ? "refused with TW_ERANGE" : "they wait for another turn";
}

/* How a slot of level l is refiled. */
static struct figure refiling(const struct layout *layout, uint32_t l, uint64_t tick_ns)
{
    const struct layout_level *level = &layout->level[l];
    struct figure figure;
    if (l == 0 && layout->levels > 1)
        snprintf(figure.text, sizeof figure.text, "never: its timers fire");
    else if (l == 0)
        snprintf(figure.text, sizeof figure.text, "looked through on its tick");
    else if (level->slack == 0)
        snprintf(figure.text, sizeof figure.text, "at once, when reached");
    else
        snprintf(figure.text, sizeof figure.text, "over %.40s", time_of(level->slack, tick_ns).text);
    return figure;
}

/* ---- the plan -------------------------------------------------------------------------------------------- */

/* The levels that the wheel has but no timer reaches. */
static void print_unused(const struct layout *layout)
{
    size_t bytes = 0;
    for (uint32_t l = layout->used; l < layout->levels; l++)
        bytes += layout->level[l].bytes;
    if (bytes > 0)
        printf("%5" PRIu32 " more levels, which no timer reaches: %s\n", layout->levels - layout->used,
               memory((double)bytes).text);
}

static void print_levels(const struct plan *plan)
{
    static const char *const HEADS[] = {"level",       "slots", "granularity",
                                        "delays from", "to",    "a slot is refiled"};
    const struct layout *layout = &plan->chosen.layout;
    uint64_t tick_ns = plan->options->tick_ns;
    printf("%5s  %6s  %-12s  %-12s  %-16s  %-26s  memory\n", HEADS[0], HEADS[1], HEADS[2], HEADS[3], HEADS[4],
           HEADS[5]);
    for (uint32_t l = 0; l < layout->used; l++) {
        const struct layout_level *level = &layout->level[l];
        printf("%5" PRIu32 "  %6" PRIu32 "  %-12s  %-12s  %-16s  %-26s  %s\n", l, level->slots,
               time_of(level->span, tick_ns).text, time_of(level->from, tick_ns).text,
               level->to == TW_NEVER ? "the end of time" : time_of(level->to, tick_ns).text,
               refiling(layout, l, tick_ns).text, memory((double)level->bytes).text);
    }
    print_unused(layout);
    printf("Longer delays: %s.\n\n", overflow_text(layout));
}

static void print_bytes(const char *what, double bytes, double each, const char *remark)
{
    printf("  %-43s  %-10s  %.0f bytes each%s\n", what, memory(bytes).text, each, remark);
}

static void print_memory(const struct plan *plan)
{
    const struct plan_options *o = plan->options;
    double wheel = (double)plan->chosen.layout.bytes, redis = weight_redis_task(o->redis_payload);
    char tasks[48];
    printf("Memory\n  %-43s  %-10s  %s bytes\n", "the wheel", memory(wheel).text,
           figure_count(plan->chosen.layout.bytes).text);
    print_bytes("the timers, inside your objects", o->timers * WEIGHT_TIMER, WEIGHT_TIMER, "");
    printf("  %-43s  %s\n", "together", memory(wheel + o->timers * WEIGHT_TIMER).text);
    if (o->sched) {
        print_bytes("or the scheduler's tasks, run once, no key", o->timers * WEIGHT_TASK, WEIGHT_TASK,
                    ", the timer in it");
        print_bytes("or with a period", o->timers * WEIGHT_TASK_DETAILED, WEIGHT_TASK_DETAILED, "");
        print_bytes("or with a key of at most 24 bytes", o->timers * WEIGHT_TASK_KEYED, WEIGHT_TASK_KEYED,
                    ", plus 11 to 21 in a table");
    }
    snprintf(tasks, sizeof tasks, "or tasks in Redis with %.0f bytes of payload", o->redis_payload);
    if (o->redis)
        print_bytes(tasks, o->timers * redis, redis, ", measured with ids of 12 bytes");
    printf("\n");
}

static void print_row(const char *what, double average, double worst)
{
    printf("  %-28s %-14s %s\n", what, amount(average).text, amount(worst).text);
}

static void print_work(const struct plan *plan)
{
    const struct forecast *f = &plan->chosen.forecast;
    uint64_t tick_ns = plan->options->tick_ns;
    bool ring = plan->chosen.layout.levels == 1;
    printf("Work                           on average     on the worst tick\n");
    print_row("due on a tick", f->due, f->due_worst);
    print_row(ring ? "looked at on a tick" : "refiled on a tick, at most", f->refiled, f->worst);
    printf("  due in a second              %s\n", amount(f->due * 1e9 / (double)tick_ns).text);
    if (f->far > 0)
        printf("  beyond a turn of the top     %s, put back once a turn (%s)\n", amount(f->far).text,
               time_of(plan->chosen.layout.turn, tick_ns).text);
    printf("  all deadlines on one tick    at most %s refiled on any tick before it, %s due on it\n\n",
           amount(f->together).text, amount(plan->load.timers).text);
}

static void print_time(const struct plan *plan)
{
    const struct forecast *f = &plan->chosen.forecast;
    const struct layout *layout = &plan->chosen.layout;
    printf("Longest pause: about %s us, without your callbacks. This is all work of the worst tick, at\n"
           "%.4g ns a timer, measured with %s timers%s\n"
           "(%s, \"steady\").\n"
           "tw_wheel_poll_budget() bounds a call absolutely.\n",
           amount(f->pause_ns / 1e3).text, f->unit_ns, amount(f->measured).text,
           f->extrapolated ? ", fewer than yours" : "", FORECAST_SOURCE);
    printf("Wake-ups: a caller that sleeps until tw_wheel_next_bound() wakes on at most %.3g %% of the ticks.\n"
           "One far timer in an otherwise empty wheel wakes it at most once a level (%" PRIu32 ")%s.\n"
           "An empty wheel never wakes it.\n\n",
           f->wakes / 10, layout->levels, layout->turn == 0 ? "" : " and once a turn of the top");
}

static void print_presets(const struct plan *plan)
{
    printf(
        "Presets      memory of the wheel   refiled a tick   worst tick   longest pause   the longest delay\n");
    for (uint32_t i = 0; i < plan->presets; i++) {
        const struct plan_choice *c = &plan->preset[i];
        const struct forecast *f = &c->forecast;
        char pause[64];
        snprintf(pause, sizeof pause, "%s us", amount(f->pause_ns / 1e3).text);
        if (c->refuses)
            printf("  %-13s  %-20s  refused: TW_ERANGE beyond %s\n", c->name,
                   memory((double)c->layout.bytes).text, time_of(c->layout.range, plan->options->tick_ns).text);
        else
            printf("  %-13s  %-18s  %-15s  %-11s  %-14s  %s\n", c->name, memory((double)c->layout.bytes).text,
                   amount(f->refiled).text, amount(f->worst).text, pause,
                   f->far > 0 ? "waits several turns" : "taken");
    }
    printf("Recommended: %s. Why: %s.\n", plan->preset[plan->recommended].name, plan->reason);
}

void plan_print(const struct plan *plan)
{
    const struct plan_options *o = plan->options;
    printf("%s timer%s pending, ticks of %s, delays of up to %s (%s tick%s), pending for %s on average.\n",
           amount(plan->load.timers).text, o->timers > 1 ? "s" : "", time_of(1, o->tick_ns).text,
           time_of(plan->max_ticks, o->tick_ns).text, amount(plan->load.max).text,
           plan->max_ticks == 1 ? "" : "s",
           time_of(whole(plan->load.timers / plan->load.rate), o->tick_ns).text);
    printf("Wheel: %s\n\n", plan->chosen.name);
    print_levels(plan);
    print_memory(plan);
    print_work(plan);
    print_time(plan);
    print_presets(plan);
}

/* ---- tables of levels ------------------------------------------------------------------------------------ */

static void print_preset(const char *title, const struct tw_geometry *geometry, uint64_t tick_ns)
{
    struct layout layout;
    layout_make(&layout, geometry, UINT64_MAX);
    printf("\n%s: %s bytes. Longer delays: %s.\n\n", title, figure_count(layout.bytes).text,
           overflow_text(&layout));
    printf("| level | slots | granularity | delays from | to | a slot is refiled | bytes |\n"
           "|---|---|---|---|---|---|---|\n");
    for (uint32_t l = 0; l < layout.levels; l++) {
        const struct layout_level *level = &layout.level[l];
        printf("| %" PRIu32 " | %" PRIu32 " | %s | %s | %s | %s | %s |\n", l, level->slots,
               time_of(level->span, tick_ns).text, time_of(level->from, tick_ns).text,
               level->to == TW_NEVER ? "the end of time" : time_of(level->to, tick_ns).text,
               refiling(&layout, l, tick_ns).text, figure_count(level->bytes).text);
    }
}

void plan_print_levels(uint64_t tick_ns)
{
    static const struct {
        const char *title;
        struct tw_geometry geometry;
    } presets[] = {
        {"`TW_GEOMETRY_DEFAULT`", TW_GEOMETRY_DEFAULT},
        {"`TW_GEOMETRY_SMALL`", TW_GEOMETRY_SMALL},
        {"`TW_GEOMETRY_CLOCK`", TW_GEOMETRY_CLOCK},
        {"`TW_GEOMETRY_SIMPLE(1000)`", TW_GEOMETRY_SIMPLE(1000)},
        {"`TW_GEOMETRY_HASHED(512)`", TW_GEOMETRY_HASHED(512)},
        {"`TW_GEOMETRY_GROWING(64)`", TW_GEOMETRY_GROWING(64)},
    };
    printf("Ticks of %s. Where the delays of two levels overlap, the clock's position in its slot decides "
           "between them.\n",
           time_of(1, tick_ns).text);
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        print_preset(presets[i].title, &presets[i].geometry, tick_ns);
}
