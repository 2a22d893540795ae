/* SPDX-License-Identifier: MIT */
#include "task_print.h"

#include "figures.h"
#include "json.h"
#include "printable.h"
#include "task_line.h"

#include <inttypes.h>
#include <task/words.h>

enum { MS_NS = 1000000, ID_COLUMNS = 24, PAYLOAD_COLUMNS = 60, ERROR_COLUMNS = 40 };

/* ---- times ----------------------------------------------------------------------------------------------- */

struct figure figure_until(uint64_t ms, uint64_t now_ms)
{
    struct figure figure = {"now"}, length;
    if (ms == now_ms)
        return figure;
    length = figure_time(ms > now_ms ? ms - now_ms : now_ms - ms, MS_NS);
    snprintf(figure.text, sizeof figure.text, "%.40s%s", length.text, ms > now_ms ? "" : " ago");
    return figure;
}

/* ---- a table --------------------------------------------------------------------------------------------- */

void task_print_head(const char *queue, bool dead, FILE *out)
{
    fputs("queue ", out);
    printable_write(tw_text(queue), false, SIZE_MAX, out);
    if (dead)
        fprintf(out, "\n  %-24s  %-24s  %-10s  %-7s  %-24s  %-40s  payload\n", "due", "dead", "when", "attempt",
                "id", "error");
    else
        fprintf(out, "\n  %-24s  %-10s  %-7s  %-7s  %-9s  %-24s  payload\n", "due", "next in", "state",
                "attempt", "every", "id");
}

/* Writes bytes in a column, which a longer text widens, and two blanks behind it; in the last column, whose
 * width is 0, no blanks. */
static void print_padded(struct tw_bytes bytes, bool exact, size_t wide, size_t most, FILE *out)
{
    size_t used = printable_write(bytes, exact, most, out);
    fprintf(out, "%*s", wide == 0 ? 0 : (int)(used < wide ? wide - used : 0) + 2, "");
}

/* The period of a task: "5s", "5s x3", "-". */
static struct figure every(const struct tw_store_task *task)
{
    struct figure figure = {"-"};
    char period[DURATION_SIZE];
    if (task->every_ms == 0)
        return figure;
    if (task->every_ms > UINT64_MAX / MS_NS)
        return (struct figure){"centuries"};
    duration_print(task->every_ms * MS_NS, period);
    if (task->times == TW_FOREVER)
        snprintf(figure.text, sizeof figure.text, "%.40s", period);
    else
        snprintf(figure.text, sizeof figure.text, "%.24s x%" PRIu64, period, task->times);
    return figure;
}

static void print_time(uint64_t ms, FILE *out)
{
    char time[TIME_SIZE];
    time_print(instant_of_ms(ms), time);
    fprintf(out, "  %-24s", time);
}

void task_print_row(const struct tw_store_task *task, uint64_t now_ms, FILE *out)
{
    bool dead = task->state == TW_STATE_DEAD;
    const char *error = task->error != NULL ? task->error : "-";
    print_time(task->due_ms, out);
    if (dead)
        print_time(task->dead_ms, out);
    fprintf(out, "  %-10s  ", figure_until(dead ? task->dead_ms : task->next_ms, now_ms).text);
    if (!dead)
        fprintf(out, "%-7s  ", tw__task_state_name(task->state));
    fprintf(out, "%-7" PRIu32 "  ", task->attempt);
    if (!dead)
        fprintf(out, "%-9s  ", every(task).text);
    bool more = task->payload.data != NULL;
    print_padded(task->id, true, dead || more ? ID_COLUMNS : 0, SIZE_MAX, out);
    if (dead)
        print_padded(tw_text(error), false, more ? ERROR_COLUMNS : 0, ERROR_COLUMNS, out);
    if (more)
        printable_write(task->payload, false, PAYLOAD_COLUMNS, out);
    fputc('\n', out);
}

/* ---- JSON ------------------------------------------------------------------------------------------------ */

/* A number that is absent is null. */
static void put_if(json_t *object, const char *name, bool there, uint64_t number)
{
    json_object_set_new(object, name, there ? json_number(number) : json_null());
}

static void put_period(json_t *object, const struct tw_store_task *task)
{
    put_if(object, "every_ms", task->every_ms > 0, task->every_ms);
    put_if(object, "times", task->times != TW_FOREVER, task->times);
    json_object_set_new(object, "missed",
                        task->every_ms > 0 ? json_string(tw__task_missed_name(task->missed)) : json_null());
    json_object_set_new(object, "missed_periods", json_number(task->missed_periods));
}

static void put_waits(json_t *object, const struct tw_store_task *task)
{
    json_object_set_new(object, "tries", json_number(task->tries));
    json_object_set_new(object, "backoff_ms", json_number(task->backoff_ms));
    json_object_set_new(object, "factor", json_real(task->factor_percent / 100.0));
    json_object_set_new(object, "backoff_max_ms", json_number(task->backoff_max_ms));
    json_object_set_new(object, "jitter", json_number(task->jitter == TW_STORE_NO_JITTER ? 0 : task->jitter));
}

bool task_print_json(const struct tw_store_task *task, FILE *out)
{
    json_t *object = json_object();
    bool dead = task->state == TW_STATE_DEAD;
    json_put_bytes(object, "queue", tw_text(task->queue));
    json_put_bytes(object, "id", task->id);
    json_object_set_new(object, "state", json_string(tw__task_state_name(task->state)));
    json_object_set_new(object, "due_ms", json_number(task->due_ms));
    put_if(object, "next_ms", !dead, task->next_ms);
    json_object_set_new(object, "revision", json_number(task->revision));
    json_object_set_new(object, "attempt", json_number(task->attempt));
    json_object_set_new(object, "lapses", json_number(task->lapses));
    put_waits(object, task);
    put_if(object, "max_late_ms", task->max_late_ms != TW_FOREVER,
           task->max_late_ms == TW_STORE_ON_TIME ? 0 : task->max_late_ms);
    json_object_set_new(object, "replaced", json_boolean(task->replaced));
    put_period(object, task);
    put_if(object, "dead_ms", dead, task->dead_ms);
    json_put_bytes(object, "error", task->error != NULL ? tw_text(task->error) : (struct tw_bytes){NULL, 0});
    json_put_bytes(object, "payload", task->payload);
    return json_line(object, out);
}
