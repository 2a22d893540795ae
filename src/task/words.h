/* SPDX-License-Identifier: MIT
 *
 * The names of states and policies, the same in C, SQL, replies and JSON.
 */
#ifndef TW_TASK_WORDS_H
#define TW_TASK_WORDS_H

#include <string.h>

#include "periods.h"

/* The states of a task. */
enum tw__task_state {
    TW__TASK_WAITING, /* `next` is yet to come; with attempts behind it the task is a retry */
    TW__TASK_READY,   /* `next` has passed */
    TW__TASK_LEASED,
    TW__TASK_DEAD
};

static inline const char *tw__task_state_name(enum tw__task_state state)
{
    static const char *const names[] = {"waiting", "ready", "leased", "dead"};
    return names[state];
}

static inline const char *tw__task_missed_name(enum tw__task_missed missed)
{
    static const char *const names[] = {"coalesce", "skip", "burst"};
    return names[missed];
}

/* Finds the policy with a name, in small letters. Returns false if there is none. */
static inline bool tw__task_missed_named(const char *name, enum tw__task_missed *missed)
{
    for (int i = TW__TASK_COALESCE; i <= TW__TASK_BURST; i++)
        if (strcmp(name, tw__task_missed_name((enum tw__task_missed)i)) == 0) {
            *missed = (enum tw__task_missed)i;
            return true;
        }
    return false;
}

#endif
