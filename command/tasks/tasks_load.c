/* SPDX-License-Identifier: MIT
 *
 * The load of the queues: the summary, and the forecast with bars.
 */
#include "command.h"
#include "figures.h"
#include "json.h"
#include "printable.h"
#include "task_line.h"
#include "task_print.h"
#include "tasks_action.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BAR = 40, QUEUE_COLUMNS = 24, MS_NS = 1000000 };

/* ---- the summary ----------------------------------------------------------------------------------------- */

/* The numbers of a queue. Running tasks are among the tasks that were due already. */
struct load {
    uint64_t now_ms, next_ms; /* next_ms: TW_NEVER if no task waits or runs */
    int64_t pending, dead;    /* pending: waiting or running */
    int paused;               /* whether it is */
    uint64_t running, overdue;
};

static void count_due(void *arg, const struct tw_store_task *task)
{
    struct load *load = arg;
    load->running += task->state == TW_STORE_RUNNING;
    load->overdue += task->state == TW_STORE_WAITING;
}

/* Reads the numbers of a queue. Returns false after it has printed an error. */
static bool read_load(const struct tasks *tasks, const char *queue, struct load *load)
{
    *load = (struct load){.now_ms = tw_store_now(), .next_ms = TW_NEVER};
    struct tw_store_range due = {.to_ms = load->now_ms};
    load->pending = tw_store_count(tasks->store, queue, false);
    load->dead = tw_store_count(tasks->store, queue, true);
    load->paused = tw_store_is_paused(tasks->store, queue);
    bool good = load->pending >= 0 && load->dead >= 0 && load->paused >= 0 &&
                tw_store_scan(tasks->store, queue, &due, count_due, load) >= 0 &&
                tw_store_next(tasks->store, queue, &load->next_ms) == 0;
    if (!good)
        tasks_failed(tasks, "the tasks cannot be counted");
    return good;
}

static uint64_t waiting(const struct load *load)
{
    uint64_t pending = (uint64_t)load->pending;
    return pending > load->running ? pending - load->running : 0;
}

static bool print_load_json(const char *queue, const struct load *load)
{
    json_t *object = json_object();
    json_put_bytes(object, "queue", queue, strlen(queue));
    json_object_set_new(object, "waiting", json_integer((json_int_t)waiting(load)));
    json_object_set_new(object, "overdue", json_integer((json_int_t)load->overdue));
    json_object_set_new(object, "running", json_integer((json_int_t)load->running));
    json_object_set_new(object, "dead", json_integer((json_int_t)load->dead));
    json_object_set_new(object, "paused", json_boolean(load->paused));
    json_object_set_new(object, "next_ms",
                        load->next_ms == TW_NEVER ? json_null() : json_integer((json_int_t)load->next_ms));
    return json_line(object, stdout);
}

static void print_load(const char *queue, const struct load *load)
{
    struct figure next = {"-"};
    if (load->next_ms != TW_NEVER)
        next = figure_until(load->next_ms, load->now_ms);
    size_t used = printable_write(queue, strlen(queue), false, SIZE_MAX, stdout);
    printf("%*s  %12s  %12s  %9s  %9s  %s%s\n", used < QUEUE_COLUMNS ? (int)(QUEUE_COLUMNS - used) : 0, "",
           figure_count(waiting(load)).text, figure_count(load->overdue).text, figure_count(load->running).text,
           figure_count((uint64_t)load->dead).text, next.text, load->paused ? " (paused)" : "");
}

int tasks_summary(const struct tasks *tasks)
{
    if (!tasks->options->json && tw_store_is_restored(tasks->store) == 1)
        printf("marked as restored: no task is called until `tickwheel restore --store %s --go`\n",
               tasks->options->store);
    if (tasks->queues == 0 && !tasks->options->json)
        puts("no tasks");
    for (size_t i = 0; i < tasks->queues; i++) {
        struct load load;
        if (!read_load(tasks, tasks->queue[i], &load))
            return COMMAND_WRONG;
        if (tasks->options->json) {
            print_load_json(tasks->queue[i], &load);
            continue;
        }
        if (i == 0)
            printf("%-24s  %12s  %12s  %9s  %9s  %s\n", "queue", "waiting", "overdue", "running", "dead",
                   "next due in");
        print_load(tasks->queue[i], &load);
    }
    return COMMAND_GOOD;
}

/* ---- the forecast ---------------------------------------------------------------------------------------- */

static void print_bar(uint64_t count, uint64_t most)
{
    int marks = (int)((double)count / (double)most * BAR + 0.5);
    do
        putchar('#');
    while (--marks > 0);
}

/* Prints the beginning of a step and its calls. */
static void print_step(uint64_t ms, uint64_t count)
{
    char text[DURATION_SIZE] = "now";
    if (ms > UINT64_MAX / MS_NS)
        snprintf(text, sizeof text, "centuries");
    else if (ms > 0)
        duration_print(ms * MS_NS, text);
    printf("  %10s  %12s  ", text, figure_count(count).text);
}

/* Prints a row for each step that has calls. Steps without calls between two others are one line. */
static void print_steps(const struct tasks_options *options, const uint64_t *counts)
{
    uint64_t most = 0;
    bool gap = false;
    for (uint32_t i = 0; i < options->steps; i++)
        most = counts[i] > most ? counts[i] : most;
    for (uint32_t i = 0; i < options->steps; i++) {
        if (counts[i] == 0) {
            gap = true;
            continue;
        }
        if (gap)
            printf("  %10s\n", "...");
        gap = false;
        print_step(i * options->step_ms, counts[i]);
        print_bar(counts[i], most);
        putchar('\n');
    }
}

static void print_forecast(const struct tasks_options *options, const char *queue, const uint64_t *counts)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < options->steps; i++)
        sum += counts[i];
    fputs("queue ", stdout);
    printable_write(queue, strlen(queue), false, SIZE_MAX, stdout);
    printf(": %s call%s due in %s\n", figure_count(sum).text, sum == 1 ? "" : "s",
           figure_time(options->step_ms * options->steps, MS_NS).text);
    if (sum == 0)
        return;
    printf("  %10s  %12s\n", "in", "calls");
    print_steps(options, counts);
}

static void print_forecast_json(const struct tasks_options *options, const char *queue, const uint64_t *counts)
{
    json_t *object = json_object(), *array = json_array();
    for (uint32_t i = 0; i < options->steps; i++)
        json_array_append_new(array, json_integer((json_int_t)counts[i]));
    json_put_bytes(object, "queue", queue, strlen(queue));
    json_object_set_new(object, "step_ms", json_integer((json_int_t)options->step_ms));
    json_object_set_new(object, "counts", array);
    json_line(object, stdout);
}

int tasks_forecast(const struct tasks *tasks)
{
    const struct tasks_options *options = tasks->options;
    uint64_t *counts = calloc(options->steps, sizeof *counts);
    int status = COMMAND_GOOD;
    if (counts == NULL) {
        complain("tickwheel tasks: there is no memory");
        return COMMAND_WRONG;
    }
    if (tasks->queues == 0 && !options->json)
        puts("no tasks");
    for (size_t i = 0; i < tasks->queues && status == COMMAND_GOOD; i++) {
        if (tw_store_forecast(tasks->store, tasks->queue[i], options->step_ms, options->steps, counts) != 0)
            status = tasks_failed(tasks, "the tasks cannot be counted");
        else if (options->json)
            print_forecast_json(options, tasks->queue[i], counts);
        else
            print_forecast(options, tasks->queue[i], counts);
    }
    free(counts);
    return status;
}
