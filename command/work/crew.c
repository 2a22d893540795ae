/* SPDX-License-Identifier: MIT */
#include "crew.h"

#include "child.h"
#include "screen.h"
#include "task_line.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { OTHERS = 64 }; /* descriptors for all else */

struct place {
    struct crew *crew;
    struct child child;
    struct taken *taken; /* NULL: the place is free */
    struct timer beat, timeout;
    bool timed_out;
};

struct crew {
    struct crew_options options;
    struct timers *timers;
    int signal; /* the last one that all commands have got, after which they are given up; 0: none */
    bool waits; /* some outputs of commands that have ended, for a reader of ours */
    bool holds; /* the ends of the pipes that the commands write to (child.h) */
    size_t running;
    size_t turn; /* the command whose output comes first in this round: a slow terminal takes that of one */
    char error[TW__TASK_ERROR_MAX + 1];
    struct place place[];
};

/* ---- the heartbeat --------------------------------------------------------------------------------------- */

static void beat(void *arg)
{
    struct place *place = arg;
    struct crew *crew = place->crew;
    timers_set(crew->timers, &place->beat, crew->options.beat_ms);
    crew->options.beat(crew->options.arg, place->taken);
}

/* ---- the timeout ----------------------------------------------------------------------------------------- */

static void time_out(void *arg)
{
    struct place *place = arg;
    child_signal(&place->child, place->timed_out ? SIGKILL : SIGTERM);
    if (place->timed_out) {
        crew_reap(place->crew); /* if it has ended before, no SIGCHLD follows */
        return;
    }
    timers_set(place->crew->timers, &place->timeout, JOB_KILL_MS);
    place->timed_out = true;
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

static struct place *free_place(struct crew *crew)
{
    struct place *place = crew->place;
    while (place->taken != NULL)
        place++;
    return place;
}

static struct job job_of(const struct crew *crew, const struct taken *taken, char due[TIME_SIZE])
{
    time_print(instant_of_ms(taken->due_ms), due);
    return (struct job){.command = crew->options.exec,
                        .id = taken->id,
                        .payload = taken->values > 0 ? taken->value[0] : tw_text(""),
                        .due = due,
                        .late_us = job_late_us(taken->late_from_ms),
                        .missed_periods = taken->missed_periods,
                        .queue = taken->queue,
                        .attempt = taken->attempt,
                        .token = taken->token,
                        .more = taken->values > 1 ? taken->value + 1 : NULL,
                        .more_count = taken->values > 1 ? taken->values - 1 : 0};
}

int crew_start(struct crew *crew, struct taken *taken)
{
    char due[TIME_SIZE];
    struct place *place = free_place(crew);
    struct job job = job_of(crew, taken, due);
    int error = child_start(&place->child, &job, crew->options.output, crew->holds);
    if (error != 0)
        return error;
    place->taken = taken;
    crew->running++;
    place->timed_out = false;
    timers_set(crew->timers, &place->beat, crew->options.beat_ms);
    if (crew->options.timeout_ms > 0)
        timers_set(crew->timers, &place->timeout, crew->options.timeout_ms);
    return 0;
}

static enum result result_of(const struct crew *crew, const struct place *place, int status)
{
    if (place->timed_out)
        return RESULT_FAILED;
    if (job_not_yet(status))
        return RESULT_NOT_YET;
    return status == 0 ? RESULT_DONE : crew->signal != 0 ? RESULT_BACK : RESULT_FAILED;
}

static void end(struct crew *crew, struct place *place, int status)
{
    char text[JOB_ENDED];
    const char *ended =
        place->timed_out ? job_timed_out(crew->options.timeout_ms, text) : job_ended(status, text);
    struct taken *taken = place->taken;
    enum result result = result_of(crew, place, status);
    timers_cancel(crew->timers, &place->beat);
    place->taken = NULL;
    crew->running--;
    if (result == RESULT_FAILED)
        child_error(&place->child, ended, crew->error);
    crew->options.ended(crew->options.arg, taken, result, result == RESULT_FAILED ? crew->error : NULL);
}

/* Whether a command has got SIGTERM, and SIGKILL follows. A shell that ends at SIGTERM may leave processes
 * behind that do not, so its end counts only when the whole group has got SIGKILL. */
static bool is_being_ended(const struct crew *crew, const struct place *place)
{
    return crew->signal == SIGTERM || (place->timed_out && timers_wait(&place->timeout));
}

void crew_reap(struct crew *crew)
{
    int status;
    crew->waits = false;
    for (size_t i = 0; i < crew->options.jobs; i++) {
        struct place *place = &crew->place[i];
        if (is_being_ended(crew, place))
            continue;
        enum child_state state = child_look(&place->child, crew->options.leave, &status);
        if (state != CHILD_RUNS)
            timers_cancel(crew->timers, &place->timeout);
        crew->waits |= state == CHILD_WAITS;
        if (state == CHILD_ENDED)
            end(crew, place, status);
    }
}

void crew_give_up(struct crew *crew, int number)
{
    crew->signal = number;
    for (size_t i = 0; i < crew->options.jobs; i++)
        child_signal(&crew->place[i].child, number);
    crew_reap(crew); /* no SIGCHLD follows of a child that had ended before */
}

/* ---- outputs --------------------------------------------------------------------------------------------- */

size_t crew_watch(struct crew *crew, struct pollfd *fds)
{
    screen_next_round();
    const bool room[] = {crew->options.output && screen_has_room(STDOUT_FILENO),
                         screen_has_room(STDERR_FILENO)};
    size_t count = 0;
    crew->turn++;
    for (size_t i = 0; i < crew->options.jobs; i++)
        count += child_watch(&crew->place[(crew->turn + i) % crew->options.jobs].child, room, fds + count);
    return count;
}

void crew_pass(struct crew *crew, const struct pollfd *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < crew->options.jobs && fds[i].revents != 0; k++)
            child_pass(&crew->place[k].child, fds[i].fd);
    if (crew->waits)
        crew_reap(crew);
}

/* ---- the crew -------------------------------------------------------------------------------------------- */

size_t crew_places(const struct crew *crew)
{
    return crew->options.jobs - crew->running;
}

size_t crew_running(const struct crew *crew)
{
    return crew->running;
}

/* Whether all commands can run at once while we hold both ends of each pipe. A process may have few
 * descriptors, and more commands are worth more than fewer wake-ups. */
static bool can_hold(const struct crew_options *options)
{
    struct rlimit most;
    size_t pipes = options->jobs * (options->output ? 2 : 1);
    return getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur >= OTHERS + 2 * pipes;
}

struct crew *crew_new(const struct crew_options *options, struct timers *timers)
{
    struct crew *crew = calloc(1, sizeof *crew + options->jobs * sizeof crew->place[0]);
    if (crew == NULL)
        return NULL;
    crew->options = *options;
    crew->timers = timers;
    crew->holds = can_hold(options);
    for (size_t i = 0; i < options->jobs; i++) {
        crew->place[i].crew = crew;
        crew->place[i].beat = (struct timer){.fire = beat, .arg = &crew->place[i]};
        crew->place[i].timeout = (struct timer){.fire = time_out, .arg = &crew->place[i]};
    }
    return crew;
}

void crew_free(struct crew *crew)
{
    free(crew);
}
