/* SPDX-License-Identifier: MIT
 *
 * The thread hears of ends by SIGCHLD, and asks the system about each command that it knows. A command may end
 * before it is noted, so children_start() wakes the thread. Only the thread forgets a process, and only the
 * thread sends signals: so none reaches another process that has got the same number since.
 *
 * A shell that ends at SIGTERM may leave processes behind that do not. So the thread asks about a command that
 * has got SIGTERM only when its group has got SIGKILL too.
 */
#include "children.h"

#include "clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FREE = 0, BEGINS = -1, PATIENCE_MS = 60000 };

struct child {
    pid_t process; /* or FREE, or BEGINS: the place is kept for a command that is being started */
    void *task;
    uint64_t signal_ms; /* when it gets its next signal, on the monotonic clock; UINT64_MAX: never */
    enum { RUNS, TIMED_OUT, GIVEN_UP } fate;
};

struct children {
    pthread_mutex_t lock;
    pthread_t thread;
    int ends, wake; /* a signalfd for SIGCHLD, and an eventfd */
    uint64_t timeout_ms;
    children_ended_fn *ended;
    void *arg;
    atomic_bool quit;
    atomic_uint given_up;         /* how often */
    atomic_uint_least64_t end_ms; /* when all are given up; UINT64_MAX: never */
    size_t most;
    struct child child[];
};

static void wake(struct children *children)
{
    uint64_t one = 1;
    (void)!write(children->wake, &one, sizeof one);
}

/* ---- ends ------------------------------------------------------------------------------------------------ */

/* Returns the process at a place; 0: none runs there, or it is to get SIGKILL yet. */
static pid_t process_at(struct children *children, size_t place)
{
    pthread_mutex_lock(&children->lock);
    struct child child = children->child[place];
    pthread_mutex_unlock(&children->lock);
    return child.process > 0 && (child.fate == RUNS || child.signal_ms == UINT64_MAX) ? child.process : 0;
}

/* Makes the place free, and reports the end. */
static void end(struct children *children, size_t place, int status)
{
    char text[JOB_ENDED];
    pthread_mutex_lock(&children->lock);
    struct child child = children->child[place];
    children->child[place].process = FREE;
    pthread_mutex_unlock(&children->lock);
    const char *error =
        child.fate == TIMED_OUT ? job_timed_out(children->timeout_ms, text) : job_ended(status, text);
    enum children_end how = error == NULL            ? CHILDREN_DONE
                            : child.fate == GIVEN_UP ? CHILDREN_GIVEN_UP
                                                     : CHILDREN_FAILED;
    children->ended(children->arg, child.task, how, error);
}

static void report_ends(struct children *children)
{
    int status;
    for (size_t place = 0; place < children->most; place++) {
        pid_t process = process_at(children, place);
        if (process != 0 && waitpid(process, &status, WNOHANG) == process)
            end(children, place, status);
    }
}

/* A command whose caller waits for its end. */
struct awaited {
    sem_t over;
    enum children_end end;
};

static void note_end(void *arg, void *task, enum children_end how, const char *error)
{
    struct awaited *awaited = task;
    (void)arg;
    (void)error;
    awaited->end = how;
    sem_post(&awaited->over);
}

/* ---- signals --------------------------------------------------------------------------------------------- */

/* Sends a command the signals that are due: first SIGTERM, then SIGKILL. `given_up`: how often. Returns whether
 * it was the last signal. */
static bool send_signal(struct child *child, unsigned given_up, uint64_t ms)
{
    if (child->fate == RUNS && (given_up > 0 || child->signal_ms <= ms)) {
        kill(-child->process, SIGTERM);
        child->fate = given_up > 0 ? GIVEN_UP : TIMED_OUT;
        child->signal_ms = ms + JOB_KILL_MS;
    }
    if (child->fate == RUNS || child->signal_ms == UINT64_MAX || (given_up < 2 && child->signal_ms > ms))
        return false;
    kill(-child->process, SIGKILL);
    child->signal_ms = UINT64_MAX;
    return true;
}

/* Returns how often all commands are given up. The end of the grace and the second signal are one time, so that
 * a signal which comes just then does not take the second away. */
static unsigned times_given_up(struct children *children, uint64_t ms)
{
    unsigned times = atomic_load(&children->given_up);
    return times == 0 && atomic_load(&children->end_ms) <= ms ? 1 : times;
}

/* Sends the signals that are due. Returns when the next one is. */
static uint64_t send_signals(struct children *children, uint64_t ms)
{
    unsigned given_up = times_given_up(children, ms);
    uint64_t next_ms = given_up > 0 ? UINT64_MAX : atomic_load(&children->end_ms);
    pthread_mutex_lock(&children->lock);
    for (size_t place = 0; place < children->most; place++) {
        struct child *child = &children->child[place];
        if (child->process <= 0)
            continue;
        if (send_signal(child, given_up, ms))
            wake(children); /* it may have ended before: then no SIGCHLD follows */
        next_ms = child->signal_ms < next_ms ? child->signal_ms : next_ms;
    }
    pthread_mutex_unlock(&children->lock);
    return next_ms;
}

/* ---- the thread ------------------------------------------------------------------------------------------ */

static void wait_until(struct children *children, uint64_t until_ms)
{
    struct pollfd fds[] = {{.fd = children->ends, .events = POLLIN}, {.fd = children->wake, .events = POLLIN}};
    struct signalfd_siginfo info;
    uint64_t ms = monotonic_ms(), count, wait_ms = until_ms > ms ? until_ms - ms : 0;
    poll(fds, 2, until_ms == UINT64_MAX ? -1 : wait_ms < PATIENCE_MS ? (int)wait_ms : PATIENCE_MS);
    while (read(children->ends, &info, sizeof info) == (ssize_t)sizeof info)
        ;
    (void)!read(children->wake, &count, sizeof count);
}

static void *attend(void *arg)
{
    struct children *children = arg;
    uint64_t until_ms = UINT64_MAX;
    while (!atomic_load(&children->quit)) {
        wait_until(children, until_ms);
        report_ends(children);
        until_ms = send_signals(children, monotonic_ms());
    }
    return NULL;
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

/* Starts the thread. Other signals than SIGCHLD are for the main thread. Returns 0 or an errno. */
static int start_thread(struct children *children)
{
    sigset_t all, before, ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    children->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    children->ends = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    if (children->wake < 0 || children->ends < 0)
        return errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&children->thread, NULL, attend, children);
    sigaddset(&before, SIGCHLD);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void free_parts(struct children *children)
{
    if (children->wake >= 0)
        close(children->wake);
    if (children->ends >= 0)
        close(children->ends);
    pthread_mutex_destroy(&children->lock);
    free(children);
}

struct children *children_new(size_t most, uint64_t timeout_ms, children_ended_fn *ended, void *arg)
{
    struct children *children = calloc(1, sizeof *children + most * sizeof children->child[0]);
    if (children == NULL)
        return NULL;
    children->most = most;
    children->timeout_ms = timeout_ms;
    children->ended = ended != NULL ? ended : note_end;
    children->arg = arg;
    children->wake = children->ends = -1;
    atomic_store(&children->end_ms, UINT64_MAX);
    pthread_mutex_init(&children->lock, NULL);
    int error = start_thread(children);
    if (error == 0)
        return children;
    free_parts(children);
    errno = error;
    return NULL;
}

int children_start(struct children *children, const struct job *job, void *task)
{
    struct child child = {.process = FREE, .task = task, .signal_ms = UINT64_MAX};
    size_t place = 0;
    pthread_mutex_lock(&children->lock);
    while (children->child[place].process != FREE)
        place++;
    children->child[place].process = BEGINS;
    pthread_mutex_unlock(&children->lock);
    int error = job_start(job, &child.process);
    if (error != 0)
        child.process = FREE;
    if (children->timeout_ms > 0)
        child.signal_ms = monotonic_ms() + children->timeout_ms + 1; /* the clock is rounded down */
    pthread_mutex_lock(&children->lock);
    children->child[place] = child;
    pthread_mutex_unlock(&children->lock);
    wake(children);
    return error;
}

int children_run(struct children *children, const struct job *job, enum children_end *how)
{
    struct awaited awaited = {.end = CHILDREN_FAILED};
    sem_init(&awaited.over, 0, 0);
    int error = children_start(children, job, &awaited);
    while (error == 0 && sem_wait(&awaited.over) != 0) /* a signal */
        ;
    sem_destroy(&awaited.over);
    *how = awaited.end;
    return error;
}

size_t children_running(struct children *children)
{
    size_t running = 0;
    pthread_mutex_lock(&children->lock);
    for (size_t place = 0; place < children->most; place++)
        running += children->child[place].process != FREE;
    pthread_mutex_unlock(&children->lock);
    return running;
}

void children_give_up(struct children *children)
{
    atomic_fetch_add(&children->given_up, 1);
    wake(children);
}

void children_give_up_after(struct children *children, uint64_t grace_ms)
{
    atomic_store(&children->end_ms, monotonic_ms() + grace_ms + 1);
    wake(children);
}

void children_free(struct children *children)
{
    if (children == NULL)
        return;
    atomic_store(&children->quit, true);
    wake(children);
    pthread_join(children->thread, NULL);
    free_parts(children);
}
