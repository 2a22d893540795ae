/* SPDX-License-Identifier: MIT
 *
 * Handlers, and the beginning and end of a run.
 */
#include "run.h"

#include <base/assert.h>
#include <base/grow.h>

#include "change.h"
#include "commit.h"
#include "open.h"
#include "runner.h"

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    THREADS_MAX = 1024,
    JOBS = 1024,
    JOBS_MAX = 65536,
    LOADED = 100000,
    LOADED_MIN = 1000,
    LOADED_MAX = 100000000
};
static const uint64_t BYTES = UINT64_C(64) << 20;

static int refuse_run(struct tw_store *store, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int refuse_run(struct tw_store *store, int error, const char *format, ...)
{
    char text[TW_STORE_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tw__store_failed(store, error, text);
}

/* ---- handlers -------------------------------------------------------------------------------------------- */

static bool has_handler(const struct tw_store *store, const char *queue)
{
    const struct tw__store_handler *handler = store->run->handlers;
    while (handler != NULL &&
           (queue == NULL ? !handler->others : handler->others || strcmp(handler->queue, queue) != 0))
        handler = handler->next;
    return handler != NULL;
}

static int add_handler(struct tw_store *store, const struct tw__store_handler *like)
{
    const char *queue = like->others ? NULL : like->queue;
    if (store->run->runner != NULL)
        return refuse_run(store, TW_EINVAL, "the store runs: name its handlers before");
    if (has_handler(store, queue))
        return queue != NULL ? refuse_run(store, TW_EINVAL, "queue '%s' has a handler already", queue)
                             : refuse_run(store, TW_EINVAL, "queue NULL, all others, has a handler already");
    struct tw__store_handler *made = malloc(sizeof *made);
    if (made == NULL)
        return refuse_run(store, TW_ENOMEM, "no memory");
    *made = *like;
    made->next = store->run->handlers;
    store->run->handlers = made;
    return 0;
}

int tw_store_handle(struct tw_store *store, const char *queue, uint32_t at_once, tw_store_handler_fn *handler,
                    void *arg)
{
    struct tw__store_handler made = {
        .handler = handler, .arg = arg, .at_once = at_once, .others = queue == NULL};
    char text[TW_STORE_MESSAGE_SIZE];
    struct tw__store_db only_message = {.message = text, .size = sizeof text};
    TW_ASSERT(handler != NULL);
    int error = queue != NULL ? tw__store_queue_check(&only_message, queue) : 0;
    if (error != 0)
        return tw__store_failed(store, error, text);
    if (queue != NULL)
        memcpy(made.queue, queue, strlen(queue) + 1);
    pthread_mutex_lock(&store->run->lock);
    error = add_handler(store, &made);
    pthread_mutex_unlock(&store->run->lock);
    return error;
}

void tw__store_handlers_free(struct tw_store *store)
{
    for (struct tw__store_handler *handler = store->run->handlers, *next; handler != NULL; handler = next) {
        next = handler->next;
        free(handler);
    }
}

/* ---- the options ----------------------------------------------------------------------------------------- */

static int check_run_option(struct tw__store_db *db, const char *name, uint64_t value, uint64_t least,
                            uint64_t most)
{
    if (value == 0 || (value >= least && value <= most))
        return 0;
    return tw__store_db_refuse(db, TW_EINVAL, "%s is '%" PRIu64 "': expected 0, or %" PRIu64 " to %" PRIu64,
                               name, value, least, most);
}

int tw_store_run_options_check(const struct tw_store_run_options *options, char *message, size_t size)
{
    TW_ASSERT(options != NULL && (message != NULL || size == 0));
    struct tw__store_db only_message = {.message = message, .size = size}, *db = &only_message;
    int error = tw__store_range_check(db, "flags", options->flags, 0, TW_STORE_RUN_STANDBY);
    if (error == 0)
        error = check_run_option(db, "workers", options->workers, 1, THREADS_MAX);
    if (error == 0)
        error = check_run_option(db, "max_jobs", options->max_jobs, 1, JOBS_MAX);
    if (error == 0)
        error = check_run_option(db, "max_loaded", options->max_loaded, LOADED_MIN, LOADED_MAX);
    if (error == 0)
        error = tw__store_reserved_check(db, "tw_store_run_options", options->reserved,
                                         TW__GROW_ROOM(options->reserved));
    return error;
}

static uint32_t processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

/* Fills the defaults in. */
static void fill_in(struct tw_store_run_options *options)
{
    if (options->workers == 0)
        options->workers = processors();
    if (options->max_jobs == 0)
        options->max_jobs = JOBS;
    if (options->max_bytes == 0)
        options->max_bytes = BYTES;
    if (options->max_loaded == 0)
        options->max_loaded = LOADED;
}

/* ---- the runner's parts ---------------------------------------------------------------------------------- */

static void free_runner(struct tw__store_runner *runner)
{
    tw__store_pool_fini(&runner->pool);
    tw__store_check_fini(&runner->check);
    tw__store_close(&runner->window.db);
    tw__store_window_fini(&runner->window);
    tw__store_watch_fini(&runner->watch);
    tw__store_lock_release(&runner->file_lock);
    pthread_mutex_destroy(&runner->lock);
    tw__store_jobs_free(runner->lapses.died);
    free(runner->table.jobs);
    free(runner);
}

static struct tw__store_runner *new_runner(struct tw_store *store, const struct tw_store_run_options *options)
{
    struct tw__store_runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL)
        return NULL;
    runner->store = store;
    runner->options = *options;
    fill_in(&runner->options);
    runner->file_lock.fd = -1;
    runner->watch.files = runner->watch.wake = runner->watch.timer = -1;
    runner->pool.check = &runner->check;
    runner->log_max = TW__STORE_LOG_MAX;
    tw__store_pace_init(&runner->pace, runner->options.workers);
    pthread_mutex_init(&runner->lock, NULL);
    tw__store_check_init(&runner->check);
    return runner;
}

static int add_queues(struct tw__store_runner *runner)
{
    struct tw__store_window *window = &runner->window;
    for (const struct tw__store_handler *handler = runner->store->run->handlers; handler != NULL;
         handler = handler->next) {
        struct tw__store_callee callee = {handler->handler, handler->arg, handler->at_once};
        if (handler->others)
            window->others = callee;
        else if (tw__store_window_name(window, handler->queue, &callee) != 0)
            return TW_ENOMEM;
    }
    return 0;
}

/* Names the queues for a process that finds the file locked. */
static void name_queues(struct tw__store_runner *runner)
{
    const struct tw__store_handler *handler = runner->store->run->handlers;
    char *text = runner->queues, shown[TW__STORE_RUN_TEXT];
    size_t room = sizeof runner->queues, used = 0;
    if (has_handler(runner->store, NULL))
        return;
    used += (size_t)snprintf(text, room, handler->next != NULL ? "queues" : "queue");
    for (; handler != NULL && used < room; handler = handler->next) {
        const char *comma = handler == runner->store->run->handlers ? "" : ",";
        tw__store_show(shown, sizeof shown, handler->queue, strlen(handler->queue));
        used += (size_t)snprintf(text + used, room - used, "%s '%s'", comma, shown);
    }
    if (used >= room)
        memcpy(text + room - sizeof "...", "...", sizeof "...");
}

static int make_parts(struct tw__store_runner *runner)
{
    uint64_t buckets = 1;
    name_queues(runner);
    int error = tw__store_window_init(&runner->window, runner->options.max_loaded, runner->options.max_jobs);
    if (error == 0)
        error = add_queues(runner);
    while (buckets < 2 * (uint64_t)runner->options.max_jobs)
        buckets *= 2;
    runner->table = (struct tw__store_table){calloc(buckets, sizeof(void *)), buckets - 1};
    runner->batch.table = &runner->table;
    if (error == 0 && runner->table.jobs == NULL)
        error = TW_ENOMEM;
    return error != 0 ? error : tw__store_watch_init(&runner->watch);
}

/* Opens the window's connection, and locks the file. Returns: 0, or an error with the window's message. */
static int open_window(struct tw__store_runner *runner)
{
    struct tw_store *store = runner->store;
    struct tw__store_db *db = &runner->window.db;
    int error = tw__store_open_further(db, &store->writer.db, &store->options);
    if (error == 0)
        error = tw__store_set(db, &store->options);
    if (error == 0)
        error = tw__store_runner_begin(runner);
    if (error != TW_EBUSY || (runner->options.flags & TW_STORE_RUN_STANDBY) == 0)
        return error;
    runner->window.message[0] = '\0';
    return 0;
}

/* Starts the thread, which takes no signals: signals are for the program's own threads. */
static int start_runner(struct tw__store_runner *runner)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&runner->thread, NULL, tw__store_runner_main, runner);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0 ? 0 : TW_ESYSTEM;
}

/* ---- start and stop -------------------------------------------------------------------------------------- */

static int start(struct tw_store *store, const struct tw_store_run_options *options)
{
    char text[TW_STORE_MESSAGE_SIZE];
    int error = tw_store_run_options_check(options, text, sizeof text);
    if (error != 0)
        return tw__store_failed(store, error, text);
    if (store->run->handlers == NULL)
        return refuse_run(store, TW_EINVAL, "no queue has a handler: tw_store_handle() names one");
    if (store->run->runner != NULL)
        return refuse_run(store, TW_EINVAL, "the store runs already");
    struct tw__store_runner *runner = new_runner(store, options);
    if (runner == NULL)
        return refuse_run(store, TW_ENOMEM, "no memory");
    error = make_parts(runner);
    if (error == 0)
        error = tw__store_pool_init(&runner->pool, &runner->watch, runner->options.workers,
                                    runner->options.max_jobs);
    if (error == 0)
        error = open_window(runner);
    if (error == 0)
        error = start_runner(runner);
    if (error == 0) {
        store->run->runner = runner;
        return 0;
    }
    bool said = runner->window.message[0] != '\0';
    refuse_run(store, error, "%s", said ? runner->window.message : tw_store_strerror(error));
    free_runner(runner);
    return error;
}

int tw_store_start(struct tw_store *store, const struct tw_store_run_options *options)
{
    static const struct tw_store_run_options defaults = {0};
    TW_ASSERT(store->pid == getpid());
    pthread_mutex_lock(&store->run->lock);
    int error = start(store, options != NULL ? options : &defaults);
    pthread_mutex_unlock(&store->run->lock);
    return error;
}

/* The lock is free while the thread ends, because a handler may ask for statistics. */
int tw_store_stop(struct tw_store *store)
{
    int error = 0;
    TW_ASSERT(store->pid == getpid());
    pthread_mutex_lock(&store->run->lock);
    struct tw__store_runner *runner = store->run->runner;
    uint64_t ends = store->run->ends;
    if (runner != NULL && !store->run->stopping) {
        store->run->stopping = true;
        pthread_mutex_unlock(&store->run->lock);
        atomic_store(&runner->pool.stopping, true);
        tw__store_watch_wake(&runner->watch);
        pthread_join(runner->thread, NULL);
        error = runner->lost != 0 ? runner->lost : runner->stats.jobs > 0 ? runner->result : 0;
        pthread_mutex_lock(&store->run->lock);
        store->run->runner = NULL;
        store->run->stopping = false;
        store->run->ends++;
        free_runner(runner);
        pthread_cond_broadcast(&store->run->ended);
    }
    while (runner != NULL && store->run->ends == ends) /* the next run's memory may be the same */
        pthread_cond_wait(&store->run->ended, &store->run->lock);
    pthread_mutex_unlock(&store->run->lock);
    return error;
}

/* ---- numbers --------------------------------------------------------------------------------------------- */

static void read_stats(struct tw__store_runner *runner, struct tw_store_info *stats)
{
    pthread_mutex_lock(&runner->lock);
    *stats = runner->stats;
    stats->late_p50_ms = tw__histogram_percentile(runner->late, 0.5, stats->late_max_ms);
    stats->late_p99_ms = tw__histogram_percentile(runner->late, 0.99, stats->late_max_ms);
    pthread_mutex_unlock(&runner->lock);
}

void tw_store_stats(const struct tw_store *store, struct tw_store_info *stats, size_t size)
{
    struct tw_store_info all = {0};
    pthread_mutex_lock(&store->run->lock);
    if (store->run->runner != NULL)
        read_stats(store->run->runner, &all);
    pthread_mutex_unlock(&store->run->lock);
    tw__grow_fill(stats, size, &all, sizeof all);
}
