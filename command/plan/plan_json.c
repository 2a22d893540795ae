/* SPDX-License-Identifier: MIT
 *
 * Prints a plan as one line of JSON. Times are in nanoseconds if the name ends in _ns, otherwise in ticks.
 */
#include "plan_types.h"
#include "weight.h"

#include <inttypes.h>
#include <stdio.h>

static void print_level(const struct layout_level *level)
{
    printf("{\"slots\": %" PRIu32 ", \"span\": %" PRIu64 ", \"from\": %" PRIu64 ", \"to\": %" PRIu64
           ", \"slack\": %" PRIu64 ", \"bytes\": %zu}",
           level->slots, level->span, level->from, level->to, level->slack, level->bytes);
}

static void print_layout(const struct layout *layout)
{
    printf("\"overflow\": \"%s\", \"wheel_bytes\": %zu, \"range\": %" PRIu64 ", \"turn\": %" PRIu64
           ", \"levels_used\": %" PRIu32 ", \"levels\": [",
           SHAPE_OVERFLOWS[layout->overflow], layout->bytes, layout->range, layout->turn, layout->used);
    for (uint32_t l = 0; l < layout->levels; l++) {
        printf("%s", l == 0 ? "" : ", ");
        print_level(&layout->level[l]);
    }
    printf("]");
}

static void print_forecast(const struct forecast *f)
{
    printf("\"due_per_tick\": %.9g, \"due_worst\": %.0f, \"refiled_per_tick\": %.9g, \"refiled_worst\": %.0f, "
           "\"refiled_together\": %.0f, \"far\": %.9g, \"unit_ns\": %.9g, \"unit_timers\": %.0f, "
           "\"unit_extrapolated\": "
           "%s, \"pause_ns\": %.9g, \"wakes_per_1000_ticks\": %.9g",
           f->due, f->due_worst, f->refiled, f->worst, f->together, f->far, f->unit_ns, f->measured,
           f->extrapolated ? "true" : "false", f->pause_ns, f->wakes);
}

static void print_choice(const struct plan_choice *choice)
{
    printf("{\"name\": \"%s\", \"refuses\": %s, ", choice->name, choice->refuses ? "true" : "false");
    print_layout(&choice->layout);
    printf(", ");
    print_forecast(&choice->forecast);
    printf("}");
}

static void print_bytes(const struct plan *plan)
{
    const struct plan_options *o = plan->options;
    double wheel = (double)plan->chosen.layout.bytes;
    printf("\"bytes\": {\"wheel\": %.0f, \"timers\": %.0f, \"total\": %.0f", wheel, o->timers * WEIGHT_TIMER,
           wheel + o->timers * WEIGHT_TIMER);
    if (o->sched)
        printf(", \"sched\": %.0f, \"sched_detailed\": %.0f", wheel + o->timers * WEIGHT_TASK,
               wheel + o->timers * WEIGHT_TASK_DETAILED);
    if (o->redis)
        printf(", \"redis\": %.0f", o->timers * weight_redis_task(o->redis_payload));
    printf("}");
}

void plan_json(const struct plan *plan)
{
    printf("{\"timers\": %.0f, \"tick_ns\": %" PRIu64 ", \"max_ticks\": %" PRIu64 ", \"rate_per_tick\": %.9g, ",
           plan->load.timers, plan->options->tick_ns, plan->max_ticks, plan->load.rate);
    print_bytes(plan);
    printf(", \"chosen\": ");
    print_choice(&plan->chosen);
    printf(", \"presets\": [");
    for (uint32_t i = 0; i < plan->presets; i++) {
        printf("%s", i == 0 ? "" : ", ");
        print_choice(&plan->preset[i]);
    }
    printf("], \"recommended\": \"%s\", \"source\": \"%s\"}\n", plan->preset[plan->recommended].name,
           FORECAST_SOURCE);
}
