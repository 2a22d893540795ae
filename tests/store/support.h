/* SPDX-License-Identifier: MIT
 *
 * Support for the tests of the store: a new file for each test, and short forms of the calls.
 */
#ifndef TESTS_STORE_SUPPORT_H
#define TESTS_STORE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <tickwheel/store.h>

#include "outcomes.h"

enum { PATH_SIZE = 256, SEEN_MAX = 64 };

/* A store in a folder of its own, which the group's setup makes and its teardown removes. */
struct fixture {
    char folder[PATH_SIZE], path[PATH_SIZE];
    struct tw_store *store;
};

/* cmocka's setup and teardown of one test: an open store in a new file. A test that fails ends the program,
 * since its handlers may wait for it in vain. */
int store_setup(void **state);
int store_teardown(void **state);

/* A store that is opened with these waits for the file's lock as long as a test may take: a process that holds
 * the lock may have been stopped. */
extern const struct tw_store_options patient;

/* Chooses tests by the arguments of main(): those whose names are like PATTERN, and none that are like the
 * pattern of -PATTERN. So the tests of a file run side by side. */
void choose_tests(char **arguments);

/* Removes the files of the store, which is closed. */
void store_remove(const struct fixture *fixture);

/* Closes the store and opens it again. */
void store_reopen(struct fixture *fixture);

/* Makes the store as after opening, but for the schema, which takes longest to read: each statement is prepared
 * anew, but for the rollback, the reader gets its settings, and pages come from the file. */
void store_forget(struct tw_store *store);

/* Opens another connection to the file. other_ask() runs SQL on it, of one statement or several, and returns
 * the first column of the first row as text, "" if there is no row. The test fails if SQLite does. */
sqlite3 *other_open(const struct fixture *fixture);
const char *other_ask(sqlite3 *db, const char *sql);

/* Runs SQL that must fail, and returns SQLite's message. */
const char *other_refuses(sqlite3 *db, const char *sql);

/* The name for all tasks of a queue. */
struct tw_store_name all_of(const char *queue);

/* Puts a task without a payload, with an id that is text; puts it under a condition. */
int put(struct tw_store *store, const char *id, uint64_t due_ms);
int put_if(struct tw_store *store, const char *id, uint64_t due_ms, unsigned conditions);
enum tw_cancel cancel(struct tw_store *store, const char *id);

/* A thread that puts a task. */
struct putter {
    struct tw_store *store;
    const char *id;
    uint64_t due_ms;
    int result;
    pthread_t thread;
};
void begin_put(struct putter *putter);

/* Begins n of them, one by one, while another connection holds the file's lock. The first leads the commit and
 * waits for the lock, and the others wait for the first, in their order. */
void begin_puts(struct putter *putters, int n);

/* The tasks that a scan or a get has shown: "id@due id@due ...". A dead task has a "!" behind it, a running
 * one a "*". */
struct seen {
    char text[4096];
    struct tw_store_task last; /* its pointers are not valid any more */
    char payload[256], error[256];
};
void see(void *seen, const struct tw_store_task *task);
const char *scan(struct tw_store *store, const struct tw_store_range *range);

/* The message of the last call that failed. */
const char *message(struct tw_store *store);

#endif
