/* SPDX-License-Identifier: MIT
 *
 * tickwheel run: a runner of delayed tasks for a shell and for pipes. The main thread reads lines and tells the
 * scheduler; callbacks print, or run a command on one of the --jobs threads. A value belongs to the scheduler until its
 * last call, which frees it, or until it is cancelled, replaced or handed back.
 */
#include "command.h"
#include "histogram.h"
#include "job.h"
#include "lines.h"
#include "output.h"
#include "task_line.h"

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

static const char HELP[] =
    "usage: tickwheel run [OPTIONS] [FILE...]\n"
    "\n"
    "Reads tasks from the files, or from standard input, line by line, and runs each when it is due:\n"
    "\n"
    "  +1500ms order:42 notify unpaid         once, so long from now (units: ns us ms s m h d; 1h30m, 1.5s)\n"
    "  @2026-12-01T09:00:00Z order:42 text    once, at a time (UTC)\n"
    "  every 5s x3 beat text                  three times, 5 s apart; without x3 for ever\n"
    "  move order:42 +10m                     another time for a task that is pending\n"
    "  cancel order:42\n"
    "  wait 2s                                read on after that\n"
    "\n"
    "A key (order:42) names one task: used again, it replaces that task. A due task prints its time, how late "
    "it is in\n"
    "microseconds, its key and its text. The end of the input is waited for, and then the last task.\n"
    "\n"
    "  --exec CMD      run CMD in a shell for each task, with the line on its standard input and "
    "TICKWHEEL_KEY,\n"
    "                  TICKWHEEL_TEXT, TICKWHEEL_DUE and TICKWHEEL_LATE_US in its environment\n"
    "  --jobs N        at most so many commands at once, 1 to 1024 (default 4)\n"
    "  --speed N       time runs so many times faster, 0.001 to 1000000 (default 1)\n"
    "  --rest FILE     where tasks are written that did not run, to go on from (default: standard error)\n"
    "  --strict        stop at the first line that is malformed, with status 2; else it is skipped and the "
    "status is 1\n"
    "  --quiet         no summary\n"
    "\n"
    "SIGINT and SIGTERM end it cleanly: running commands are waited for, the rest is written.\n";

enum { JOBS_DEFAULT = 4, JOBS_MAX = 1024, TICK_NS = 100000 };
static const uint64_t second_ns = 1000000000;

static struct {
    const char *exec, *rest;
    uint64_t jobs;
    double speed;
    bool strict, quiet;
} options;

/* A task's text, with its key before it. */
struct value {
    uint64_t period_ns; /* as it was written */
    char key[];         /* terminated, then the text, terminated */
};

static struct tw_sched *sched;
static uint64_t begun_ns, begun_wall_ns; /* the scheduler's clock and the calendar's at the start */
static int wake_pipe[2];                 /* signals and the last callbacks write a byte */
static volatile sig_atomic_t signalled;
static _Atomic bool input_ended;
static pthread_mutex_t tally_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tw_histogram late_us;
static uint64_t failed_jobs, good_jobs;
static struct {
    uint64_t bad_lines, unknown_keys;
    bool stopped; /* by a signal or --strict */
} input;

/* ---- time ----------------------------------------------------------------------------------------------- */

/* A time of the calendar, at our speed, as one of the scheduler's clock. */
static uint64_t clock_of_wall(uint64_t wall_ns)
{
    if (wall_ns <= begun_wall_ns)
        return begun_ns;
    if (options.speed == 1)
        return begun_ns + (wall_ns - begun_wall_ns);
    double ns = (double)(wall_ns - begun_wall_ns) / options.speed;
    return ns >= 9e18 ? UINT64_MAX : begun_ns + (uint64_t)ns;
}

static uint64_t wall_of_clock(uint64_t clock_ns)
{
    if (options.speed == 1)
        return begun_wall_ns + (clock_ns - begun_ns);
    return begun_wall_ns + (uint64_t)((double)(clock_ns - begun_ns) * options.speed);
}

static uint64_t scaled(uint64_t ns)
{
    if (options.speed == 1)
        return ns;
    double real_ns = (double)ns / options.speed;
    return real_ns >= 1.8e19 ? UINT64_MAX : (uint64_t)real_ns;
}

static uint64_t when(const struct tw_line *line)
{
    if (line->absolute)
        return clock_of_wall(line->time_ns);
    uint64_t now_ns = tw_sched_now(sched), delay_ns = scaled(line->time_ns);
    return delay_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + delay_ns;
}

/* ---- callbacks -------------------------------------------------------------------------------------------- */

static const char *text_of(const struct value *value)
{
    return value->key + strlen(value->key) + 1;
}

static void wake(void)
{
    while (write(wake_pipe[1], "", 1) < 0 && errno == EINTR)
        ;
}

static void print_task(const struct value *value, const char *due, uint64_t late)
{
    flockfile(stdout);
    printf("%s %" PRIu64 " %s%s%s\n", due, late, value->key, *text_of(value) != '\0' ? " " : "",
           text_of(value));
    fflush(stdout);
    funlockfile(stdout);
}

static void run_command(const struct value *value, const char *due, uint64_t late)
{
    struct tw_job job = {options.exec, value->key, text_of(value), due, late};
    bool good = tw_job_run(&job);
    pthread_mutex_lock(&tally_lock);
    good_jobs += good;
    failed_jobs += !good;
    pthread_mutex_unlock(&tally_lock);
}

static void on_task(struct tw_sched *of, const struct tw_task *task)
{
    struct value *value = task->arg;
    char due[TW_TIME_SIZE];
    uint64_t late = task->late_ns / 1000;
    (void)of;
    tw_time_print(wall_of_clock(task->due_ns) / 1000000 * 1000000, due);
    pthread_mutex_lock(&tally_lock);
    tw_histogram_add(&late_us, late > 0 ? late : 1);
    pthread_mutex_unlock(&tally_lock);
    if (options.exec != NULL)
        run_command(value, due, late);
    else
        print_task(value, due, late);
    if (task->period_ns == 0 || task->left == 0)
        free(value);
    if (atomic_load(&input_ended))
        wake();
}

/* ---- lines ------------------------------------------------------------------------------------------------- */

static struct value *new_value(const struct tw_line *line)
{
    size_t key = strlen(line->key) + 1, text = strlen(line->text) + 1;
    struct value *value = malloc(sizeof *value + key + text);
    if (value == NULL)
        return NULL;
    value->period_ns = line->period_ns;
    memcpy(value->key, line->key, key);
    memcpy(value->key + key, line->text, text);
    return value;
}

/* Ends the task of a key, if there is one; only this thread ends or replaces tasks. One that repeats may be running:
 * its value can be freed once that call has returned. Returns whether a call was still to come. */
static bool end_task(const char *key)
{
    struct tw_task task;
    void *value = NULL;
    if (tw_sched_key_get(sched, key, strlen(key), &task) != 0)
        return false;
    if (task.period_ns == 0) {
        bool cancelled = tw_sched_key_remove(sched, key, strlen(key), &value) == TW_CANCELLED;
        free(value);
        return cancelled;
    }
    enum tw_cancelled found = TW_GONE;
    tw_sched_cancel_wait(sched, task.id, &found);
    if (found == TW_GONE)
        return false;
    free(task.arg);
    return true;
}

static int add_task(const struct tw_line *line, struct value *value)
{
    if (line->kind == TW_LINE_TASK)
        return tw_sched_set_at(sched, line->key, strlen(line->key), when(line), on_task, value, NULL);
    struct tw_every every = {.at_ns = when(line),
                             .period_ns = scaled(line->period_ns),
                             .times = line->times,
                             .missed = TW_MISSED_COALESCE};
    return tw_sched_set_every(sched, line->key, strlen(line->key), &every, on_task, value, NULL);
}

/* Returns NULL, or what is wrong. */
static const char *do_task(const struct tw_line *line)
{
    if (strlen(line->key) > TW_KEY_MAX)
        return "a key of at most 65536 bytes";
    if (line->kind == TW_LINE_EVERY && scaled(line->period_ns) < 1000000)
        return "a period of at least a millisecond (after --speed)";
    struct value *value = new_value(line);
    if (value == NULL)
        return "more memory";
    end_task(line->key);
    int error = add_task(line, value);
    if (error == 0)
        return NULL;
    free(value);
    return tw_strerror(error);
}

/* A key that names nothing is no mistake of the line: the task may just have run. It is counted. */
static void do_move(const struct tw_line *line)
{
    if (tw_sched_key_move_at(sched, line->key, strlen(line->key), when(line)) != 0)
        input.unknown_keys++;
}

static void do_cancel(const struct tw_line *line)
{
    if (!end_task(line->key))
        input.unknown_keys++;
}

/* Sleeps, unless a signal comes. */
static void do_wait(uint64_t ns)
{
    uint64_t end_ns = tw_sched_now(sched) + scaled(ns), now_ns;
    while (!signalled && (now_ns = tw_sched_now(sched)) < end_ns) {
        uint64_t ms = (end_ns - now_ns + 999999) / 1000000;
        struct pollfd fd = {.fd = wake_pipe[0], .events = POLLIN};
        poll(&fd, 1, ms > 1000000000 ? 1000000000 : (int)ms);
    }
}

static const char *do_line(const struct tw_line *line)
{
    switch (line->kind) {
    case TW_LINE_TASK:
    case TW_LINE_EVERY:
        return do_task(line);
    case TW_LINE_MOVE:
        do_move(line);
        return NULL;
    case TW_LINE_CANCEL:
        do_cancel(line);
        return NULL;
    case TW_LINE_WAIT:
        do_wait(line->time_ns);
        return NULL;
    default:
        return NULL;
    }
}

/* ---- the status line ------------------------------------------------------------------------------------------- */

static bool live(void)
{
    return !options.quiet && isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO);
}

/* Shown where it does not get between the tasks' own lines. */
static void show_status(void)
{
    struct tw_sched_stats stats;
    char next[TW_DURATION_SIZE] = "nothing";
    if (!live())
        return;
    tw_sched_stats(sched, &stats);
    uint64_t next_ns = tw_sched_next(sched), now_ns = tw_sched_now(sched);
    if (next_ns != TW_NEVER)
        tw_duration_print((next_ns - now_ns) / 1000000 * 1000000, next);
    fprintf(stderr, "\r\033[K%" PRIu64 " pending, %" PRIu64 " fired, %" PRIu64 " running, next in %s",
            stats.pending, stats.fired, stats.running, next);
}

static void hide_status(void)
{
    if (live())
        fputs("\r\033[K", stderr);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static bool stopping(void)
{
    return signalled || input.stopped;
}

static void complain_about(const char *path, uint64_t number, const char *expected, const char *found)
{
    hide_status();
    tw_complain("%s:%" PRIu64 ": expected %s, found \"%.60s\"", path, number, expected, found);
    input.bad_lines++;
    input.stopped |= options.strict;
}

static void take_line(const char *path, uint64_t number, char *text)
{
    struct tw_line line;
    char found[64];
    snprintf(found, sizeof found, "%s", text);
    const char *expected = tw_line_parse(text, &line);
    if (expected == NULL)
        expected = do_line(&line);
    if (expected != NULL)
        complain_about(path, number, expected, found);
}

/* Reads a file to its end, line by line as they come. False when it cannot be read. */
static bool read_file(const char *path)
{
    struct tw_lines *lines = tw_lines_open(path, wake_pipe[0]);
    uint64_t number = 0;
    enum tw_lines_got got = TW_LINES_END;
    char *text;
    if (lines == NULL) {
        tw_complain("tickwheel run: %s: %s", path, strerror(errno));
        return false;
    }
    while (!stopping() && (got = tw_lines_next(lines, live() ? 250 : -1, &text)) != TW_LINES_END &&
           got != TW_LINES_FAILED) {
        if (got == TW_LINES_LINE)
            take_line(path, ++number, text);
        else if (got == TW_LINES_LONG)
            complain_about(path, ++number, "a line of at most 1 MiB", text);
        if (got != TW_LINES_LINE || !tw_lines_more(lines))
            show_status();
    }
    if (got == TW_LINES_FAILED)
        tw_complain("tickwheel run: %s: %s", path, strerror(errno));
    tw_lines_close(lines);
    return got != TW_LINES_FAILED;
}

static bool busy(void)
{
    struct tw_sched_stats stats;
    tw_sched_stats(sched, &stats);
    return stats.pending > 0 || stats.running > 0;
}

/* Waits for the last task. A callback wakes us before it has quite returned, so near the end we look again soon. */
static void wait_for_the_last(void)
{
    struct pollfd fd = {.fd = wake_pipe[0], .events = POLLIN};
    char bytes[256];
    atomic_store(&input_ended, true);
    while (!stopping() && busy()) {
        show_status();
        poll(&fd, 1, tw_sched_pending(sched) == 0 ? 2 : live() ? 250 : 1000);
        while (!signalled && read(wake_pipe[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
            ;
    }
}

/* ---- the rest -------------------------------------------------------------------------------------------------- */

static void write_rest(void *arg, const struct tw_task *task)
{
    struct value *value = task->arg;
    char at[TW_TIME_SIZE], period[TW_DURATION_SIZE];
    FILE *out = arg;
    tw_time_print(wall_of_clock(task->due_ns), at);
    tw_duration_print(value->period_ns, period);
    if (task->period_ns == 0)
        fprintf(out, "@%s ", at);
    else if (task->left == TW_FOREVER)
        fprintf(out, "every %s @%s ", period, at);
    else
        fprintf(out, "every %s x%" PRIu64 " @%s ", period, task->left + 1, at);
    fprintf(out, "%s%s%s\n", value->key, *text_of(value) != '\0' ? " " : "", text_of(value));
    free(value);
}

/* Stops the scheduler; what did not run goes to the file, which appears whole or not at all. */
static bool stop_and_write_rest(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        tw_complain("tickwheel run: no memory for the rest");
        return false;
    }
    uint64_t left = tw_sched_stop(sched, 0, write_rest, out);
    bool good = fclose(out) == 0;
    hide_status();
    if (options.rest != NULL)
        good = good && tw_output_write(options.rest, text, size);
    else
        fwrite(text, 1, size, stderr);
    if (left > 0 && !options.quiet)
        fprintf(stderr, "%" PRIu64 " tasks did not run; %s\n", left,
                options.rest != NULL ? "they are in the file of --rest, to go on with"
                                     : "they are above, to go on with");
    free(text);
    return good;
}

/* ---- the summary ----------------------------------------------------------------------------------------------- */

static void print_summary(void)
{
    struct tw_sched_stats stats;
    tw_sched_stats(sched, &stats);
    fprintf(stderr, "fired %" PRIu64 ", cancelled %" PRIu64 ", moved %" PRIu64, stats.fired, stats.cancelled,
            stats.moved);
    if (input.unknown_keys > 0)
        fprintf(stderr, ", %" PRIu64 " moves or cancels found no task", input.unknown_keys);
    if (input.bad_lines > 0)
        fprintf(stderr, ", %" PRIu64 " malformed lines skipped", input.bad_lines);
    if (options.exec != NULL)
        fprintf(stderr, ", %" PRIu64 " commands succeeded, %" PRIu64 " failed", good_jobs, failed_jobs);
    fputc('\n', stderr);
    if (stats.fired == 0)
        return;
    fprintf(stderr, "late by %.0f us (median), %.0f us (99 %%), %.0f us (most)\n",
            (double)stats.late_p50_ns / 1e3, (double)stats.late_p99_ns / 1e3, (double)stats.late_max_ns / 1e3);
    tw_histogram_print(&late_us, "us late", "calls", 0, stderr);
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static bool parse_speed(const char *text)
{
    char *end;
    options.speed = strtod(text, &end);
    if (end != text && *end == '\0' && options.speed >= 0.001 && options.speed <= 1e6)
        return true;
    tw_complain("tickwheel run: --speed: expected a number from 0.001 to 1000000, found \"%s\"", text);
    return false;
}

static bool parse_jobs(const char *text)
{
    if (tw_number_parse(text, JOBS_MAX, &options.jobs) && options.jobs > 0)
        return true;
    tw_complain("tickwheel run: --jobs: expected a number from 1 to 1024, found \"%s\"", text);
    return false;
}

enum { OPTION_EXEC = 1, OPTION_JOBS, OPTION_SPEED, OPTION_REST, OPTION_STRICT, OPTION_QUIET };

static bool take_option(int code)
{
    switch (code) {
    case OPTION_EXEC:
        options.exec = optarg;
        return true;
    case OPTION_JOBS:
        return parse_jobs(optarg);
    case OPTION_SPEED:
        return parse_speed(optarg);
    case OPTION_REST:
        options.rest = optarg;
        return true;
    case OPTION_STRICT:
        options.strict = true;
        return true;
    default:
        options.quiet = true;
        return true;
    }
}

/* Returns -1 to go on, else an exit status. */
static int parse_arguments(int argc, char **argv)
{
    static const struct option LONG[] = {{"exec", required_argument, NULL, OPTION_EXEC},
                                         {"jobs", required_argument, NULL, OPTION_JOBS},
                                         {"speed", required_argument, NULL, OPTION_SPEED},
                                         {"rest", required_argument, NULL, OPTION_REST},
                                         {"strict", no_argument, NULL, OPTION_STRICT},
                                         {"quiet", no_argument, NULL, OPTION_QUIET},
                                         {"help", no_argument, NULL, 'h'},
                                         {NULL, 0, NULL, 0}};
    options.jobs = JOBS_DEFAULT;
    options.speed = 1;
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, ":h", LONG, NULL)) != -1;) {
        if (code == 'h') {
            fputs(HELP, stdout);
            return TW_EXIT_GOOD;
        }
        if (code == '?' || code == ':')
            return tw_complain_option(code, argv);
        if (!take_option(code))
            return TW_EXIT_INPUT;
    }
    return -1;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static void on_signal(int number)
{
    int saved = errno;
    signalled = number;
    wake();
    errno = saved;
}

static bool prepare(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct timespec now;
    struct tw_sched_options sched_options = {.tick_ns = TICK_NS,
                                             .workers = options.exec != NULL ? (uint32_t)options.jobs : 0};
    if (!tw_lines_pipe(wake_pipe) || tw_sched_new(&sched, &sched_options) != 0) {
        tw_complain("tickwheel run: the scheduler cannot be started: %s", strerror(errno));
        return false;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    clock_gettime(CLOCK_REALTIME, &now);
    begun_ns = tw_sched_now(sched);
    begun_wall_ns = (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
    return true;
}

static bool read_all(int count, char **paths)
{
    bool good = true;
    if (count == 0)
        return read_file("-");
    for (int i = 0; i < count && !stopping(); i++)
        good &= read_file(paths[i]);
    return good;
}

int tw_command_run(int argc, char **argv)
{
    int status = parse_arguments(argc, argv);
    if (status >= 0)
        return status;
    if (!prepare())
        return TW_EXIT_WRONG;
    bool read = read_all(argc - optind, argv + optind);
    wait_for_the_last();
    bool written = stop_and_write_rest();
    if (!options.quiet)
        print_summary();
    tw_sched_free(sched);
    if (!read || (options.strict && input.bad_lines > 0))
        return TW_EXIT_INPUT;
    return written && input.bad_lines == 0 ? TW_EXIT_GOOD : TW_EXIT_WRONG;
}
