/* SPDX-License-Identifier: MIT
 *
 * A put with KEEPDUE looks at the stored task alone, and asks the clock only where nothing else can tell a
 * time. So it does not matter whether the task has become ready meanwhile.
 *
 *     stored                        times            place in the order           how
 *     missing, dead                 those given      as any put                   FILES
 *     filed                         stay             stays                        IN_PLACE
 *     filed, another target         stay             the last of its time,        SAME_TIMES
 *                                                    with attempt 0
 *     taken, and both repeat        stay             -, and the attempt goes on   IN_PLACE
 *     taken, both repeat, another   next period      behind the attempt           FILES
 *     target
 *     taken, one of them is once    now              behind the attempt           FILES
 *     replaced                      stay             stays behind the attempt     IN_PLACE
 */
#ifndef TW_TASK_KEEPDUE_H
#define TW_TASK_KEEPDUE_H

#include "ends.h"
#include "task.h"

enum tw__task_keepdue {
    TW__TASK_KEEPDUE_FILES, /* as each other put, for due_ms */
    TW__TASK_KEEPDUE_IN_PLACE,
    TW__TASK_KEEPDUE_SAME_TIMES
};

struct tw__task_keep {
    enum tw__task_keepdue how;
    uint64_t due_ms; /* of the task afterwards */
};

/* Decides about a put with the period `every_ms` (0: the task runs once) for the time `at_ms`. Of the stored
 * task only the stage, the period, the due time and the missed periods count. `elsewhere`: the new task has
 * another kind or target. */
static inline struct tw__task_keep tw__task_keep(const struct tw__task *old, uint64_t every_ms, bool elsewhere,
                                                 uint64_t at_ms, uint64_t now_ms)
{
    struct tw__task_keep keep = {TW__TASK_KEEPDUE_IN_PLACE, old->due_ms};
    bool at_work = old->stage == TW__TASK_TAKEN;
    if (old->stage == TW__TASK_NONE || old->stage == TW__TASK_BURIED)
        return (struct tw__task_keep){TW__TASK_KEEPDUE_FILES, at_ms};
    if (at_work && (old->every_ms == 0 || every_ms == 0))
        return (struct tw__task_keep){TW__TASK_KEEPDUE_FILES, now_ms};
    if (!elsewhere || old->stage == TW__TASK_REPLACED)
        return keep;
    keep.how = at_work ? TW__TASK_KEEPDUE_FILES : TW__TASK_KEEPDUE_SAME_TIMES;
    if (at_work)
        keep.due_ms = tw__task_next_period(old->due_ms, old->missed_periods, old->every_ms);
    if (keep.due_ms == TW_FOREVER) /* the series ends with this attempt, and has no time to keep */
        keep.due_ms = at_ms;
    return keep;
}

#endif
