/* SPDX-License-Identifier: MIT
 *
 * The thread waits for any child, and sleeps while there is none. A command is started and noted under the
 * lock, so the thread finds it even if it ends at once.
 */
#include "children.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

struct child {
    pid_t process; /* 0: this place is free */
    void *task;
};

struct children {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t waiter;
    children_ended_fn *ended;
    void *arg;
    size_t most, count;
    bool quit;
    struct child child[];
};

/* ---- the waiting thread ---------------------------------------------------------------------------------- */

/* Returns whether there is a child to wait for; false: the thread is to end. */
static bool wait_for_one(struct children *children)
{
    pthread_mutex_lock(&children->lock);
    while (children->count == 0 && !children->quit)
        pthread_cond_wait(&children->changed, &children->lock);
    bool one = children->count > 0;
    pthread_mutex_unlock(&children->lock);
    return one;
}

/* Takes a child that has ended out of the list. Returns its task, NULL if it is not in the list. */
static void *take_out(struct children *children, pid_t process)
{
    void *task = NULL;
    pthread_mutex_lock(&children->lock);
    for (size_t i = 0; i < children->most; i++)
        if (children->child[i].process == process) {
            task = children->child[i].task;
            children->child[i].process = 0;
            children->count--;
            break;
        }
    pthread_mutex_unlock(&children->lock);
    return task;
}

static void *wait_on(void *arg)
{
    struct children *children = arg;
    char error[JOB_ENDED];
    while (wait_for_one(children)) {
        int status = 0;
        pid_t process = waitpid(-1, &status, 0);
        void *task = process > 0 ? take_out(children, process) : NULL;
        if (task != NULL)
            children->ended(children->arg, task, job_ended(status, error));
    }
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------------------ */

struct children *children_new(size_t most, children_ended_fn *ended, void *arg)
{
    struct children *children = calloc(1, sizeof *children + most * sizeof children->child[0]);
    sigset_t all, before;
    if (children == NULL)
        return NULL;
    children->most = most;
    children->ended = ended;
    children->arg = arg;
    pthread_mutex_init(&children->lock, NULL);
    pthread_cond_init(&children->changed, NULL);
    sigfillset(&all); /* signals are for the main thread */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&children->waiter, NULL, wait_on, children);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        return children;
    free(children);
    errno = error;
    return NULL;
}

int children_start(struct children *children, const struct job *job, void *task)
{
    size_t i = 0;
    pthread_mutex_lock(&children->lock);
    while (children->child[i].process != 0)
        i++;
    int error = job_start(job, &children->child[i].process);
    if (error != 0)
        children->child[i].process = 0;
    children->child[i].task = task;
    children->count += error == 0;
    pthread_cond_signal(&children->changed);
    pthread_mutex_unlock(&children->lock);
    return error;
}

void children_free(struct children *children)
{
    if (children == NULL)
        return;
    pthread_mutex_lock(&children->lock);
    children->quit = true;
    pthread_cond_signal(&children->changed);
    pthread_mutex_unlock(&children->lock);
    pthread_join(children->waiter, NULL);
    pthread_cond_destroy(&children->changed);
    pthread_mutex_destroy(&children->lock);
    free(children);
}
