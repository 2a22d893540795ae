/* SPDX-License-Identifier: MIT
 *
 * Tasks of a file. The store calls the handler on a thread of its own. The handler hands the job to the
 * worker's thread, and waits until that thread has started the command. The store looks at each task just
 * before it calls the handler, so that look is the last one before the command too. After a pause, a cancel or
 * a mark has returned, one command may still start, whose handler had begun. The worker's thread answers. At
 * most as many jobs as the worker has places are under way.
 *
 * A job of a file has no lease. It is not this worker's any more when its task was cancelled meanwhile, for
 * which `touch` looks. If the task was moved or put anew, the attempt goes on, and the new task stands behind
 * it.
 */
#include "source.h"

#include "command.h"
#include "news.h"
#include "screen.h"
#include "store_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <task/ends.h>
#include <unistd.h>

enum { LOOK_MS = 100 };
static const char COMMAND[] = "tickwheel work";

/* A job that the worker has, or will have. */
struct held {
    struct taken taken; /* the first member */
    struct tw_job *job;
    struct tw_bytes value;
    char token[JOB_TOKEN + 1];
    bool replaced; /* the task was put anew or moved: the attempt goes on, and nothing dies of it */
};

struct file {
    struct source source; /* the first member */
    struct tw_store *store;
    int wake; /* an eventfd: a job has come */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* `came` is NULL again, or `ending` is true */
    struct held *came;      /* the job whose handler waits, or NULL. Under the lock, as the next line */
    bool damaged, ending;
    struct news news;
    bool told_ready, told_mark, stopping;
    struct timer look; /* often while another process runs the tasks, then for news */
};

/* ---- on threads of the store ----------------------------------------------------------------------------- */

static void wake(struct file *file)
{
    uint64_t one = 1;
    while (write(file->wake, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static struct held *hold(struct tw_job *job)
{
    struct held *held = malloc(sizeof *held);
    if (held == NULL)
        return NULL;
    *held = (struct held){.job = job, .value = job->payload};
    held->taken = (struct taken){.queue = job->queue,
                                 .id = job->id,
                                 .value = &held->value,
                                 .values = job->payload.data != NULL,
                                 .due_ms = job->due_ms,
                                 .attempt = job->attempt,
                                 .missed_periods = job->missed_periods,
                                 .late_from_ms = job->late_from_ms,
                                 .token = job_token(job->token, held->token)};
    return held;
}

/* One thread calls it, so at most one handler waits. */
static enum tw_answer handle(void *arg, struct tw_job *job)
{
    struct file *file = arg;
    struct held *held = hold(job);
    if (held == NULL)
        return TW_ANSWER_BACK;
    pthread_mutex_lock(&file->lock);
    file->came = held;
    wake(file);
    while (file->came != NULL && !file->ending)
        pthread_cond_wait(&file->changed, &file->lock);
    bool taken = file->came == NULL;
    file->came = NULL;
    pthread_mutex_unlock(&file->lock);
    if (!taken)
        free(held);
    return taken ? TW_ANSWER_LATER : TW_ANSWER_BACK;
}

static void on_error(void *arg, int error, const char *message)
{
    struct file *file = arg;
    if (!news_error(&file->news, error, message, false))
        return;
    pthread_mutex_lock(&file->lock);
    file->damaged = true;
    pthread_mutex_unlock(&file->lock);
    wake(file);
}

/* ---- on the worker's thread ------------------------------------------------------------------------------ */

static struct file *of(struct source *source)
{
    return (struct file *)source;
}

static void check_damage(struct file *file)
{
    pthread_mutex_lock(&file->lock);
    bool damaged = file->damaged;
    pthread_mutex_unlock(&file->lock);
    if (damaged)
        file->source.events.failed(file->source.events.arg);
}

static void tell_of_mark(struct file *file)
{
    store_file_tell_of_mark(file->store, COMMAND, file->source.options->store, &file->told_mark);
}

static void tell_ready(struct file *file)
{
    struct tw_store_info stats;
    tw_store_stats(file->store, &stats, sizeof stats);
    if (!stats.running)
        return;
    file->told_ready = true;
    file->source.events.ready(file->source.events.arg, file->source.options->store);
    tell_of_mark(file);
}

static void hand_over(struct file *file)
{
    pthread_mutex_lock(&file->lock);
    struct held *held = file->came;
    pthread_mutex_unlock(&file->lock);
    if (held == NULL)
        return;
    file->source.events.taken(file->source.events.arg, &held->taken);
    pthread_mutex_lock(&file->lock);
    file->came = NULL;
    pthread_cond_signal(&file->changed);
    pthread_mutex_unlock(&file->lock);
}

static size_t watch(struct source *source, struct pollfd *fds)
{
    *fds = (struct pollfd){.fd = of(source)->wake, .events = POLLIN};
    return 1;
}

/* After the stop, the handler of a job that comes waits for the end: a job that went back at once would come
 * again at once. */
static void turn(struct source *source)
{
    struct file *file = of(source);
    uint64_t count;
    (void)!read(file->wake, &count, sizeof count);
    check_damage(file);
    if (file->stopping)
        return;
    if (!file->told_ready)
        tell_ready(file);
    hand_over(file);
}

struct look {
    const struct tw_job *job;
    bool ours, replaced;
};

/* The row of a task that was replaced has a new revision, and keeps the number of the attempt. */
static void see(void *arg, const struct tw_store_task *task)
{
    struct look *look = arg;
    bool same = task->replaced ? task->attempt == look->job->attempt : task->revision == look->job->revision;
    look->ours = task->state == TW_STATE_LEASED && same;
    look->replaced = look->ours && task->replaced;
}

/* If the file cannot be read now, the next look will tell. */
static void look_for(struct file *file, struct held *held)
{
    struct look look = {.job = held->job};
    const struct taken *taken = &held->taken;
    int error = tw_store_get(file->store, (struct tw_store_name){taken->queue, taken->id}, see, &look);
    held->replaced = held->replaced || look.replaced;
    held->taken.not_yours = taken->not_yours || (!look.ours && (error == 0 || error == TW_EGONE));
}

static void touch(struct source *source, struct taken *taken)
{
    if (taken->not_yours)
        return;
    look_for(of(source), (struct held *)taken);
    if (taken->not_yours)
        source->events.not_yours(source->events.arg, taken);
}

/* The store counts the failures as we do here: after the last one, TW_ANSWER_FAILED makes the task dead, unless
 * it was replaced. */
static enum outcome outcome_of(const struct held *held, enum result result)
{
    if (held->taken.not_yours)
        return OUTCOME_NOT_YOURS;
    if (result == RESULT_DONE)
        return OUTCOME_DONE;
    if (result == RESULT_BACK || result == RESULT_NOT_YET)
        return OUTCOME_BACK;
    bool last = tw__task_failure_kills(held->job->attempt, held->job->lapses, held->job->tries);
    return last && !held->replaced ? OUTCOME_DEAD : OUTCOME_FAILED;
}

static void answer(struct source *source, struct taken *taken, enum result result, const char *error)
{
    static const enum tw_answer ANSWERS[] = {[RESULT_DONE] = TW_ANSWER_DONE,
                                             [RESULT_FAILED] = TW_ANSWER_FAILED,
                                             [RESULT_BACK] = TW_ANSWER_BACK,
                                             [RESULT_NOT_YET] = TW_ANSWER_BACK};
    struct held *held = (struct held *)taken;
    look_for(of(source), held);
    enum outcome outcome = outcome_of(held, result);
    if (result == RESULT_FAILED)
        tw_job_fail(held->job, error);
    if (result == RESULT_NOT_YET)
        tw_job_retry_at(held->job, tw_store_now() + source->options->back_ms);
    source->events.settled(source->events.arg, taken, outcome, error);
    tw_job_answer(held->job, ANSWERS[result]);
    free(held);
}

static void stop(struct source *source)
{
    of(source)->stopping = true;
}

static bool at_rest(const struct source *source)
{
    return ((const struct file *)source)->stopping;
}

static void tell(const struct source *source, char text[SOURCE_STATUS])
{
    const struct file *file = (const struct file *)source;
    snprintf(text, SOURCE_STATUS, "%s %s", file->told_ready ? "running the tasks of" : "standing by for",
             source->options->store);
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

/* Lets the handler go that waits since the stop. Its job goes back, and so does each job after it. */
static void let_go(struct file *file)
{
    pthread_mutex_lock(&file->lock);
    file->ending = true;
    pthread_cond_signal(&file->changed);
    pthread_mutex_unlock(&file->lock);
}

static bool free_file(struct source *source)
{
    struct file *file = of(source);
    timers_cancel(source->timers, &file->look);
    let_go(file);
    int error = file->store == NULL ? 0 : tw_store_stop(file->store);
    bool good = news_end(&file->news) == NEWS_GOOD;
    if (error != 0 && error != TW_EREPLACED) { /* that one has been told */
        screen_hide();
        store_file_complain(file->store, COMMAND, source->options->store,
                            "the end of a task cannot be written: it will run again, though it is counted");
    }
    tw_store_close(file->store);
    close(file->wake);
    pthread_cond_destroy(&file->changed);
    pthread_mutex_destroy(&file->lock);
    free(file);
    return error == 0 && good;
}

/* The store does not tell when it takes over. */
static void look_again(void *arg)
{
    struct file *file = arg;
    news_look(&file->news);
    if (file->told_ready)
        tell_of_mark(file);
    timers_set(file->source.timers, &file->look, file->told_ready ? NEWS_MS : LOOK_MS);
}

static bool start(struct file *file)
{
    const struct work_options *options = file->source.options;
    const struct tw_store_run_options how = {
        .workers = 1, .max_jobs = (uint32_t)options->jobs, .on_error = on_error, .arg = file};
    int error = 0;
    for (size_t i = 0; i < options->queues && error == 0; i++)
        error = tw_store_handle(file->store, options->queue[i], 0, handle, file);
    if (error == 0)
        error = store_file_stand_by(file->store, COMMAND, options->store, &how, !options->quiet);
    if (error != 0)
        store_file_complain(file->store, COMMAND, options->store, "the tasks cannot be run");
    return error == 0;
}

struct source *command_work_store(const struct work_options *options, struct timers *timers,
                                  const struct source_events *events)
{
    static const struct source_kind KIND = {.watch = watch,
                                            .turn = turn,
                                            .touch = touch,
                                            .answer = answer,
                                            .stop = stop,
                                            .at_rest = at_rest,
                                            .tell = tell,
                                            .free = free_file};
    struct file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        complain("%s: there is no memory", COMMAND);
        return NULL;
    }
    file->source = (struct source){&KIND, options, timers, *events};
    file->news = (struct news){.command = COMMAND, .path = options->store, .lock = PTHREAD_MUTEX_INITIALIZER};
    file->look = (struct timer){.fire = look_again, .arg = file};
    timers_set(timers, &file->look, 0);
    pthread_mutex_init(&file->lock, NULL);
    pthread_cond_init(&file->changed, NULL);
    file->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    file->store = store_file_open(COMMAND, options->store, true);
    if (file->store != NULL && start(file))
        return &file->source;
    free_file(&file->source);
    return NULL;
}
