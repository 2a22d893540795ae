/* SPDX-License-Identifier: MIT
 *
 * One worker calls the handler, so tasks are printed and commands are started in the order of their due times.
 * A command runs on without the worker: children.c brings its end, and with it the answer.
 *
 * A line that cannot be printed is no failed attempt of its task: the reader of our output has gone, and the
 * task shall wait for the next run as if it had not been called. A move to its old due time does that, as it
 * makes a new revision. Until the run stops, such tasks wait for their answer: if they went back at once, they
 * would be called again at once.
 */
#include "handler.h"

#include "command.h"
#include "printable.h"
#include "screen.h"
#include "task_line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- printing -------------------------------------------------------------------------------------------- */

static bool print_line(const struct tw_job *job, uint64_t late_us)
{
    char due[TIME_SIZE], *line = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&line, &size);
    if (out == NULL)
        return false;
    time_print(instant_of_ms(job->due_ms), due);
    fprintf(out, "%s %" PRIu64 " ", due, late_us);
    printable_write(job->id, job->id_size, false, SIZE_MAX, out);
    if (job->payload_size > 0)
        fputc(' ', out);
    printable_write(job->payload, job->payload_size, false, SIZE_MAX, out);
    fputc('\n', out);
    bool good = fclose(out) == 0 && screen_print(line, size);
    free(line);
    return good;
}

static enum tw_answer keep(struct handler *handler, struct tw_job *job)
{
    pthread_mutex_lock(&handler->lock);
    bool later = !handler->giving_back && handler->count < HANDLER_JOBS;
    if (later)
        handler->unprinted[handler->count++] = job;
    pthread_mutex_unlock(&handler->lock);
    handler->wake(true);
    return later ? TW_LATER : TW_BACK;
}

bool handler_stuck(struct handler *handler)
{
    pthread_mutex_lock(&handler->lock);
    bool stuck = handler->count > 0;
    pthread_mutex_unlock(&handler->lock);
    return stuck;
}

void handler_give_back(struct handler *handler)
{
    pthread_mutex_lock(&handler->lock);
    handler->giving_back = true;
    size_t count = handler->count;
    pthread_mutex_unlock(&handler->lock);
    for (size_t i = 0; i < count; i++)
        tw_job_answer(handler->unprinted[i], TW_BACK);
}

/* ---- commands -------------------------------------------------------------------------------------------- */

static void on_end(void *arg, void *task, enum children_end end, const char *error)
{
    static const enum tw_answer ANSWERS[] = {
        [CHILDREN_DONE] = TW_DONE, [CHILDREN_FAILED] = TW_RETRY, [CHILDREN_GIVEN_UP] = TW_BACK};
    struct handler *handler = arg;
    tally_command(handler->tally, end);
    if (end == CHILDREN_FAILED)
        tw_job_fail(task, error);
    tw_job_answer(task, ANSWERS[end]);
    handler->wake(false);
}

/* The task goes back after a pause, in which no other command is started. At once it would come again at
 * once. */
static enum tw_answer start_later(struct handler *handler, const char *text)
{
    const struct timespec pause = {.tv_sec = 1};
    if (screen_can_tell()) {
        screen_hide();
        complain("tickwheel run: the command of a task %s", text);
    }
    tally_command(handler->tally, CHILDREN_GIVEN_UP);
    nanosleep(&pause, NULL);
    return TW_BACK;
}

static enum tw_answer cannot_start(struct handler *handler, struct tw_job *job, int error)
{
    char text[160];
    snprintf(text, sizeof text, "cannot be started: %s", strerror(error));
    if (job_error_passes(error))
        return start_later(handler, text);
    tw_job_fail(job, text);
    tally_command(handler->tally, CHILDREN_FAILED);
    handler->wake(false);
    return TW_RETRY;
}

static enum tw_answer start_command(struct handler *handler, struct tw_job *of, uint64_t late_us)
{
    char due[TIME_SIZE];
    struct job job = {.command = handler->exec,
                      .id = of->id,
                      .id_size = of->id_size,
                      .payload = of->payload != NULL ? of->payload : "",
                      .payload_size = of->payload_size,
                      .due = due,
                      .late_us = late_us,
                      .queue = of->queue,
                      .attempt = of->attempt};
    time_print(instant_of_ms(of->due_ms), due);
    int error = children_start(handler->children, &job, of);
    return error == 0 ? TW_LATER : cannot_start(handler, of, error);
}

/* ---- the handler ----------------------------------------------------------------------------------------- */

enum tw_answer handler_call(void *arg, struct tw_job *job)
{
    struct handler *handler = arg;
    uint64_t late_us = tally_late_us(job);
    if (handler->exec == NULL && !print_line(job, late_us))
        return keep(handler, job);
    tally_call(handler->tally, job, late_us);
    if (handler->exec != NULL)
        return start_command(handler, job, late_us);
    handler->wake(false);
    return TW_DONE;
}

bool handler_init(struct handler *handler, struct tw_store *store, const char *exec, size_t jobs,
                  uint64_t timeout_ms)
{
    handler->store = store;
    handler->exec = exec;
    pthread_mutex_init(&handler->lock, NULL);
    handler->tally = tally_new();
    if (handler->tally != NULL && exec != NULL)
        handler->children = children_new(jobs, timeout_ms, on_end, handler);
    return handler->tally != NULL && (exec == NULL || handler->children != NULL);
}

void handler_fini(struct handler *handler)
{
    children_free(handler->children);
    tally_free(handler->tally);
    pthread_mutex_destroy(&handler->lock);
}
