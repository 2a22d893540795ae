/* SPDX-License-Identifier: MIT
 *
 * One worker calls the handler, so tasks are printed and commands are started in the order of their due times.
 * A command runs on without the worker: children.c brings its end, and with it the answer.
 *
 * A line that cannot be printed is no failed attempt of its task: the reader of our output has gone, and the
 * task shall wait for the next run as if it had not been called. So it is given back. Until the run stops, such
 * tasks wait for this answer: if they went back at once, they would be called again at once.
 */
#include "handler.h"

#include "calls.h"
#include "clock.h"
#include "command.h"
#include "screen.h"
#include "task_line.h"

#include <string.h>

enum { PAUSE_NS = 1000000000 };

/* ---- lines that cannot be printed ------------------------------------------------------------------------ */

static enum tw_answer keep(struct handler *handler, struct tw_job *job)
{
    pthread_mutex_lock(&handler->lock);
    bool later = !handler->giving_back && handler->count < HANDLER_JOBS;
    if (later)
        handler->unprinted[handler->count++] = job;
    pthread_mutex_unlock(&handler->lock);
    calls_wake(handler->run, true);
    return later ? TW_ANSWER_LATER : TW_ANSWER_BACK;
}

void handler_give_back(struct handler *handler)
{
    pthread_mutex_lock(&handler->lock);
    handler->giving_back = true;
    size_t count = handler->count;
    pthread_mutex_unlock(&handler->lock);
    for (size_t i = 0; i < count; i++)
        tw_job_answer(handler->unprinted[i], TW_ANSWER_BACK);
}

/* ---- commands -------------------------------------------------------------------------------------------- */

static void on_end(void *arg, void *task, enum children_end end, const char *error)
{
    static const enum tw_answer ANSWERS[] = {[CHILDREN_DONE] = TW_ANSWER_DONE,
                                             [CHILDREN_FAILED] = TW_ANSWER_FAILED,
                                             [CHILDREN_GIVEN_UP] = TW_ANSWER_BACK};
    struct handler *handler = arg;
    tally_command(handler->run->tally, end);
    if (end == CHILDREN_FAILED)
        tw_job_fail(task, error);
    tw_job_answer(task, ANSWERS[end]);
    calls_wake(handler->run, false);
}

/* The task goes back after a pause, in which no other command is started. At once it would come again at
 * once. */
static enum tw_answer start_later(struct handler *handler, const char *text)
{
    if (screen_can_tell()) {
        screen_hide();
        complain("tickwheel run: the command of a task %s", text);
    }
    tally_command(handler->run->tally, CHILDREN_GIVEN_UP);
    sleep_ns(PAUSE_NS);
    return TW_ANSWER_BACK;
}

static enum tw_answer cannot_start(struct handler *handler, struct tw_job *job, int error)
{
    char text[160];
    snprintf(text, sizeof text, "cannot be started: %s", strerror(error));
    if (job_error_passes(error))
        return start_later(handler, text);
    tw_job_fail(job, text);
    tally_command(handler->run->tally, CHILDREN_FAILED);
    calls_wake(handler->run, false);
    return TW_ANSWER_FAILED;
}

static enum tw_answer start_command(struct handler *handler, struct job *job, struct tw_job *of)
{
    job->command = handler->run->options->exec;
    int error = children_start(handler->run->children, job, of);
    return error == 0 ? TW_ANSWER_LATER : cannot_start(handler, of, error);
}

/* ---- the handler ----------------------------------------------------------------------------------------- */

/* A standby begins when it takes over. */
static uint64_t began_ms_of(struct handler *handler)
{
    struct tw_store_info stats;
    if (handler->began_ms == 0) {
        tw_store_stats(handler->store, &stats, sizeof stats);
        handler->began_ms = stats.began_ms;
    }
    return handler->began_ms;
}

enum tw_answer handler_call(void *arg, struct tw_job *of)
{
    struct handler *handler = arg;
    char due[TIME_SIZE], token[JOB_TOKEN + 1];
    struct job job = {.id = of->id,
                      .payload = of->payload.data != NULL ? of->payload : tw_text(""),
                      .due = due,
                      .late_us = job_late_us(of->late_from_ms),
                      .missed_periods = of->missed_periods,
                      .queue = of->queue,
                      .attempt = of->attempt,
                      .token = job_token(of->token, token)};
    time_print(instant_of_ms(of->due_ms), due);
    if (!calls_begin(handler->run, &job, of->late_from_ms < began_ms_of(handler)))
        return keep(handler, of);
    if (handler->run->children != NULL)
        return start_command(handler, &job, of);
    calls_wake(handler->run, false);
    return TW_ANSWER_DONE;
}

bool handler_init(struct handler *handler, struct run *run, struct tw_store *store)
{
    const struct run_options *options = run->options;
    handler->run = run;
    handler->store = store;
    pthread_mutex_init(&handler->lock, NULL);
    if (options->exec != NULL)
        run->children = children_new(options->jobs, options->timeout_ms, on_end, handler);
    return options->exec == NULL || run->children != NULL;
}
