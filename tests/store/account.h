/* SPDX-License-Identifier: MIT
 *
 * The accounts of a crowd of processes: every process notes its actions, before and after each of them, and at
 * the end each task must be accounted for.
 */
#ifndef TESTS_STORE_ACCOUNT_H
#define TESTS_STORE_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel/store.h>

enum note_kind {
    NOTE_INTENT, /* a process is about to change a task: verb, due_ms */
    NOTE_ACK,    /* the change has returned: result */
    NOTE_BEGIN,  /* a handler begins: revision, attempt, due_ms, at_ms */
    NOTE_END,    /* it is about to return: answer */
    NOTE_READY,  /* a runner has started, or stands by */
    NOTE_RUNS,   /* it has the tasks of the file */
    NOTE_KILLED  /* the parent is about to kill the process */
};

/* Small enough that a pipe takes it whole. */
struct note {
    enum note_kind kind;
    unsigned who; /* a process; its number is never used twice */
    uint64_t id;
    enum tw_store_verb verb;
    int result;
    enum tw_answer answer;
    unsigned attempt, tries;
    uint64_t revision, due_ms, at_ms;
    uint64_t order; /* of arrival; account_add() sets it */
};

struct account {
    struct note *notes;
    size_t n, room;
    uint64_t *killed; /* of a process: the order of its NOTE_KILLED; 0: it was not killed */
    unsigned processes;
    uint64_t tasks, calls, again, cancelled, unsure; /* found by account_check() */
};

void account_add(struct account *account, const struct note *note);

/* Whether the process was killed before the note with this order. */
bool account_killed(const struct account *account, unsigned who, uint64_t before);

/* Checks each task against the tasks of queue "q" that the file has at the end. Tasks that are due at `far_ms`
 * or later were not called. Returns NULL, or the first mistake. */
const char *account_check(struct account *account, struct tw_store *store, uint64_t far_ms);

void account_fini(struct account *account);

#endif
