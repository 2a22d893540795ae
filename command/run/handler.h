/* SPDX-License-Identifier: MIT
 *
 * The handler of `tickwheel run --store`: it prints a line for a task that is due, or starts the command of
 * --exec.
 */
#ifndef COMMAND_HANDLER_H
#define COMMAND_HANDLER_H

#include "children.h"
#include "tally.h"

#include <tickwheel/store.h>

#include <pthread.h>

enum { HANDLER_JOBS = 1024 }; /* tasks that are called at once, at most */

struct handler {
    struct tw_store *store;
    struct tally *tally;
    const char *exec;        /* NULL: print lines */
    void (*wake)(bool stop); /* a task has been called; `stop`: the run is to stop, as its line is unprinted */
    struct children *children;
    pthread_mutex_t lock;
    struct tw_job *unprinted[HANDLER_JOBS]; /* their lines could not be printed */
    size_t count;
    bool giving_back;
};

/* Makes a handler, with at most `jobs` commands at once, which may take timeout_ms (children.h). `exec` NULL:
 * it prints lines. Returns false if there is no memory or no thread. */
bool handler_init(struct handler *handler, struct tw_store *store, const char *exec, size_t jobs,
                  uint64_t timeout_ms);

/* The handler; a tw_handler_fn. `arg` is a struct handler. */
enum tw_answer handler_call(void *arg, struct tw_job *job);

/* Returns whether a line could not be printed. Threads: any. */
bool handler_stuck(struct handler *handler);

/* Gives the tasks whose lines could not be printed back: they wait in the file, as if they had not been called.
 * From now on a task whose line cannot be printed goes back at once. */
void handler_give_back(struct handler *handler);

/* Ends the handler. Requires: the store has stopped. */
void handler_fini(struct handler *handler);

#endif
