/* SPDX-License-Identifier: MIT
 *
 * The store's structure.
 */
#ifndef TW_STORE_INTERNAL_H
#define TW_STORE_INTERNAL_H

#include "database.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

struct tw__store_request;

/* The connection that writes. One thread at a time leads: it makes the requests of all threads that wait, in
 * one commit (commit.c). `lock` guards the list and `led`; the leader alone uses `db`. */
struct tw__store_writer {
    struct tw__store_db db;
    pthread_mutex_t lock;
    struct tw__store_request *first, **last; /* requests that wait, in the order in which they came */
    bool led;
    char message[TW_STORE_MESSAGE_SIZE];
};

/* The connection that reads; `lock` guards it. The thread of a snapshot has the lock until that ends. */
struct tw__store_reader {
    struct tw__store_db db;
    pthread_mutex_t lock;
    bool set;                   /* the connection has its settings, since the first look */
    _Atomic uintptr_t snapshot; /* its thread; 0: there is none */
    int ended;                  /* the error of a look that has ended the snapshot's transaction; 0: none has */
    char message[TW_STORE_MESSAGE_SIZE];
};

/* The run of a store, which runner.c begins and ends. `lock` guards the members. */
struct tw__store_run {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct tw__store_handler *handlers;
    struct tw__store_runner *runner; /* NULL: the store does not run */
    bool stopping;                   /* a thread waits for its end */
    uint64_t ends;                   /* runs that have ended */
};

/* The message of the call that failed last. */
struct tw__store_failure {
    pthread_mutex_t lock;
    char message[TW_STORE_MESSAGE_SIZE];
};

/* A call that only looks has a const store. Yet it uses a connection, takes locks and notes its failure: these
 * parts lie behind pointers, in the same block of memory (store.c). */
struct tw_store {
    struct tw_store_options options; /* without zeroes: the defaults are filled in */
    pid_t pid;                       /* of the process that opened the store */
    struct tw__store_writer writer;
    struct tw__store_reader *reader;
    struct tw__store_run *run;
    struct tw__store_failure *failure;
};

/* Notes the message of a call that failed. Returns: `error`. */
int tw__store_failed(const struct tw_store *store, int error, const char *message);

#endif
