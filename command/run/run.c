/* SPDX-License-Identifier: MIT
 *
 * tickwheel run: runs delayed tasks for a shell and for pipes. The main thread reads lines and passes them to
 * an engine, which calls the tasks on other threads when they are due. The run ends when the input has ended
 * and no task waits or is under way any more.
 */
#include "calls.h"
#include "clock.h"
#include "command.h"
#include "engine.h"
#include "figures.h"
#include "memory.h"
#include "news.h"
#include "rest.h"
#include "screen.h"

#include <base/saturate.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char COMMAND[] = "tickwheel run";
enum { MS_NS = 1000000, PAUSE_MS = 2, LOOK_MS = 1000, STATUS_MS = 250 };

static struct run_options options;
static struct run run = {.options = &options};
static const struct engine *engine;

static void note_signal(int number)
{
    int saved = errno;
    if ((run.signalled || run.waits) && signal_hurries(number) && run.children != NULL)
        children_give_up(run.children);
    run.signalled = number;
    calls_wake(&run, true);
    screen_quit();
    errno = saved;
}

/* ---- waiting --------------------------------------------------------------------------------------------- */

static void show_status(void)
{
    struct run_now now = {.next_ms = UINT64_MAX};
    char text[256];
    if (!screen_live())
        return;
    engine->look(&now);
    int at = snprintf(text, sizeof text, "%sattempts: %" PRIu64 ", under way: %" PRIu64, now.before,
                      tally_calls(run.tally), now.under_way);
    if (now.next_ms != UINT64_MAX && now.next_ms > 0)
        snprintf(text + at, sizeof text - (size_t)at, ", next in %s", figure_time(now.next_ms, MS_NS).text);
    screen_show(text);
}

/* Waits until it is woken, but no longer than `most_ms`, nor than the status line and the news may wait.
 * Returns whether it was woken. */
static bool sleep_until_woken(uint64_t most_ms)
{
    struct pollfd fd = {.fd = run.wake[0], .events = POLLIN};
    uint64_t ours_ms = screen_live() ? STATUS_MS : NEWS_MS;
    show_status();
    return poll(&fd, 1, (int)(most_ms < ours_ms ? most_ms : ours_ms)) > 0;
}

/* Sleeps for the duration of a `wait`. If the run is stopped meanwhile, notes the part that is left. The clock
 * goes on while the machine sleeps, as that of the tasks in memory. */
static void do_wait(uint64_t ns)
{
    uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
    uint64_t end_ns = tw__add_saturating(now_ns, calendar_scale(&run.calendar, ns));
    for (; !calls_stop(&run) && now_ns < end_ns; now_ns = clock_ns(CLOCK_BOOTTIME)) {
        sleep_until_woken((end_ns - now_ns - 1) / MS_NS + 1);
        engine->settle();
    }
    if (now_ns < end_ns)
        run.wait_ns = calendar_left(&run.calendar, end_ns, now_ns);
}

/* Empties the pipe, and lets more calls come together before the engine is asked again. */
static void rest_a_little(void)
{
    char bytes[4096];
    while (read(run.wake[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
        ;
    sleep_ns((uint64_t)PAUSE_MS * MS_NS);
}

/* Waits for the last task. A call wakes us before its task has ended, so at first we ask again soon. */
static void wait_for_the_last_task(void)
{
    uint64_t soon_ms = PAUSE_MS;
    atomic_store(&run.input_ended, !options.stay);
    while (!calls_stop(&run) && engine->busy()) {
        engine->settle();
        bool woken = sleep_until_woken(options.stay ? NEWS_MS : soon_ms);
        soon_ms = woken ? PAUSE_MS : soon_ms * 2 < LOOK_MS ? soon_ms * 2 : LOOK_MS;
        if (woken && !calls_stop(&run))
            rest_a_little();
    }
}

/* ---- the input ------------------------------------------------------------------------------------------- */

static const char *take_line(void *arg, const struct line *line)
{
    (void)arg;
    if (line->kind != LINE_WAIT)
        return engine->take(line);
    if (engine->settle())
        do_wait(line->time_ns);
    return NULL;
}

/* No line has arrived. */
static int settle_when_idle(void *arg)
{
    (void)arg;
    engine->settle();
    show_status();
    return screen_live() ? STATUS_MS : NEWS_MS;
}

static bool stops(void *arg)
{
    (void)arg;
    return calls_stop(&run);
}

/* Whether standard input is left alone: a service that was started at a terminal would be stopped by it as soon
 * as it is in the background (SIGTTIN). */
static bool leaves_terminal(void)
{
    if (!options.stay || !isatty(STDIN_FILENO))
        return false;
    if (!options.quiet) {
        screen_hide();
        complain("%s: the terminal is not read, as --stay is given; name the file - to read it", COMMAND);
    }
    return true;
}

/* Reads a file or, if the run stops, leaves it unread. Returns false if it cannot be read. */
static bool read_file(const char *path)
{
    run.all_read = false;
    if (calls_stop(&run))
        return run.unread == NULL || rest_file(path, run.unread);
    bool good = reader_read(&run.reader, path, run.unread);
    run.all_read = run.reader.ended;
    return good;
}

/* Returns false if a file cannot be read. */
static bool read_input(int count, char **paths)
{
    bool good = true;
    if (count == 0 && !leaves_terminal())
        good = read_file("-");
    for (int i = 0; i < count; i++)
        good &= read_file(paths[i]);
    engine->settle();
    return good;
}

/* ---- the end --------------------------------------------------------------------------------------------- */

/* The stop waits for the commands that run. If the rest goes to standard error, that is to be an input file. */
static void limit_commands(void)
{
    if (run.children == NULL)
        return;
    if (options.has_grace)
        children_give_up_after(run.children, options.grace_ms);
    run.waits = true;
    job_tell_waiting(run.unread != NULL && options.rest == NULL ? "# tickwheel run" : COMMAND,
                     children_running(run.children), options.has_grace, run.signalled != 0);
}

static void print_lines(FILE *out)
{
    fprintf(out, "attempts: %" PRIu64 "; tasks put: %" PRIu64 ", cancelled: %" PRIu64 ", moved: %" PRIu64,
            tally_calls(run.tally), run.lines.put, run.lines.cancelled, run.lines.moved);
    if (run.replaced > 0)
        fprintf(out, ", replaced by a later line: %" PRIu64, run.replaced);
    fputc('\n', out);
    if (run.lines.unknown > 0)
        fprintf(out, "lines without effect: %" PRIu64 " (move or cancel of an id without a pending task)\n",
                run.lines.unknown);
    if (run.reader.bad_lines > 0)
        fprintf(out, "lines skipped: %" PRIu64 " (malformed, see above; correct and run them again)\n",
                run.reader.bad_lines);
}

/* Prints nothing with --quiet, but for an error. Returns false if the tasks that are left cannot be counted. */
static bool print_summary(FILE *out)
{
    if (atomic_load(&run.stuck) || screen_error() != 0)
        fprintf(out, "%s: stopped, as standard output cannot be written: %s\n", COMMAND,
                screen_reason(screen_error() != 0 ? screen_error() : ENOMEM));
    if (options.quiet)
        return engine->left(NULL);
    print_lines(out);
    bool known = engine->left(out);
    tally_print(run.tally, options.exec != NULL, out);
    return known;
}

/* If the rest is on standard error, the summary's lines begin with '#': rest and summary together are an
 * input file. */
static void print_notes(const char *text)
{
    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        fprintf(stderr, "%s%.*s\n", run.rest_above ? "# " : "", (int)size, text);
        text += size + (text[size] == '\n');
    }
}

/* Stops the engine and prints the summary. Returns false if tasks or the output were lost. */
static bool finish(void)
{
    char *text = NULL;
    size_t size = 0;
    limit_commands();
    bool good = engine->stop();
    FILE *notes = open_memstream(&text, &size);
    good = notes != NULL && print_summary(notes) && good;
    screen_hide();
    if ((run.signalled || atomic_load(&run.damaged)) && !run.rest_above)
        screen_last_words();
    if (notes != NULL && fclose(notes) == 0)
        print_notes(text);
    free(text);
    return good && !run.failed && !atomic_load(&run.stuck) && !atomic_load(&run.damaged) && screen_error() == 0;
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

static bool prepare(void)
{
    screen_begin(!options.quiet, options.exec != NULL, true);
    run.calendar.speed = options.speed;
    run.tally = tally_new();
    if (run.tally == NULL || pipe2(run.wake, O_CLOEXEC | O_NONBLOCK) != 0) {
        complain("%s: the run cannot be started: %s", COMMAND, strerror(errno));
        return false;
    }
    run.reader = (struct reader){.command = COMMAND,
                                 .wake = run.wake[0],
                                 .strict = options.strict,
                                 .take = take_line,
                                 .idle = settle_when_idle,
                                 .stopping = stops,
                                 .hide = screen_hide};
    signals_catch(note_signal);
    return engine->start(&run);
}

static int do_run(int count, char **paths)
{
    if (!prepare())
        return COMMAND_WRONG;
    bool read = read_input(count, paths);
    wait_for_the_last_task();
    bool good = finish();
    if (!read || run.reader.stopped)
        return COMMAND_INPUT;
    return good && run.reader.bad_lines == 0 ? COMMAND_GOOD : COMMAND_WRONG;
}

int command_run(int argc, char **argv)
{
    int status = run_options_parse(argc, argv, &options);
    if (status >= 0)
        return status;
    engine = options.store != NULL ? command_run_store() : &engine_of_memory;
    if (engine == NULL)
        return COMMAND_WRONG;
    status = do_run(argc - optind, argv + optind);
    engine->end();
    children_free(run.children);
    tally_free(run.tally);
    return status;
}
