/* SPDX-License-Identifier: MIT
 *
 * What the end of an attempt or of a call leads to, told by a few numbers of the task. The table asks here, and
 * so does a home that has these numbers at hand and no struct tw__task.
 */
#ifndef TW_TASK_ENDS_H
#define TW_TASK_ENDS_H

#include "limits.h"
#include "periods.h"

/* ---- attempts -------------------------------------------------------------------------------------------- */

/* The number of the failure with which this attempt ends. The attempts before it have failed or lapsed, unless
 * others have written the numbers. */
static inline uint32_t tw__task_failure(uint32_t attempt, uint32_t lapses)
{
    return attempt > lapses ? attempt - lapses : 1;
}

/* Whether a failure of this attempt kills. */
static inline bool tw__task_failure_kills(uint32_t attempt, uint32_t lapses, uint32_t tries)
{
    return tw__task_failure(attempt, lapses) >= tries;
}

/* Whether a lapse kills. `lapses`: with this one. */
static inline bool tw__task_lapse_kills(uint32_t lapses)
{
    return lapses > TW__TASK_LAPSES_MAX;
}

/* ---- calls ----------------------------------------------------------------------------------------------- */

/* How many calls follow the present one. */
static inline uint64_t tw__task_calls_left(uint64_t every, uint64_t times)
{
    if (every == 0)
        return 0;
    return times == TW_FOREVER ? times : times - 1;
}

/* When the period is due that follows a call, which stands for `missed_periods` more. TW_FOREVER: that is
 * after the latest time. */
static inline uint64_t tw__task_next_period(uint64_t due_ms, uint64_t missed_periods, uint64_t every_ms)
{
    uint64_t next_ms = tw__task_due_after(due_ms, tw__add_saturating(missed_periods, 1), every_ms);
    return next_ms <= TW__TASK_TIME_MAX ? next_ms : TW_FOREVER;
}

/* When the next call is due, if `left` calls follow this one. TW_FOREVER: none comes, and the task
 * leaves. */
static inline uint64_t tw__task_next_call(uint64_t due_ms, uint64_t missed_periods, uint64_t every_ms,
                                          uint64_t left)
{
    return left > 0 ? tw__task_next_period(due_ms, missed_periods, every_ms) : TW_FOREVER;
}

#endif
