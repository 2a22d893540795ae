/* SPDX-License-Identifier: MIT
 *
 * tickwheel work: a worker whose handler is a command. One thread polls the signals, the source of tasks and
 * the outputs of the commands, and everything that waits for a time is a timer of one wheel.
 *
 * The end comes in steps. A first signal: no more tasks are taken, and the commands go on. A second one, or the
 * end of --grace: SIGTERM to the commands, and JOB_KILL_MS later, or at a third signal, SIGKILL. When no
 * command runs any more, the results that are under way get LAST_MS, or without a second signal as long as it
 * takes.
 */
#include "child.h"
#include "command.h"
#include "crew.h"
#include "failures.h"
#include "screen.h"
#include "source.h"
#include "work_options.h"
#include "work_status.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { LAST_MS = 3000, PAUSE_MS = 1000 };
static const char COMMAND[] = "tickwheel work";

struct worker {
    const struct work_options *options;
    struct timers *timers;
    struct source *source;
    struct crew *crew;
    struct pollfd *fds;
    int signals; /* a signalfd */
    struct work_counts counts;
    struct news news;
    struct failures failures;
    struct taken **unstarted; /* tasks whose commands could not be started; they go back after a pause */
    size_t unstarted_count;
    bool stopping, hurried, given_up, failed, late; /* hurried: by a second signal */
    struct timer grace, kill, last, pause, status, look;
};

/* ---- tasks ----------------------------------------------------------------------------------------------- */

static void give(struct worker *worker, struct taken *taken, enum result result, const char *error)
{
    worker->source->kind->answer(worker->source, taken, result, error);
}

/* A task whose error passes goes back after a pause: at once it would come again at once. */
static void cannot_start(struct worker *worker, struct taken *taken, int error)
{
    char text[160];
    snprintf(text, sizeof text, "cannot be started: %s", strerror(error));
    if (!job_error_passes(error)) {
        give(worker, taken, RESULT_FAILED, text);
        return;
    }
    if (screen_can_tell()) {
        screen_hide();
        complain("%s: the command of a task %s", COMMAND, text);
    }
    worker->unstarted[worker->unstarted_count++] = taken;
    if (!timers_wait(&worker->pause))
        timers_set(worker->timers, &worker->pause, PAUSE_MS);
}

static size_t places(void *arg)
{
    const struct worker *worker = arg;
    return timers_wait(&worker->pause) ? 0 : crew_places(worker->crew);
}

static void on_taken(void *arg, struct taken *taken)
{
    struct worker *worker = arg;
    int error = crew_start(worker->crew, taken);
    if (error != 0)
        cannot_start(worker, taken, error);
}

static void end_pause(void *arg)
{
    struct worker *worker = arg;
    while (worker->unstarted_count > 0)
        give(worker, worker->unstarted[--worker->unstarted_count], RESULT_BACK, NULL);
}

static void on_ended(void *arg, struct taken *taken, enum result result, const char *error)
{
    give(arg, taken, result, error);
}

static void on_beat(void *arg, struct taken *taken)
{
    struct worker *worker = arg;
    worker->source->kind->touch(worker->source, taken);
}

static void on_not_yours(void *arg, struct taken *taken)
{
    (void)arg;
    work_say_not_yours(taken);
}

/* A file tells of its tasks itself, when their ends are on the disk. */
static void on_settled(void *arg, const struct taken *taken, enum outcome outcome, const char *error)
{
    struct worker *worker = arg;
    worker->counts.of[outcome]++;
    if (worker->options->store != NULL)
        return;
    if (outcome == OUTCOME_DEAD || (outcome == OUTCOME_FAILED && failures_note(&worker->failures, taken)))
        work_say_failed(&worker->news, taken, outcome == OUTCOME_DEAD, error);
}

static void on_ready(void *arg, const char *address)
{
    const struct worker *worker = arg;
    if (!worker->options->quiet)
        work_say_ready(worker->options, address);
}

/* ---- the steps of the end -------------------------------------------------------------------------------- */

static void kill_commands(void *arg)
{
    struct worker *worker = arg;
    crew_give_up(worker->crew, SIGKILL);
}

static void end_late(void *arg)
{
    struct worker *worker = arg;
    worker->late = true;
}

static void give_up(void *arg)
{
    struct worker *worker = arg;
    if (worker->given_up)
        return;
    worker->given_up = true;
    crew_give_up(worker->crew, SIGTERM);
    timers_set(worker->timers, &worker->kill, JOB_KILL_MS);
    timers_set(worker->timers, &worker->last, JOB_KILL_MS + LAST_MS);
}

static void stop(struct worker *worker)
{
    if (worker->stopping)
        return;
    worker->stopping = true;
    screen_quit();
    timers_cancel(worker->timers, &worker->pause);
    end_pause(worker);
    worker->source->kind->stop(worker->source);
    if (worker->options->has_grace)
        timers_set(worker->timers, &worker->grace, worker->options->grace_ms);
}

static void stop_and_tell(struct worker *worker, bool signalled)
{
    stop(worker);
    if (!worker->options->quiet && screen_can_tell())
        job_tell_waiting(COMMAND, crew_running(worker->crew), worker->options->has_grace, signalled);
}

/* A user who must mend something need not wait for it with a signal. */
static void on_failed(void *arg)
{
    struct worker *worker = arg;
    worker->failed = true;
    if (!worker->stopping)
        stop_and_tell(worker, false);
}

static void on_stop_signal(struct worker *worker, int number)
{
    if (worker->stopping) {
        if (!signal_hurries(number))
            return;
        if (worker->hurried)
            kill_commands(worker);
        worker->hurried = true;
        give_up(worker);
        return;
    }
    stop_and_tell(worker, true);
}

static void take_signals(struct worker *worker)
{
    struct signalfd_siginfo info;
    while (read(worker->signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo == SIGCHLD)
            crew_reap(worker->crew);
        else
            on_stop_signal(worker, (int)info.ssi_signo);
}

static bool has_ended(const struct worker *worker)
{
    if (!worker->stopping || crew_running(worker->crew) > 0)
        return false;
    return worker->late || worker->source->kind->at_rest(worker->source);
}

/* ---- the loop -------------------------------------------------------------------------------------------- */

static void update_status(void *arg)
{
    struct worker *worker = arg;
    work_show_status(worker->source, &worker->counts, crew_running(worker->crew), worker->stopping);
    timers_set(worker->timers, &worker->status, WORK_STATUS_MS);
}

static void tell_news(void *arg)
{
    struct worker *worker = arg;
    news_look(&worker->news);
    timers_set(worker->timers, &worker->look, NEWS_MS);
}

/* Signals come before timers: a command may have ended well while the worker stood still (Ctrl-Z), and has not
 * timed out then. The source has its turn last, so that it sends at once whatever the others have given it. */
static void loop(struct worker *worker)
{
    const struct source_kind *kind = worker->source->kind;
    while (!has_ended(worker)) {
        struct pollfd *fds = worker->fds;
        fds[0] = (struct pollfd){.fd = worker->signals, .events = POLLIN};
        size_t own = 1 + kind->watch(worker->source, fds + 1), outputs = crew_watch(worker->crew, fds + own);
        poll(fds, own + outputs, timers_patience_ms(worker->timers));
        take_signals(worker);
        timers_fire(worker->timers);
        crew_pass(worker->crew, fds + own, outputs);
        kind->turn(worker->source);
    }
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

/* Each worker waits for other times before it connects again (wire.h). */
static void seed(void)
{
    unsigned seed = (unsigned)getpid();
    (void)!getentropy(&seed, sizeof seed);
    srandom(seed);
}

/* All threads that begin later block these signals too. A command gets them as usual. */
static bool catch_signals(struct worker *worker)
{
    sigset_t set;
    sigemptyset(&set);
    signals_to_stop(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    worker->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return worker->signals >= 0;
}

static bool make_source(struct worker *worker)
{
    const struct source_events events = {.ready = on_ready,
                                         .places = places,
                                         .taken = on_taken,
                                         .not_yours = on_not_yours,
                                         .settled = on_settled,
                                         .failed = on_failed,
                                         .arg = worker};
    const struct work_options *options = worker->options;
    worker->source = options->store != NULL ? command_work_store(options, worker->timers, &events)
                                            : source_server(options, worker->timers, &events);
    return worker->source != NULL;
}

static bool make_crew(struct worker *worker)
{
    const struct work_options *options = worker->options;
    const struct crew_options crew = {.exec = options->exec,
                                      .jobs = options->jobs,
                                      .beat_ms = options->lease_ms < 3 ? 1 : options->lease_ms / 3,
                                      .timeout_ms = options->timeout_ms,
                                      .output = screen_live() && isatty(STDOUT_FILENO),
                                      .leave = options->leave,
                                      .ended = on_ended,
                                      .beat = on_beat,
                                      .arg = worker};
    worker->crew = crew_new(&crew, worker->timers);
    worker->unstarted = calloc(options->jobs, sizeof(struct taken *));
    worker->fds = calloc(1 + SOURCE_WATCHES + CHILD_WATCHES * options->jobs, sizeof worker->fds[0]);
    if (worker->crew != NULL && worker->unstarted != NULL && worker->fds != NULL)
        return true;
    complain("%s: there is no memory", COMMAND);
    return false;
}

static bool make(struct worker *worker)
{
    seed();
    worker->timers = timers_new();
    if (worker->timers == NULL || !catch_signals(worker)) {
        complain("%s: the worker cannot be started: %s", COMMAND, strerror(errno));
        return false;
    }
    return make_source(worker) && make_crew(worker);
}

/* Returns whether the results of all tasks are recorded. */
static bool end(struct worker *worker)
{
    bool good = worker->source == NULL || worker->source->kind->free(worker->source);
    crew_free(worker->crew);
    timers_free(worker->timers);
    free(worker->unstarted);
    free(worker->fds);
    return good;
}

static int work(struct worker *worker)
{
    bool made = make(worker);
    if (made && screen_live())
        update_status(worker);
    if (made) {
        tell_news(worker);
        loop(worker);
    }
    screen_last_words();
    bool good = end(worker) && made && !worker->failed;
    news_end(&worker->news);
    if (made && !worker->options->quiet)
        work_say_stopped(&worker->counts);
    screen_hide();
    return good ? COMMAND_GOOD : COMMAND_WRONG;
}

int command_work(int argc, char **argv)
{
    struct work_options options;
    int status = work_options_parse(argc, argv, &options);
    if (status >= 0)
        return status;
    struct worker worker = {.options = &options,
                            .news = {.command = COMMAND, .lock = PTHREAD_MUTEX_INITIALIZER}};
    worker.grace = (struct timer){.fire = give_up, .arg = &worker};
    worker.kill = (struct timer){.fire = kill_commands, .arg = &worker};
    worker.last = (struct timer){.fire = end_late, .arg = &worker};
    worker.pause = (struct timer){.fire = end_pause, .arg = &worker};
    worker.status = (struct timer){.fire = update_status, .arg = &worker};
    worker.look = (struct timer){.fire = tell_news, .arg = &worker};
    screen_begin(!options.quiet, false, false);
    return work(&worker);
}
