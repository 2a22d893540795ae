/* SPDX-License-Identifier: MIT
 *
 * tickwheel run: runs delayed tasks for a shell and for pipes. The main thread reads lines and passes tasks
 * to the scheduler. Callbacks print a line, or run a command on one of the --jobs threads. value.h explains
 * who frees the value of a task.
 */
#include "calendar.h"
#include "children.h"
#include "command.h"
#include "bins.h"
#include "job.h"
#include "lines.h"
#include "reader.h"
#include "rest.h"
#include "run_options.h"
#include "screen.h"
#include "stats_socket.h"
#include "task_line.h"
#include "value.h"

#include <base/saturate.h>
#include <tickwheel/sched.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TICK_NS = 100000 };

static struct run_options options;
static struct tw_sched *sched;
static struct calendar calendar;
static struct children *children; /* NULL: there is no --exec */
static int wake_pipe[2];          /* signals and the last callbacks write a byte */
static volatile sig_atomic_t signalled;
static _Atomic bool input_ended;
static pthread_mutex_t tally_lock = PTHREAD_MUTEX_INITIALIZER;
static struct bins late_us;
static uint64_t commands[CHILDREN_ENDS]; /* by their ends */
static struct reader reader;
static struct {
    uint64_t unknown_ids, moved, cancelled, replaced;
    uint64_t wait_ns; /* the part of an interrupted `wait` that is left, on the calendar */
} input;

/* The lines that were not read when the run was stopped. */
static struct {
    FILE *out;
    char *text;
    size_t size;
} unread;

/* ---- callbacks ------------------------------------------------------------------------------------------- */

static void wake(void)
{
    while (write(wake_pipe[1], "", 1) < 0 && errno == EINTR)
        ;
}

static bool print_task(const struct value *value, const char *due, uint64_t late)
{
    const char *payload = value_payload(value);
    char *line;
    int size =
        asprintf(&line, "%s %" PRIu64 " %s%s%s\n", due, late, value->id, *payload != '\0' ? " " : "", payload);
    if (size < 0)
        return false;
    bool good = screen_print(line, (size_t)size);
    free(line);
    return good;
}

/* Returns false if the command was given up. */
static bool run_command(const struct value *value, const char *due, uint64_t late)
{
    const char *payload = value_payload(value);
    struct job job = {.command = options.exec,
                      .id = value->id,
                      .id_size = strlen(value->id),
                      .payload = payload,
                      .payload_size = strlen(payload),
                      .due = due,
                      .late_us = late};
    enum children_end end = CHILDREN_FAILED;
    int error = children_run(children, &job, &end);
    if (error != 0)
        complain("tickwheel run: the command of task %s cannot be started: %s", value->id, strerror(error));
    pthread_mutex_lock(&tally_lock);
    commands[end]++;
    pthread_mutex_unlock(&tally_lock);
    return end != CHILDREN_GIVEN_UP;
}

static void tally(uint64_t late_ns)
{
    uint64_t late = late_ns / 1000;
    stats_note(late_ns);
    pthread_mutex_lock(&tally_lock);
    bins_add(&late_us, late > 0 ? late : 1);
    pthread_mutex_unlock(&tally_lock);
}

/* Prints the task's line or runs its command. Returns false if the line could not be printed, or the command
 * was given up. */
static bool call(const struct tw_task *task, const struct when *first)
{
    struct value *value = task->arg;
    char due[TIME_SIZE];
    uint64_t late = task->late_ns / 1000;
    struct instant at = calendar_due(&calendar, first, value->period_ns, task->due_ns);
    at.ns -= at.ns % 1000000;
    time_print(at, due);
    if (options.exec == NULL && !print_task(value, due, late))
        return false;
    tally(task->late_ns);
    return options.exec == NULL || run_command(value, due, late);
}

static void on_task(struct tw_sched *of, const struct tw_task *task)
{
    struct when first;
    (void)of;
    bool wanted = value_enter(task->arg, task, &first), done = wanted && call(task, &first);
    if (wanted)
        value_leave(task->arg, task, done);
    if ((wanted && !done) || atomic_load(&input_ended))
        wake();
}

/* ---- the status line ------------------------------------------------------------------------------------- */

/* tw_sched_next() is a bound: no task is due before it, but a task need not be due then. */
static void show_status(void)
{
    struct tw_sched_stats stats;
    char text[256], next[DURATION_SIZE];
    if (!screen_live())
        return;
    tw_sched_stats(sched, &stats);
    uint64_t next_ns = tw_sched_next(sched), now_ns = tw_sched_now(sched);
    int at = snprintf(text, sizeof text, "%" PRIu64 " pending, %" PRIu64 " fired, %" PRIu64 " running",
                      stats.pending, stats.fired, stats.running);
    if (next_ns != TW_NEVER && next_ns > now_ns + 1000000) {
        duration_print((next_ns - now_ns) / 1000000 * 1000000, next);
        snprintf(text + at, sizeof text - (size_t)at, ", nothing due for %s", next);
    }
    screen_show(text);
}

/* Returns how long the reader may sleep: at most 250 ms while there is a status line to update. */
static int patience_ms(int most_ms)
{
    return screen_live() && (most_ms < 0 || most_ms > 250) ? 250 : most_ms;
}

static bool stopping(void)
{
    return signalled || reader.stopped || screen_error() != 0;
}

/* For the reader: nothing to read has arrived. */
static int idle(void *arg)
{
    (void)arg;
    show_status();
    return patience_ms(-1);
}

static bool stops(void *arg)
{
    (void)arg;
    return stopping();
}

/* ---- lines ----------------------------------------------------------------------------------------------- */

static struct when when(const struct line *line)
{
    return calendar_when(&calendar, line, tw_sched_now(sched));
}

static int add_task(const struct line *line, uint64_t at_ns, struct value *value)
{
    if (line->kind == LINE_TASK)
        return tw_sched_set_at(sched, line->id, strlen(line->id), at_ns, on_task, value, NULL);
    struct tw_every every = {
        .at_ns = at_ns, .period_ns = calendar_scale(&calendar, line->period_ns), .times = line->times};
    return tw_sched_set_every(sched, line->id, strlen(line->id), &every, on_task, value, NULL);
}

/* Adds the task of a line. Returns NULL, or the error as a phrase. */
static const char *do_task(const struct line *line)
{
    if (strlen(line->id) > TW_KEY_MAX)
        return "expected an id of at most 65536 bytes";
    if (line->kind == LINE_EVERY && calendar_scale(&calendar, line->period_ns) < 1000000)
        return "expected a period of at least 1ms (divided by --speed)";
    struct when first = when(line);
    struct value *value = value_new(line, &first);
    if (value == NULL)
        return "there is no memory for the task";
    input.replaced += value_cancel(sched, line->id);
    int error = add_task(line, first.due_ns, value);
    if (error == 0)
        return NULL;
    value_free(value);
    return tw_strerror(error);
}

/* An id without a pending task is not an error, because the task may have run a moment ago. It is counted. */
static void do_move(const struct line *line)
{
    struct when to = when(line);
    bool moved = value_move(sched, line->id, &to);
    input.moved += moved;
    input.unknown_ids += !moved;
}

static void do_cancel(const struct line *line)
{
    bool cancelled = value_cancel(sched, line->id);
    input.cancelled += cancelled;
    input.unknown_ids += !cancelled;
}

/* Sleeps for the duration of a `wait`. If the run is stopped meanwhile, notes the part that is left. */
static void do_wait(uint64_t ns)
{
    uint64_t now_ns = tw_sched_now(sched), end_ns = tw__add_saturating(now_ns, calendar_scale(&calendar, ns));
    for (; !stopping() && now_ns < end_ns; now_ns = tw_sched_now(sched)) {
        uint64_t ms = (end_ns - now_ns - 1) / 1000000 + 1;
        struct pollfd fd = {.fd = wake_pipe[0], .events = POLLIN};
        show_status();
        poll(&fd, 1, patience_ms(ms > 1000000000 ? 1000000000 : (int)ms));
    }
    if (now_ns < end_ns)
        input.wait_ns = calendar_left(&calendar, end_ns, now_ns);
}

static const char *do_line(void *arg, const struct line *line)
{
    (void)arg;
    switch (line->kind) {
    case LINE_TASK:
    case LINE_EVERY:
        return do_task(line);
    case LINE_MOVE:
        do_move(line);
        return NULL;
    case LINE_CANCEL:
        do_cancel(line);
        return NULL;
    case LINE_WAIT:
        do_wait(line->time_ns);
        return NULL;
    default:
        return NULL;
    }
}

/* ---- the end of the input -------------------------------------------------------------------------------- */

static bool busy(void)
{
    struct tw_sched_stats stats;
    tw_sched_stats(sched, &stats);
    return stats.pending > 0 || stats.running > 0;
}

/* Waits for the last task. A callback wakes us shortly before it returns, so near the end we check again
 * after 2 ms. */
static void wait_for_the_last(void)
{
    struct pollfd fd = {.fd = wake_pipe[0], .events = POLLIN};
    char bytes[256];
    atomic_store(&input_ended, true);
    while (!stopping() && busy()) {
        show_status();
        poll(&fd, 1, tw_sched_pending(sched) == 0 ? 2 : patience_ms(1000));
        while (!stopping() && read(wake_pipe[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
            ;
    }
}

/* ---- the rest -------------------------------------------------------------------------------------------- */

/* Stops the scheduler and writes the rest: the tasks that did not run, the part of a `wait` that is left, and
 * the lines that were not read. Returns the number of tasks. */
static uint64_t stop_and_print(FILE *out)
{
    char wait[DURATION_SIZE];
    uint64_t left = 0, now_ns = tw_sched_now(sched);
    tw_sched_stop(sched, 0, value_keep, NULL);
    for (struct value *value = value_kept(), *next; value != NULL; value = next, left++) {
        next = value->next;
        rest_task(&calendar, now_ns, value, out);
        value_free(value);
    }
    duration_print(input.wait_ns, wait);
    if (input.wait_ns > 0)
        fprintf(out, "wait %s\n", wait);
    fwrite(unread.text, 1, unread.size, out);
    return left;
}

static void print_counts(uint64_t left, bool on_stderr, FILE *notes)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < unread.size; i++)
        lines += unread.text[i] == '\n';
    if (left == 0 && lines == 0)
        return;
    fprintf(notes, "tasks that did not run: %" PRIu64 "\n", left);
    if (lines > 0)
        fprintf(notes, "lines that were not read: %" PRIu64 "\n", lines);
    fprintf(notes, "To continue with them later, %s and the same options.\n",
            on_stderr ? "save the lines above to FILE, then use `tickwheel run` with FILE"
                      : "use `tickwheel run` with the file of --rest");
}

/* Stops the scheduler and writes the rest to the file of --rest, which appears whole or not at all. Writes
 * remarks about the rest to `notes`. Returns false if the rest is not where it should be, or not whole. */
static bool stop_and_write_rest(FILE *notes, bool *rest_above)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool on_stderr;
    if (out == NULL || fclose(unread.out) != 0) {
        complain("tickwheel run: there is no memory to write the tasks and lines that are left");
        return false;
    }
    uint64_t left = stop_and_print(out);
    bool whole = fclose(out) == 0;
    screen_hide();
    if (!whole)
        complain("tickwheel run: there is no memory to write all of the tasks and lines that are left");
    bool written = rest_write(options.rest, text, size, &on_stderr);
    *rest_above = on_stderr && size > 0;
    if (!options.quiet)
        print_counts(left, on_stderr, notes);
    free(text);
    free(unread.text);
    return written && whole;
}

/* ---- the summary ----------------------------------------------------------------------------------------- */

static void print_summary(FILE *out)
{
    struct tw_sched_stats stats;
    tw_sched_stats(sched, &stats);
    fprintf(out, "runs of tasks: %" PRIu64 "; tasks cancelled: %" PRIu64 ", moved: %" PRIu64, late_us.total,
            input.cancelled, input.moved);
    if (input.replaced > 0)
        fprintf(out, ", replaced by a later line: %" PRIu64, input.replaced);
    if (input.unknown_ids > 0)
        fprintf(out, "\nlines without effect: %" PRIu64 " (move or cancel of an id without a pending task)",
                input.unknown_ids);
    if (reader.bad_lines > 0)
        fprintf(out, "\nlines skipped: %" PRIu64 " (malformed, see above; correct and run them again)",
                reader.bad_lines);
    if (options.exec != NULL)
        fprintf(out, "\ncommands: %" PRIu64 " succeeded, %" PRIu64 " failed", commands[CHILDREN_DONE],
                commands[CHILDREN_FAILED]);
    if (commands[CHILDREN_GIVEN_UP] > 0)
        fprintf(out, ", %" PRIu64 " given up: their tasks are a part of the rest", commands[CHILDREN_GIVEN_UP]);
    fputc('\n', out);
    if (late_us.total == 0)
        return;
    fprintf(out, "lateness: %.0f us (median), %.0f us (99 %% of the runs), %.0f us (maximum)\n",
            (double)stats.late_p50_ns / 1e3, (double)stats.late_p99_ns / 1e3, (double)stats.late_max_ns / 1e3);
    bins_print(&late_us, "us late", "runs", 0, out);
}

/* If the rest is on standard error, the summary's lines begin with '#': rest and summary together are an
 * input file. */
static void print_notes(const char *text, bool rest_above)
{
    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        fprintf(stderr, "%s%.*s\n", rest_above ? "# " : "", (int)size, text);
        text += size + (text[size] == '\n');
    }
}

/* The stop waits for the commands that run. */
static void limit_commands(void)
{
    if (children == NULL)
        return;
    if (options.has_grace)
        children_give_up_after(children, options.grace_ms);
    if (signalled) /* without a file for the rest, standard error is to be an input file */
        children_tell(children, options.rest != NULL ? "" : "# ", options.has_grace);
}

/* Stops the scheduler, writes the rest and prints the summary. Returns false if the rest or the output was
 * lost. */
static bool finish(void)
{
    char *text = NULL;
    size_t size = 0;
    bool rest_above = false;
    FILE *notes = open_memstream(&text, &size);
    if (notes == NULL)
        return false;
    limit_commands();
    bool good = stop_and_write_rest(notes, &rest_above);
    int error = screen_error();
    if (error != 0)
        fprintf(notes, "tickwheel run: stopped, as standard output cannot be written: %s\n",
                screen_reason(error));
    if (!options.quiet)
        print_summary(notes);
    if (signalled && !rest_above)
        screen_last_words();
    if (fclose(notes) == 0)
        print_notes(text, rest_above);
    free(text);
    return good && error == 0;
}

/* ---- life ------------------------------------------------------------------------------------------------ */

static void on_signal(int number)
{
    int saved = errno;
    if (signalled && signal_hurries(number) && children != NULL)
        children_give_up(children);
    signalled = number;
    wake();
    screen_quit();
    errno = saved;
}

static bool prepare(void)
{
    struct timespec now;
    struct tw_sched_options sched_options = {.tick_ns = TICK_NS,
                                             .shards = 1, /* lines of one time run in the order of the file */
                                             .workers = options.exec != NULL ? (uint32_t)options.jobs : 0};
    screen_begin(!options.quiet, options.exec != NULL, true);
    if (options.stats != NULL && !stats_open(options.stats))
        return false;
    unread.out = open_memstream(&unread.text, &unread.size);
    if (unread.out == NULL || !lines_pipe(wake_pipe) || tw_sched_new(&sched, &sched_options) != 0) {
        complain("tickwheel run: the scheduler cannot be started: %s", strerror(errno));
        return false;
    }
    if (options.exec != NULL &&
        (children = children_new(options.jobs, options.timeout_ms, NULL, NULL)) == NULL) {
        complain("tickwheel run: commands cannot be started: %s", strerror(errno));
        return false;
    }
    if (options.stats != NULL && !stats_start(sched))
        return false;
    reader = (struct reader){.command = "tickwheel run",
                             .wake = wake_pipe[0],
                             .strict = options.strict,
                             .take = do_line,
                             .idle = idle,
                             .stopping = stops,
                             .hide = screen_hide};
    signals_catch(on_signal);
    clock_gettime(CLOCK_REALTIME, &now);
    calendar = (struct calendar){.clock_ns = tw_sched_now(sched),
                                 .wall = {(uint64_t)now.tv_sec, (uint64_t)now.tv_nsec},
                                 .speed = options.speed};
    return true;
}

static bool read_all(int count, char **paths)
{
    bool good = true;
    if (count == 0)
        return reader_read(&reader, "-", unread.out);
    for (int i = 0; i < count; i++)
        good &= stopping() ? rest_file(paths[i], unread.out) : reader_read(&reader, paths[i], unread.out);
    return good;
}

int command_run(int argc, char **argv)
{
    int status = run_options_parse(argc, argv, &options);
    if (status >= 0)
        return status;
    if (options.store != NULL)
        return command_run_store(&options, argc - optind, argv + optind);
    if (!prepare()) {
        stats_close();
        return COMMAND_WRONG;
    }
    bool read = read_all(argc - optind, argv + optind);
    wait_for_the_last();
    stats_close();
    bool good = finish();
    tw_sched_free(sched);
    children_free(children);
    if (!read || (options.strict && reader.bad_lines > 0))
        return COMMAND_INPUT;
    return good && reader.bad_lines == 0 ? COMMAND_GOOD : COMMAND_WRONG;
}
