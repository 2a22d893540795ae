/* SPDX-License-Identifier: MIT
 *
 * The handler of `tickwheel run --store`: it prints a line for a task that is due, or starts the command of
 * --exec.
 */
#ifndef COMMAND_HANDLER_H
#define COMMAND_HANDLER_H

#include "engine.h"

#include <tickwheel/store.h>

#include <pthread.h>

enum { HANDLER_JOBS = 1024 }; /* tasks that are called at once, at most */

struct handler {
    struct run *run;
    struct tw_store *store;
    uint64_t began_ms; /* when the store began to run the tasks; 0: not known yet. The worker alone uses it */
    pthread_mutex_t lock;
    struct tw_job *unprinted[HANDLER_JOBS]; /* their lines could not be printed */
    size_t count;
    bool giving_back;
};

/* Makes a handler and, for --exec, the room for its commands. Returns false if there is no memory or no
 * thread. */
bool handler_init(struct handler *handler, struct run *run, struct tw_store *store);

/* The handler; a tw_store_handler_fn. `arg` is a struct handler. */
enum tw_answer handler_call(void *arg, struct tw_job *job);

/* Gives the tasks whose lines could not be printed back: they wait in the file, as if they had not been called.
 * From now on a task whose line cannot be printed goes back at once. */
void handler_give_back(struct handler *handler);

#endif
