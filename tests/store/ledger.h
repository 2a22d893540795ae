/* SPDX-License-Identifier: MIT
 *
 * The reference of the random tests: a ledger of every task that a file must have, in an array. It asks the
 * table of src/task for the effect of each verb, and knows nothing of SQLite. A change is made in the ledger
 * and in the file, and then both are compared. A ledger is a value: a test of crashes keeps copies, one for
 * each state that the file may be in.
 */
#ifndef TESTS_STORE_LEDGER_H
#define TESTS_STORE_LEDGER_H

#include "outcomes.h"
#include "tests/support/random.h"

#include <stdbool.h>
#include <stddef.h>
#include <task/task.h>
#include <tickwheel/store.h>

enum { LEDGER_QUEUES = 3, LEDGER_IDS = 20, LEDGER_TASKS = LEDGER_QUEUES * LEDGER_IDS };
enum { LEDGER_LAPSED = 4, LEDGER_ERRORS }; /* errors: those below LEDGER_LAPSED are the handlers' */

/* A task. Payloads and errors are numbers, from which their bytes follow; 0: none. */
struct entry {
    struct tw__task task; /* NONE: the file has no such task */
    struct tw__task_retry
        waits;         /* as in the put. 0: as the file has it; the jitter may be TW_STORE_NO_JITTER */
    uint64_t filed;    /* the number of its last filing, counted by the ledger */
    uint64_t revision; /* 0: not seen yet */
    uint64_t place_ms, dead_ms;
    unsigned payload, error;
};

struct ledger {
    struct entry entry[LEDGER_TASKS];
    struct tw__task_retry usual; /* of the file. All zero: those of a new one */
    uint64_t filed;              /* filings so far */
    uint64_t top;                /* the largest revision that was ever seen */
    uint64_t look_ms;            /* when the last comparison began */
};

/* A change, as struct tw_store_change; `task` is the number of its entry. */
struct ledger_change {
    enum tw_store_verb verb;
    unsigned task, conditions, payload;
    uint64_t due_ms, every_ms, times, max_late_ms;
    struct tw__task_retry waits;
    enum tw_missed missed;
};

/* The names of an entry: three queues, one of them with 255 bytes; ids of 1 to 960 bytes of every kind. */
const char *ledger_queue(unsigned task);
const void *ledger_id(unsigned task, size_t *size);

/* The bytes of a payload, and of an error. */
const void *ledger_payload(unsigned payload, size_t *size);
const char *ledger_error(unsigned error);

/* Draws how tasks are tried again; each number may be left out. */
struct tw__task_retry ledger_draw_waits(struct rng *rng);

/* Draws a random change, with due times before and after `now_ms`. */
void ledger_draw(struct rng *rng, uint64_t now_ms, struct ledger_change *change);

/* The change as the store's own. Its pointers stay valid. */
struct tw_store_change ledger_call(const struct ledger_change *change);

/* How a task is tried again if it fails now, with a jitter of 0 for none. */
struct tw__task_retry ledger_retry_of(const struct ledger *ledger, const struct entry *entry);

bool ledger_has(const struct entry *entry);
bool ledger_is_dead(const struct entry *entry);

/* Does to an entry as the table says of a verb at `now_ms`. The error of the call is left to the caller. */
struct tw__task_outcome ledger_do(struct ledger *ledger, unsigned task, const struct tw__task_call *call,
                                  uint64_t now_ms);

/* Makes a change in the ledger. Returns the result of the same call of the store. */
int ledger_make(struct ledger *ledger, const struct ledger_change *change, uint64_t now_ms);

/* The entries of a queue in the order of a scan. Returns how many. */
unsigned ledger_sort(const struct ledger *ledger, unsigned queue, bool dead, unsigned *tasks);

/* Compares a task of the file with an entry, which learns its revision. Returns NULL, or the difference. */
const char *ledger_compare_task(struct ledger *ledger, unsigned task, const struct tw_store_task *seen);

/* Compares the whole file: every task in order, counts, next times, queues. Scans have pages of `page` tasks;
 * 0: all at once. Returns NULL, or the first difference, which is valid until the next call. */
const char *ledger_compare(struct ledger *ledger, struct tw_store *store, uint64_t page);

/* Counts the calls to come one by one, as tw_store_forecast(). */
void ledger_forecast(const struct ledger *ledger, unsigned queue, uint64_t now_ms, uint64_t step_ms,
                     uint32_t steps, uint64_t *counts);

#endif
