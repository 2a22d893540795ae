/* SPDX-License-Identifier: MIT
 *
 * tickwheel run --store: the tasks are rows of a file, and this process runs them. The main thread reads lines
 * and puts them into the file, where the store's own thread finds them like the tasks of any other process.
 * So nothing depends on the memory of this process: if it is killed, the next run goes on.
 *
 * The run ends when the input has ended and no task waits or runs any more, as without --store. The file is
 * asked for that after each call, and each second, because other processes put, cancel and move tasks too.
 */
#include "batch.h"
#include "command.h"
#include "figures.h"
#include "handler.h"
#include "lines.h"
#include "news.h"
#include "pauses.h"
#include "printable.h"
#include "reader.h"
#include "run_options.h"
#include "screen.h"
#include "store_file.h"

#include <base/saturate.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char COMMAND[] = "tickwheel run";
enum { MS_NS = 1000000, PAUSE_MS = 2, LOOK_MS = 1000, STATUS_MS = 250, NEWS_MS = 60000 };

static struct {
    const struct run_options *options;
    struct tw_store *store;
    struct handler handler;
    struct batch batch;
    struct reader reader;
    struct pauses pauses;
    struct news news;
    int64_t at_start;                    /* tasks in the file; an error: unknown */
    bool reading_ended;                  /* at the end of the last file, not before */
    bool lines_wait;                     /* they could not be put into the file */
    uint64_t asked_ms, rest_ms, next_ms; /* when next_due() has asked the file, for how long, the answer */
} run;
static int wake_pipe[2]; /* signals and calls write a byte */
static volatile sig_atomic_t signalled;
static _Atomic bool input_ended, damaged; /* damaged: the file is, or was replaced, and the run ends */

/* ---- waking ---------------------------------------------------------------------------------------------- */

static void wake_main(void)
{
    while (write(wake_pipe[1], "", 1) < 0 && errno == EINTR)
        ;
}

static void wake_after_call(bool stop)
{
    if (stop || atomic_load(&input_ended))
        wake_main();
}

static void note_signal(int number)
{
    int saved = errno;
    if (signalled && signal_hurries(number) && run.handler.children != NULL)
        children_give_up(run.handler.children);
    signalled = number;
    wake_main();
    screen_quit();
    errno = saved;
}

static bool stops_now(void *arg)
{
    (void)arg;
    return signalled || atomic_load(&damaged) || run.reader.stopped || run.batch.failed ||
           handler_stuck(&run.handler);
}

/* ---- the file -------------------------------------------------------------------------------------------- */

/* Counts the tasks of the queues that this run runs; `dead`: the dead tasks. Returns: how many, or an error. */
static int64_t count_tasks(bool dead)
{
    return tw_store_count(run.store, run.options->task.queue, dead);
}

/* Returns when the next task is due that waits or runs, TW_NEVER if there is none; 0 if the file cannot be
 * read now. The question costs time for each queue of the file, so an answer is good for a while. */
static uint64_t next_due(void)
{
    uint64_t now_ms = tw_store_now();
    if (now_ms >= run.asked_ms && now_ms - run.asked_ms < run.rest_ms)
        return run.next_ms;
    run.asked_ms = now_ms;
    if (tw_store_next(run.store, run.options->task.queue, &run.next_ms) != 0)
        run.next_ms = 0;
    run.rest_ms = store_file_rest_ms(now_ms);
    return run.next_ms;
}

/* A run in standby has not had its turn, even if no task waits now. */
static bool has_tasks(void)
{
    struct tw_store_stats stats;
    tw_store_stats(run.store, &stats);
    if (stats.jobs > 0 || run.options->stay || !stats.running || next_due() != TW_NEVER)
        return true;
    run.rest_ms = 0; /* a task may have come since the question: the end of a run needs a new answer */
    return next_due() != TW_NEVER;
}

static void tell_news(void)
{
    news_look(&run.news);
    pauses_tell(&run.pauses, run.store, run.options->store, run.options->task.queue);
}

/* News of the store's thread, which tries again each second after an error. A damaged file does not end a run
 * that is to stay: somebody may mend it. */
static void on_store_error(void *arg, int error, const char *message)
{
    const char *ends = error == TW_ECORRUPT && run.options->stay ? NULL : news_ends(error);
    (void)arg;
    if (news_is_of_task(error))
        news_task(&run.news, message);
    else
        news_file(&run.news, error, message, ends);
    if (ends != NULL) {
        atomic_store(&damaged, true);
        wake_main();
        screen_quit();
    }
}

/* Asks whether to try once more, after a second, to put lines into the file. They are kept meanwhile, and no
 * more are read. An error that goes away by itself does not end a run. */
static bool try_again(int error)
{
    struct pollfd fd = {.fd = wake_pipe[0], .events = POLLIN};
    if ((error != TW_EBUSY && error != TW_ENOSPACE) || stops_now(NULL))
        return false;
    if (!run.lines_wait) {
        screen_hide();
        store_file_complain(run.store, COMMAND, run.options->store, "lines wait, and are tried again");
    }
    run.lines_wait = true;
    poll(&fd, 1, LOOK_MS);
    return !stops_now(NULL);
}

/* Puts the lines that have been read into the file. Returns false if that has failed for good. */
static bool commit_lines(void)
{
    bool good = batch_commit(&run.batch);
    if (good && run.lines_wait) {
        screen_hide();
        complain("%s: %s: the lines that waited are in the file", COMMAND, run.options->store);
        run.lines_wait = false;
    }
    return good;
}

/* ---- the status line ------------------------------------------------------------------------------------- */

static void show_status(void)
{
    struct tw_store_stats stats;
    char text[200];
    if (!screen_live())
        return;
    tw_store_stats(run.store, &stats);
    uint64_t next_ms = next_due(), now_ms = tw_store_now();
    int at = snprintf(text, sizeof text, "%sattempts: %" PRIu64 ", under way: %" PRIu64,
                      stats.running ? "" : "standing by: another process runs the tasks; ",
                      tally_calls(run.handler.tally), stats.jobs);
    if (next_ms != TW_NEVER && next_ms > now_ms)
        snprintf(text + at, sizeof text - (size_t)at, ", nothing due for %s",
                 figure_time(next_ms - now_ms, MS_NS).text);
    screen_show(text);
}

static int patience_ms(int most_ms)
{
    int ours_ms = screen_live() ? STATUS_MS : NEWS_MS;
    return most_ms < ours_ms ? most_ms : ours_ms;
}

/* ---- lines ----------------------------------------------------------------------------------------------- */

/* Sleeps for the duration of a `wait`. */
static void do_wait(uint64_t ns)
{
    uint64_t now_ms = tw_store_now(), end_ms = tw__add_saturating(now_ms, (ns + MS_NS - 1) / MS_NS);
    for (; !stops_now(NULL) && now_ms < end_ms; now_ms = tw_store_now()) {
        uint64_t ms = end_ms - now_ms;
        struct pollfd fd = {.fd = wake_pipe[0], .events = POLLIN};
        show_status();
        poll(&fd, 1, patience_ms(ms > 1000000000 ? 1000000000 : (int)ms));
    }
}

static const char *take_into_file(void *arg, const struct line *line)
{
    (void)arg;
    if (line->kind != LINE_WAIT)
        return batch_add(&run.batch, line);
    if (commit_lines())
        do_wait(line->time_ns);
    return NULL;
}

/* No line has arrived: the lines that have been read are committed. */
static int commit_when_idle(void *arg)
{
    (void)arg;
    commit_lines();
    tell_news();
    show_status();
    return patience_ms(NEWS_MS);
}

/* Says which lines are not in the file. */
static void complain_of_lines(void)
{
    char text[200];
    snprintf(text, sizeof text, "stopped; the lines after the first %" PRIu64 " %s not in the file",
             run.batch.tally.lines,
             run.batch.tally.lines == 1 ? "task, move or cancel are" : "tasks, moves and cancels are");
    screen_hide();
    store_file_complain(run.store, COMMAND, run.options->store, text);
}

/* Whether standard input is left alone: a service that was started at a terminal would be stopped by it as soon
 * as it is in the background (SIGTTIN). */
static bool leaves_terminal(void)
{
    if (!run.options->stay || !isatty(STDIN_FILENO))
        return false;
    if (!run.options->quiet) {
        screen_hide();
        complain("%s: the terminal is not read, as --stay is given; name the file - to read it", COMMAND);
    }
    return true;
}

/* Reads the files, and leaves every line that was read in the file of tasks. Returns false if a file cannot be
 * read. */
static bool read_input(int count, char **paths)
{
    bool good = true;
    int i = 0;
    if (count == 0 && !leaves_terminal())
        good = reader_read(&run.reader, "-", NULL);
    for (; i < count && !stops_now(NULL); i++)
        good &= reader_read(&run.reader, paths[i], NULL);
    run.reading_ended = run.reader.ended && i == count;
    if (!commit_lines())
        complain_of_lines();
    return good;
}

/* ---- the end --------------------------------------------------------------------------------------------- */

/* Empties the pipe, and lets more calls come together before the file is asked again. */
static void rest_a_little(void)
{
    char bytes[4096];
    struct timespec pause = {0, (long)PAUSE_MS * MS_NS};
    while (read(wake_pipe[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
        ;
    nanosleep(&pause, NULL);
}

/* Waits for the last task. A call wakes us before its answer is in the file, so at first we ask again soon. */
static void wait_for_the_last_task(void)
{
    struct pollfd fd = {.fd = wake_pipe[0], .events = POLLIN};
    int soon_ms = PAUSE_MS;
    atomic_store(&input_ended, !run.options->stay);
    while (!stops_now(NULL) && has_tasks()) {
        tell_news();
        show_status();
        bool woken = poll(&fd, 1, patience_ms(run.options->stay ? NEWS_MS : soon_ms)) > 0;
        soon_ms = woken ? PAUSE_MS : soon_ms * 2 < LOOK_MS ? soon_ms * 2 : LOOK_MS;
        if (woken && !stops_now(NULL))
            rest_a_little();
    }
}

static void print_lines(FILE *out)
{
    const struct batch_tally *tally = &run.batch.tally;
    fprintf(out, "attempts: %" PRIu64 "; tasks put: %" PRIu64 ", cancelled: %" PRIu64 ", moved: %" PRIu64 "\n",
            tally_calls(run.handler.tally), tally->put, tally->cancelled, tally->moved);
    if (tally->unknown > 0)
        fprintf(out, "lines without effect: %" PRIu64 " (move or cancel of an id without a pending task)\n",
                tally->unknown);
    if (run.reader.bad_lines > 0)
        fprintf(out, "lines skipped: %" PRIu64 " (malformed, see above; correct and put them)\n",
                run.reader.bad_lines);
    if (!run.reading_ended && run.reader.number > 0 && !run.batch.failed) /* else complain_of_lines() */
        fprintf(out,
                "the input was read up to line %" PRIu64 " of %s; the lines behind it are not in the file\n",
                run.reader.number, strcmp(run.reader.path, "-") == 0 ? "standard input" : run.reader.path);
}

static void print_count(int64_t count, const char *when, FILE *out)
{
    if (count < 0)
        fprintf(out, "unknown %s", when);
    else
        fprintf(out, "%" PRId64 " %s", count, when);
}

/* Prints nothing with --quiet, but for an error. Returns false if the tasks cannot be counted. */
static bool print_summary(FILE *out)
{
    const struct tally *tally = run.handler.tally;
    int64_t left = count_tasks(false), dead = left < 0 ? left : count_tasks(true);
    bool known = left >= 0 && dead >= 0;
    if (!known && !atomic_load(&damaged)) /* else the reason has been told */
        store_file_complain(run.store, COMMAND, run.options->store, "the tasks cannot be counted");
    if (run.options->quiet)
        return known;
    print_lines(out);
    fputs("tasks in the file: ", out);
    print_count(run.at_start, "at the start, ", out);
    print_count(known ? left : -1, "now", out);
    if (dead > 0) {
        fprintf(out, ", and %" PRId64 " dead (tickwheel tasks --store ", dead);
        printable_word(run.options->store, out);
        fputs(" dead)", out);
    }
    fputc('\n', out);
    tally_print_overdue(tally, out);
    if (run.options->exec != NULL)
        tally_print_commands(tally, out);
    tally_print_lateness(tally, out);
    if (left > 0) {
        fputs("To go on with them later, use `tickwheel run --store ", out);
        printable_word(run.options->store, out);
        fputs("`.\n", out);
    }
    return known;
}

/* The stop waits for the commands that run. */
static void limit_commands(void)
{
    struct children *children = run.handler.children;
    if (children == NULL)
        return;
    if (run.options->has_grace)
        children_give_up_after(children, run.options->grace_ms);
    if (signalled)
        children_tell(children, "", run.options->has_grace);
}

/* Stops the store and prints the summary. Returns false if a line could not be printed, or the file not be read
 * or written. */
static bool finish_run(void)
{
    if (signalled || atomic_load(&damaged))
        screen_last_words();
    handler_give_back(&run.handler);
    limit_commands();
    int error = tw_store_stop(run.store);
    bool good = error == 0;
    if (!good && error != TW_EREPLACED) { /* that one has been told */
        screen_hide();
        store_file_complain(run.store, COMMAND, run.options->store,
                            "the end of a task cannot be written, and it will run again");
    }
    bool stuck = handler_stuck(&run.handler) || screen_error() != 0;
    screen_hide();
    if (stuck)
        complain("%s: stopped, as standard output cannot be written: %s", COMMAND,
                 screen_reason(screen_error() != 0 ? screen_error() : ENOMEM));
    news_end(&run.news);
    good &= print_summary(stderr);
    return good && !stuck && !atomic_load(&damaged);
}

/* ---- the beginning --------------------------------------------------------------------------------------- */

/* Starts the store. Returns false after it has printed an error. */
static bool start_store(void)
{
    struct tw_store_run how = {.flags = run.options->standby ? TW_STORE_STANDBY : 0,
                               .workers = 1,
                               .max_jobs =
                                   run.options->exec != NULL ? (uint32_t)run.options->jobs : HANDLER_JOBS,
                               .on_error = on_store_error};
    struct tw_store_stats stats;
    int error = tw_store_handle(run.store, run.options->task.queue, 0, handler_call, &run.handler);
    if (error == 0)
        error = tw_store_start(run.store, &how);
    if (error == 0) {
        tw_store_stats(run.store, &stats);
        if (!stats.running)
            tally_stand_by(run.handler.tally);
        return true;
    }
    store_file_complain(run.store, COMMAND, run.options->store,
                        error == TW_EBUSY ? "the tasks cannot be run now (--standby waits until they can)"
                                          : "the tasks cannot be run");
    return false;
}

static bool make_run_parts(void)
{
    bool good =
        lines_pipe(wake_pipe) && batch_init(&run.batch, run.store, &run.options->task) &&
        handler_init(&run.handler, run.store, run.options->exec, run.options->jobs, run.options->timeout_ms);
    if (!good)
        complain("%s: the run cannot be started: %s", COMMAND, strerror(errno));
    run.handler.wake = wake_after_call;
    run.batch.again = try_again;
    run.reader = (struct reader){.command = COMMAND,
                                 .wake = wake_pipe[0],
                                 .strict = run.options->strict,
                                 .take = take_into_file,
                                 .idle = commit_when_idle,
                                 .stopping = stops_now,
                                 .hide = screen_hide};
    return good;
}

static int run_store(int count, char **paths)
{
    if (!make_run_parts())
        return COMMAND_WRONG;
    run.at_start = run.options->quiet ? 0 : count_tasks(false);
    signals_catch(note_signal);
    if (!start_store())
        return COMMAND_WRONG;
    bool read = read_input(count, paths);
    wait_for_the_last_task();
    bool good = finish_run() && !run.batch.failed;
    if (!read || run.reader.stopped)
        return COMMAND_INPUT;
    return good && run.reader.bad_lines == 0 ? COMMAND_GOOD : COMMAND_WRONG;
}

int command_run_store(const struct run_options *options, int count, char **paths)
{
    run.options = options;
    run.news = (struct news){.command = COMMAND, .path = options->store, .lock = PTHREAD_MUTEX_INITIALIZER};
    screen_begin(!options->quiet, options->exec != NULL, true);
    run.store = store_file_open(COMMAND, options->store, true);
    if (run.store == NULL)
        return COMMAND_WRONG;
    int status = run_store(count, paths);
    tw_store_close(run.store);
    handler_fini(&run.handler);
    batch_fini(&run.batch);
    return status;
}
