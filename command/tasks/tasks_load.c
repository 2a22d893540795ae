/* SPDX-License-Identifier: MIT
 *
 * The load of the queues: the summary, and the forecast with bars.
 */
#include "command.h"
#include "figures.h"
#include "json.h"
#include "part.h"
#include "printable.h"
#include "store_file.h"
#include "task_line.h"
#include "task_print.h"
#include "tasks_action.h"

#include <stdlib.h>

enum { BAR = 40, QUEUE_COLUMNS = 24, MS_NS = 1000000 };

/* ---- the summary ----------------------------------------------------------------------------------------- */

/* The loads of the queues, as they were at one moment. */
struct summary {
    const struct tasks *tasks;
    struct part part;
    bool marked; /* as restored, for people */
    uint64_t now_ms;
    size_t queues;
};

static bool print_load_json(const struct tw_store_load *load, FILE *out)
{
    json_t *object = json_object();
    json_put_bytes(object, "queue", tw_text(load->queue));
    json_object_set_new(object, "tasks", json_number(load->tasks));
    json_object_set_new(object, "waiting", json_number(load->waiting));
    json_object_set_new(object, "ready", json_number(load->ready));
    json_object_set_new(object, "leased", json_number(load->leased));
    json_object_set_new(object, "dead", json_number(load->dead));
    json_object_set_new(object, "paused", json_boolean(load->paused));
    json_object_set_new(object, "next_ms",
                        load->next_ms == TW_NEVER ? json_null() : json_number(load->next_ms));
    return json_line(object, out);
}

static void print_load(const struct tw_store_load *load, uint64_t now_ms, FILE *out)
{
    struct figure next = {"-"};
    if (load->ready > 0)
        next = (struct figure){"now"};
    else if (load->next_ms != TW_NEVER)
        next = figure_until(load->next_ms, now_ms);
    size_t used = printable_write(tw_text(load->queue), false, SIZE_MAX, out);
    fprintf(out, "%*s  %12s  %12s  %9s  %9s  %s%s\n", used < QUEUE_COLUMNS ? (int)(QUEUE_COLUMNS - used) : 0,
            "", figure_count(load->waiting).text, figure_count(load->ready).text,
            figure_count(load->leased).text, figure_count(load->dead).text, next.text,
            load->paused ? " (paused)" : "");
}

static void see_load(void *arg, const struct tw_store_load *load)
{
    struct summary *summary = arg;
    struct part *part = &summary->part;
    if (summary->tasks->options->json) {
        part->lost |= !print_load_json(load, part->out);
        return;
    }
    if (summary->queues++ == 0)
        fprintf(part->out, "%-24s  %12s  %12s  %9s  %9s  %s\n", "queue", "waiting", "ready", "leased", "dead",
                "next in");
    print_load(load, summary->now_ms, part->out);
}

static void print_mark(const char *path, FILE *out)
{
    fputs("marked as restored: no task is called until `tickwheel restore --store ", out);
    printable_word(path, out);
    fputs(" --go`\n", out);
}

static void read_loads(void *arg)
{
    struct summary *summary = arg;
    const struct tasks *tasks = summary->tasks;
    if (summary->marked)
        print_mark(tasks->options->store, summary->part.out);
    summary->part.failed = tw_store_loads(tasks->store, tasks->options->queue, see_load, summary) != 0;
}

int tasks_summary(const struct tasks *tasks)
{
    struct summary summary = {.tasks = tasks,
                              .part = {.read = read_loads, .arg = &summary},
                              .marked = !tasks->options->json && store_file_is_marked(tasks->store),
                              .now_ms = tw_store_now()};
    if (!part_write(&summary.part, tasks, "the tasks cannot be counted"))
        return COMMAND_WRONG;
    if (summary.queues == 0 && !tasks->options->json)
        puts("no tasks");
    return COMMAND_GOOD;
}

/* ---- the forecast ---------------------------------------------------------------------------------------- */

/* The forecasts of the queues, one after the other. */
struct outlook {
    const struct tasks *tasks;
    struct part part;
    size_t queue; /* the number of the next one */
    uint64_t *counts;
};

/* Prints the beginning of a step and its calls. */
static void print_step(uint64_t ms, uint64_t count, FILE *out)
{
    char text[DURATION_SIZE] = "now";
    if (ms > UINT64_MAX / MS_NS)
        snprintf(text, sizeof text, "centuries");
    else if (ms > 0)
        duration_print(ms * MS_NS, text);
    fprintf(out, "  %10s  %12s  ", text, figure_count(count).text);
}

/* Prints a row for each step that has calls. Steps without calls between two others are one line. */
static void print_steps(const struct tasks_options *options, const uint64_t *counts, FILE *out)
{
    uint64_t most = 0;
    bool gap = false;
    for (size_t i = 0; i < options->steps; i++)
        most = counts[i] > most ? counts[i] : most;
    for (size_t i = 0; i < options->steps; i++) {
        if (counts[i] == 0) {
            gap = true;
            continue;
        }
        if (gap)
            fprintf(out, "  %10s\n", "...");
        gap = false;
        print_step(i * options->step_ms, counts[i], out);
        figure_bar(counts[i], most, BAR, out);
    }
}

static void print_forecast(const struct tasks_options *options, const char *queue, const uint64_t *counts,
                           FILE *out)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < options->steps; i++)
        sum += counts[i];
    fputs("queue ", out);
    printable_write(tw_text(queue), false, SIZE_MAX, out);
    fprintf(out, ": %s call%s due in %s\n", figure_count(sum).text, sum == 1 ? "" : "s",
            figure_time(options->step_ms * options->steps, MS_NS).text);
    if (sum == 0)
        return;
    fprintf(out, "  %10s  %12s\n", "in", "calls");
    print_steps(options, counts, out);
}

static bool print_forecast_json(const struct tasks_options *options, const char *queue, const uint64_t *counts,
                                FILE *out)
{
    json_t *object = json_object(), *array = json_array();
    for (size_t i = 0; i < options->steps; i++)
        json_array_append_new(array, json_integer((json_int_t)counts[i]));
    json_put_bytes(object, "queue", tw_text(queue));
    json_object_set_new(object, "step_ms", json_integer((json_int_t)options->step_ms));
    json_object_set_new(object, "counts", array);
    return json_line(object, out);
}

static void read_outlook(void *arg)
{
    struct outlook *outlook = arg;
    const struct tasks *tasks = outlook->tasks;
    const struct tasks_options *options = tasks->options;
    struct part *part = &outlook->part;
    for (; outlook->queue < tasks->queues && !part_full(part); outlook->queue++) {
        const char *queue = tasks->queue[outlook->queue];
        if (tw_store_forecast(tasks->store, queue, options->step_ms, (uint32_t)options->steps,
                              outlook->counts) != 0)
            part->failed = true;
        else if (options->json)
            part->lost |= !print_forecast_json(options, queue, outlook->counts, part->out);
        else
            print_forecast(options, queue, outlook->counts, part->out);
    }
}

int tasks_forecast(const struct tasks *tasks)
{
    const struct tasks_options *options = tasks->options;
    struct outlook outlook = {.tasks = tasks,
                              .part = {.read = read_outlook, .arg = &outlook},
                              .counts = calloc(options->steps, sizeof outlook.counts[0])};
    bool good = outlook.counts != NULL;
    if (!good)
        complain("tickwheel tasks: there is no memory");
    else if (tasks->queues == 0 && !options->json)
        puts("no tasks");
    while (outlook.queue < tasks->queues && good)
        good = part_write(&outlook.part, tasks, "the tasks cannot be counted");
    free(outlook.counts);
    return good ? COMMAND_GOOD : COMMAND_WRONG;
}
