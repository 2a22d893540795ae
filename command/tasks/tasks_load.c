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
#include <string.h>

enum { BAR = 40, QUEUE_COLUMNS = 24, MS_NS = 1000000 };

/* ---- the summary ----------------------------------------------------------------------------------------- */

/* The loads of the queues, as they were at one moment. The names are copies. */
struct loads {
    struct tw_store_load *load;
    size_t count, room;
    bool lost; /* there was no memory for one */
    uint64_t now_ms;
};

static void keep_load(void *arg, const struct tw_store_load *load)
{
    struct loads *loads = arg;
    if (loads->count == loads->room) {
        size_t room = loads->room * 2 + 8;
        struct tw_store_load *more = realloc(loads->load, room * sizeof *more);
        loads->lost |= more == NULL;
        if (more == NULL)
            return;
        loads->load = more;
        loads->room = room;
    }
    char *name = strdup(load->queue);
    loads->lost |= name == NULL;
    if (name == NULL)
        return;
    loads->load[loads->count] = *load;
    loads->load[loads->count++].queue = name;
}

/* Reads the loads first and prints them afterwards: a transaction must not last as long as somebody reads our
 * output. Returns false after it has printed an error. */
static bool read_loads(const struct tasks *tasks, struct loads *loads)
{
    *loads = (struct loads){.now_ms = tw_store_now()};
    if (tw_store_loads(tasks->store, tasks->options->queue, keep_load, loads) != 0)
        tasks_failed(tasks, "the tasks cannot be counted");
    else if (loads->lost)
        complain("tickwheel tasks: there is no memory");
    else
        return true;
    return false;
}

static void free_loads(struct loads *loads)
{
    for (size_t i = 0; i < loads->count; i++)
        free((char *)loads->load[i].queue);
    free(loads->load);
}

static bool print_load_json(const struct tw_store_load *load)
{
    json_t *object = json_object();
    json_put_bytes(object, "queue", tw_text(load->queue));
    json_object_set_new(object, "waiting", json_integer((json_int_t)load->waiting));
    json_object_set_new(object, "ready", json_integer((json_int_t)load->ready));
    json_object_set_new(object, "leased", json_integer((json_int_t)load->leased));
    json_object_set_new(object, "dead", json_integer((json_int_t)load->dead));
    json_object_set_new(object, "paused", json_boolean(load->paused));
    json_object_set_new(object, "next_ms",
                        load->next_ms == TW_NEVER ? json_null() : json_integer((json_int_t)load->next_ms));
    return json_line(object, stdout);
}

static void print_load(const struct tw_store_load *load, uint64_t now_ms)
{
    struct figure next = {"-"};
    if (load->ready > 0)
        next = (struct figure){"now"};
    else if (load->next_ms != TW_NEVER)
        next = figure_until(load->next_ms, now_ms);
    size_t used = printable_write(tw_text(load->queue), false, SIZE_MAX, stdout);
    printf("%*s  %12s  %12s  %9s  %9s  %s%s\n", used < QUEUE_COLUMNS ? (int)(QUEUE_COLUMNS - used) : 0, "",
           figure_count(load->waiting).text, figure_count(load->ready).text, figure_count(load->leased).text,
           figure_count(load->dead).text, next.text, load->paused ? " (paused)" : "");
}

static void print_loads(const struct loads *loads)
{
    if (loads->count == 0)
        puts("no tasks");
    else
        printf("%-24s  %12s  %12s  %9s  %9s  %s\n", "queue", "waiting", "ready", "leased", "dead", "next in");
    for (size_t i = 0; i < loads->count; i++)
        print_load(&loads->load[i], loads->now_ms);
}

static void tell_of_mark(const struct tasks *tasks)
{
    if (!store_file_is_marked(tasks->store))
        return;
    fputs("marked as restored: no task is called until `tickwheel restore --store ", stdout);
    printable_word(tasks->options->store, stdout);
    puts(" --go`");
}

int tasks_summary(const struct tasks *tasks)
{
    struct loads loads;
    bool good = read_loads(tasks, &loads);
    if (good && !tasks->options->json) {
        tell_of_mark(tasks);
        print_loads(&loads);
    }
    for (size_t i = 0; i < loads.count && good && tasks->options->json; i++)
        print_load_json(&loads.load[i]);
    free_loads(&loads);
    return good ? COMMAND_GOOD : COMMAND_WRONG;
}

/* ---- the forecast ---------------------------------------------------------------------------------------- */

/* The forecasts of the queues, one after the other. */
struct outlook {
    const struct tasks *tasks;
    struct part part;
    size_t queue; /* the number of the next one */
    uint64_t *counts;
};

static void print_bar(uint64_t count, uint64_t most, FILE *out)
{
    int marks = (int)((double)count / (double)most * BAR + 0.5);
    do
        putc('#', out);
    while (--marks > 0);
}

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
        print_bar(counts[i], most, out);
        putc('\n', out);
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
