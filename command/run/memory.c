/* SPDX-License-Identifier: MIT
 *
 * The scheduler keeps the tasks. Callbacks print a line, or run a command on one of the --jobs threads. When
 * the run stops, the tasks that did not run become the rest. value.h explains who frees the value of a task.
 */
#include "memory.h"

#include "calls.h"
#include "command.h"
#include "rest.h"
#include "screen.h"
#include "stats_socket.h"
#include "value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TICK_NS = 100000, MS_NS = 1000000 };

static struct run *run;
static struct tw_sched *sched;
static struct {
    char *unread; /* lines that were not read */
    size_t unread_size;
    uint64_t tasks, lines; /* how many */
} remains;                 /* for the rest */

/* ---- callbacks ------------------------------------------------------------------------------------------- */

/* Returns false if the command was given up. */
static bool run_command(struct job *job)
{
    enum children_end end = CHILDREN_FAILED;
    job->command = run->options->exec;
    int error = children_run(run->children, job, &end);
    if (error != 0)
        complain("tickwheel run: the command of task %s cannot be started: %s", (const char *)job->id.data,
                 strerror(error));
    tally_command(run->tally, end);
    return end != CHILDREN_GIVEN_UP;
}

/* Prints the task's line or runs its command. Returns false if the line could not be printed, or the command
 * was given up. */
static bool call(const struct tw_task *task, const struct when *first)
{
    struct value *value = task->arg;
    char due[TIME_SIZE];
    struct instant at = calendar_due(&run->calendar, first, value->period_ns, task->due_ns);
    struct job job = {.id = tw_text(value->id),
                      .payload = tw_text(value_payload(value)),
                      .due = due,
                      .late_us = task->late_ns / 1000,
                      .missed_periods = task->missed_periods};
    at.ns -= at.ns % 1000000;
    time_print(at, due);
    if (!calls_begin(run, &job, false)) /* it never falls due while nobody runs it */
        return false;
    stats_note(task->late_ns);
    return run->children == NULL || run_command(&job);
}

static void on_task(struct tw_sched *of, const struct tw_task *task)
{
    struct when first;
    (void)of;
    bool wanted = value_enter(task->arg, task, &first), done = wanted && call(task, &first);
    if (wanted)
        value_leave(task->arg, task, done);
    calls_wake(run, wanted && !done);
}

/* No task is due before tw_sched_next_bound(), but a task need not be due then. */
static void look(struct run_now *now)
{
    struct tw_sched_info stats;
    tw_sched_stats(sched, &stats, sizeof stats);
    uint64_t next_ns = tw_sched_next_bound(sched), now_ns = tw_sched_now(sched);
    snprintf(now->before, sizeof now->before, "waiting: %" PRIu64 ", ", stats.pending);
    now->under_way = stats.running;
    now->next_ms = next_ns == TW_NEVER ? UINT64_MAX : next_ns > now_ns ? (next_ns - now_ns) / MS_NS : 0;
}

/* ---- lines ----------------------------------------------------------------------------------------------- */

static struct when when(const struct line *line)
{
    return calendar_when(&run->calendar, line, tw_sched_now(sched));
}

static int add_task(const struct line *line, uint64_t at_ns, struct value *value)
{
    if (line->kind == LINE_TASK)
        return tw_sched_key_put_at(sched, tw_text(line->id), at_ns, on_task, value, NULL);
    struct tw_every every = {
        .at_ns = at_ns, .period_ns = calendar_scale(&run->calendar, line->period_ns), .times = line->times};
    return tw_sched_key_put_every(sched, tw_text(line->id), &every, on_task, value, NULL);
}

/* Adds the task of a line. Returns NULL, or the error as a phrase. */
static const char *do_task(const struct line *line)
{
    if (strlen(line->id) > TW_SCHED_KEY_MAX)
        return "expected an id of at most 65536 bytes";
    if (line->kind == LINE_EVERY && calendar_scale(&run->calendar, line->period_ns) < 1000000)
        return "expected a period of at least 1ms (divided by --speed)";
    struct when first = when(line);
    struct value *value = value_new(line, &first);
    if (value == NULL)
        return "there is no memory for the task";
    run->replaced += value_cancel(sched, line->id);
    int error = add_task(line, first.due_ns, value);
    run->lines.put += error == 0;
    if (error == 0)
        return NULL;
    value_free(value);
    return tw_sched_strerror(error);
}

/* An id without a pending task is not an error, because the task may have run a moment ago. It is counted. */
static void do_move(const struct line *line)
{
    struct when to = when(line);
    bool moved = value_move(sched, line->id, &to);
    run->lines.moved += moved;
    run->lines.unknown += !moved;
}

static void do_cancel(const struct line *line)
{
    bool cancelled = value_cancel(sched, line->id);
    run->lines.cancelled += cancelled;
    run->lines.unknown += !cancelled;
}

static const char *take(const struct line *line)
{
    if (line->kind == LINE_MOVE)
        do_move(line);
    else if (line->kind == LINE_CANCEL)
        do_cancel(line);
    else
        return do_task(line);
    return NULL;
}

/* A line that was taken is kept already, as well as memory keeps it. */
static bool settle(void)
{
    return true;
}

static bool busy(void)
{
    struct tw_sched_info stats;
    tw_sched_stats(sched, &stats, sizeof stats);
    return stats.pending > 0 || stats.running > 0;
}

/* ---- the rest -------------------------------------------------------------------------------------------- */

/* Stops the scheduler and writes the rest: the tasks that did not run, the part of a `wait` that is left, and
 * the lines that were not read. */
static void write_rest(FILE *out)
{
    char wait[DURATION_SIZE];
    uint64_t now_ns = tw_sched_now(sched);
    tw_sched_stop(sched, 0, value_keep, NULL);
    for (struct value *value = value_kept(), *next; value != NULL; value = next, remains.tasks++) {
        next = value->next;
        rest_task(&run->calendar, now_ns, value, out);
        value_free(value);
    }
    duration_print(run->wait_ns, wait);
    if (run->wait_ns > 0)
        fprintf(out, "wait %s\n", wait);
    fwrite(remains.unread, 1, remains.unread_size, out);
    for (size_t i = 0; i < remains.unread_size; i++)
        remains.lines += remains.unread[i] == '\n';
}

/* Stops the scheduler and writes the rest to the file of --rest, which appears whole or not at all. Returns
 * false if the rest is not where it should be, or not whole. */
static bool stop(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size), *lines = run->unread;
    bool on_stderr;
    stats_close();
    run->unread = NULL;
    if (fclose(lines) != 0 || out == NULL) {
        complain("tickwheel run: there is no memory to write the tasks and lines that are left");
        return false;
    }
    write_rest(out);
    bool whole = fclose(out) == 0;
    screen_hide();
    if (!whole)
        complain("tickwheel run: there is no memory to write all of the tasks and lines that are left");
    bool written = rest_write(run->options->rest, (struct tw_bytes){text, size}, &on_stderr);
    run->rest_above = on_stderr && size > 0;
    free(text);
    return written && whole;
}

static bool print_left(FILE *out)
{
    if (out == NULL || (remains.tasks == 0 && remains.lines == 0))
        return true;
    fprintf(out, "tasks that did not run: %" PRIu64 "\n", remains.tasks);
    if (remains.lines > 0)
        fprintf(out, "lines that were not read: %" PRIu64 "\n", remains.lines);
    fprintf(out, "To go on with them later, %s and the same options.\n",
            run->rest_above ? "save the lines above to FILE, then use `tickwheel run` with FILE"
                            : "use `tickwheel run` with the file of --rest");
    return true;
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

/* Makes the scheduler and the room for commands. Returns false with errno set. */
static bool make_parts(void)
{
    const struct run_options *options = run->options;
    struct tw_sched_options how = {.tick_ns = TICK_NS,
                                   .shards = 1, /* lines of one time run in the order of the file */
                                   .workers = options->exec != NULL ? (uint32_t)options->jobs : 0};
    run->unread = open_memstream(&remains.unread, &remains.unread_size);
    if (run->unread == NULL || tw_sched_new(&sched, &how) != 0)
        return false;
    if (options->exec != NULL)
        run->children = children_new(options->jobs, options->timeout_ms, NULL, NULL);
    return options->exec == NULL || run->children != NULL;
}

static bool start(struct run *of)
{
    struct timespec now;
    run = of;
    if (run->options->stats != NULL && !stats_open(run->options->stats))
        return false;
    if (!make_parts()) {
        complain("tickwheel run: the run cannot be started: %s", strerror(errno));
        return false;
    }
    if (run->options->stats != NULL && !stats_start(sched))
        return false;
    clock_gettime(CLOCK_REALTIME, &now);
    run->calendar.clock_ns = tw_sched_now(sched);
    run->calendar.wall = (struct instant){(uint64_t)now.tv_sec, (uint64_t)now.tv_nsec};
    return true;
}

static void end(void)
{
    stats_close();
    tw_sched_free(sched);
    free(remains.unread);
}

const struct engine engine_of_memory = {start, take, settle, look, busy, stop, print_left, end};
