/* SPDX-License-Identifier: MIT
 *
 * The conditions of a put or a send; a move has GT and LT alone.
 */
#ifndef TW_TASK_CONDITIONS_H
#define TW_TASK_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TW__TASK_NX = 1,      /* only if no task has the id; a dead one has it */
    TW__TASK_XX = 2,      /* only if there is one */
    TW__TASK_GT = 4,      /* an existing task gets only a later due time */
    TW__TASK_LT = 8,      /* an existing task gets only an earlier due time */
    TW__TASK_KEEPDUE = 16 /* a task that exists keeps its times; alone, or with NX or XX */
};

/* Whether these conditions may stand together: at most one of the first four, and KEEPDUE without GT and LT. */
static inline bool tw__task_conditions_fit(unsigned conditions)
{
    unsigned one = conditions & (TW__TASK_NX | TW__TASK_XX | TW__TASK_GT | TW__TASK_LT);
    if (conditions & ~(one | TW__TASK_KEEPDUE) || (one & (one - 1)) != 0)
        return false;
    return !(conditions & TW__TASK_KEEPDUE) || !(conditions & (TW__TASK_GT | TW__TASK_LT));
}

/* Whether the conditions let a change happen. `there`: a task with the id exists, be it dead, and is due at
 * `old_ms`. */
static inline bool tw__task_conditions_met(unsigned conditions, bool there, uint64_t old_ms, uint64_t due_ms)
{
    if (conditions & TW__TASK_NX)
        return !there;
    if (conditions & TW__TASK_XX)
        return there;
    if (conditions & TW__TASK_GT)
        return !there || due_ms > old_ms;
    if (conditions & TW__TASK_LT)
        return !there || due_ms < old_ms;
    return true;
}

#endif
