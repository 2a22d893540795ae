/* SPDX-License-Identifier: MIT
 *
 * The names of states and policies, the same in C, SQL, replies and JSON.
 */
#ifndef TW_TASK_WORDS_H
#define TW_TASK_WORDS_H

#include <stdbool.h>
#include <string.h>
#include <tickwheel/task.h>

static inline const char *tw__task_state_name(enum tw_state state)
{
    static const char *const names[] = {[TW_STATE_WAITING] = "waiting",
                                        [TW_STATE_READY] = "ready",
                                        [TW_STATE_LEASED] = "leased",
                                        [TW_STATE_DEAD] = "dead"};
    return names[state];
}

static inline const char *tw__task_missed_name(enum tw_missed missed)
{
    static const char *const names[] = {
        [TW_MISSED_COALESCE] = "coalesce", [TW_MISSED_SKIP] = "skip", [TW_MISSED_BURST] = "burst"};
    return names[missed];
}

/* Finds the policy with a name, in small letters. Returns false if there is none. */
static inline bool tw__task_missed_named(const char *name, enum tw_missed *missed)
{
    for (int i = TW_MISSED_COALESCE; i <= TW_MISSED_BURST; i++)
        if (strcmp(name, tw__task_missed_name((enum tw_missed)i)) == 0) {
            *missed = (enum tw_missed)i;
            return true;
        }
    return false;
}

#endif
